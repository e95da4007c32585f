"""The replay: what comes next after an entry, what may be drawn, and that it comes back as it was."""

from typing import Any

import numpy as np
import pytest
import torch

from hotloop.core.errors import InputError
from hotloop.train.dqn import NONE, ReplayBuffer, StoredSteps


def replay(size: int = 12, rows: int = 2, *, masked: bool = False) -> ReplayBuffer:
    return ReplayBuffer(size, rows, (1,), np.float32, num_actions=3, masked=masked)


def steps(time: int, rows: tuple[int, ...] = (0, 1), **given: Any) -> StoredSteps:
    """A step in which row r sees 10 * time + r, does action r and gets time."""
    count, no = len(rows), np.zeros(len(rows), np.bool_)
    seen = np.array([[10.0 * time + row] for row in rows], np.float32).reshape(count, 1)
    flags = {name: np.isin(rows, given.get(name, ())) for name in ("ended", "cut")}
    last = seen[flags["cut"]] + 0.5
    masks = np.ones((count, 3), np.bool_) if given.get("masked") else None
    return StoredSteps(
        rows=np.array(rows, np.int64),
        observations=seen,
        masks=masks,
        actions=np.array(rows, np.int32),
        rewards=np.full(count, time, np.float32),
        ended=flags["ended"] | no,
        cut=flags["cut"],
        last=last,
    )


def entries_of(kept: ReplayBuffer) -> dict[float, float | None]:
    """What may be drawn: what was seen, to what was seen next, or None at an end."""
    drawable = np.flatnonzero(kept.may_draw)
    found = kept.take(drawable)
    nexts = np.where(found.ends.numpy() == 1, np.nan, found.next_observations.numpy()[:, 0])
    return {
        float(seen): None if np.isnan(after) else float(after)
        for seen, after in zip(found.observations[:, 0].numpy(), nexts, strict=True)
    }


def test_an_entry_may_be_drawn_once_its_next_is_known() -> None:
    kept = replay()
    kept.add(steps(0))
    assert entries_of(kept) == {}
    kept.add(steps(1))
    assert entries_of(kept) == {0: 10, 1: 11}
    assert kept.drawable == 2


def test_an_end_has_no_next_and_the_next_episode_is_not_its_next() -> None:
    kept = replay()
    kept.add(steps(0, ended=(1,)))
    assert entries_of(kept) == {1: None}
    kept.add(steps(1))
    kept.add(steps(2))
    assert entries_of(kept) == {0: 10, 1: None, 10: 20, 11: 21}


def test_what_a_limit_cut_off_goes_on_to_what_was_seen_last() -> None:
    kept = replay()
    kept.add(steps(0, cut=(0,)))
    kept.add(steps(1))
    assert entries_of(kept) == {0: 0.5, 1: 11}
    assert 0.5 not in entries_of(kept)  # nothing was done there


def test_with_masks_what_a_limit_cut_off_is_never_drawn() -> None:
    kept = replay(masked=True)
    kept.add(steps(0, cut=(0,), masked=True))
    kept.add(steps(1, masked=True))
    assert entries_of(kept) == {1: 11}


def test_who_was_not_there_has_no_entry_and_breaks_no_chain() -> None:
    kept = replay(rows=3)
    kept.add(steps(0, (0, 2), ended=(0,)))
    kept.add(steps(1, (1, 2)))
    kept.add(steps(2, (0, 1, 2)))
    assert entries_of(kept) == {0: None, 2: 12, 11: 21, 12: 22}


def test_the_ring_forgets_the_oldest_and_no_next_is_ever_lost() -> None:
    kept = replay(size=11)
    for time in range(40):
        kept.add(steps(time, cut=(0,) if time % 5 == 4 else (), ended=(1,) if time % 7 == 6 else ()))
        found = entries_of(kept)
        assert kept.drawable == len(found)
        for seen, after in found.items():
            time_of, row = divmod(int(seen), 10)
            expected = {
                0: 10 * time_of + 0.5 if time_of % 5 == 4 else 10 * (time_of + 1),
                1: None if time_of % 7 == 6 else 10 * (time_of + 1) + 1,
            }
            assert after == expected[row]
    assert min(found) > 300


def test_a_draw_is_of_what_may_be_drawn_and_all_alike() -> None:
    kept = replay(size=40)
    for time in range(10):
        kept.add(steps(time, ended=(0,)))
    drawn = kept.draw(20_000, torch.Generator().manual_seed(1))
    assert kept.may_draw[drawn].all()
    counts = np.bincount(drawn, minlength=40)[kept.may_draw]
    assert counts.min() > 0.85 * counts.mean()


def test_a_replay_comes_back_as_it_was_and_no_larger_than_it_is_filled() -> None:
    kept, other = replay(size=100), replay(size=100)
    for time in range(6):
        kept.add(steps(time))
    state = kept.state()
    assert len(state["observations"]) == 12
    other.restore(state)
    for time in range(6, 50):
        kept.add(steps(time, cut=(1,) if time == 9 else ()))
        other.add(steps(time, cut=(1,) if time == 9 else ()))
    assert entries_of(kept) == entries_of(other)
    assert (kept.head, kept.filled, kept.drawable) == (other.head, other.filled, other.drawable)
    assert (kept.pending == other.pending).all()


def test_episodes_that_do_not_go_on_are_never_drawn_at_their_last_step() -> None:
    kept = replay()
    kept.add(steps(0))
    kept.pending[:] = NONE
    kept.add(steps(5))
    kept.add(steps(6))
    assert entries_of(kept) == {50: 60, 51: 61}
    assert (kept.next[:2] == NONE).all()


def test_a_replay_of_another_shape_is_refused() -> None:
    other = ReplayBuffer(12, 2, (2,), np.float32, num_actions=3, masked=False)
    with pytest.raises(ValueError, match="observations"):
        other.restore(replay().state() | {"observations": torch.zeros(4, 1)})


def test_a_replay_beyond_what_a_checkpoint_may_hold_names_the_largest() -> None:
    with pytest.raises(InputError, match=r"buffer_size=2000000: .* GiB.*use at most \d+"):
        ReplayBuffer(2_000_000, 2, (300,), np.float32, num_actions=3, masked=False)
