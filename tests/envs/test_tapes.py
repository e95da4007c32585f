"""Tapes: what is written is read back, what was played is played again, what is damaged is refused."""

from pathlib import Path

import numpy as np
import pytest
from support.play import difference, snapshot

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs import tapes
from hotloop.envs.tapes import Episodes

STEPS = 23


@pytest.fixture
def tape() -> tapes.Tape:
    """Of a run whose episodes end after 9 steps, or are cut off after 4."""
    return played("grid/guard", limit=4, max_steps=9)[0]


def played(target: str, limit: int = 0, **given: object) -> tuple[tapes.Tape, dict[str, np.ndarray]]:
    """A run of the random player, as a tape and as it was at its end."""
    batch = hotloop.make(target, num_envs=3, seed=5, **given)
    batch.reset()
    episodes, actions = Episodes(batch, limit), []
    for _ in range(STEPS):
        actions.append(batch.choose("random").copy())
        episodes.step(actions[-1])
    return tapes.record(batch, actions, limit), snapshot(batch)


@pytest.mark.parametrize("impl", ["native", "reference"])
@pytest.mark.parametrize("limit", [0, 4])
def test_a_tape_played_again_ends_in_the_same_bytes(tmp_path: Path, impl: str, limit: int) -> None:
    tape, end = played("grid/arena", limit, max_steps=9)
    tapes.write(tmp_path / "a.npz", tape)
    *others, last = tapes.replay(tapes.read(tmp_path / "a.npz"), impl=impl)
    assert len(others) == STEPS
    assert last.spec.impl == impl
    assert difference(end, snapshot(last)) == ""
    assert last.counters["resets"] == 3 * (1 + STEPS // (limit or 9))


def test_everything_is_read_back(tmp_path: Path, tape: tapes.Tape) -> None:
    tapes.write(tmp_path / "deep" / "a.npz", tape)
    back = tapes.read(tmp_path / "deep" / "a.npz")
    assert np.array_equal(back.actions, tape.actions)
    assert (back.actions.dtype, back.actions.shape) == (np.int16, (STEPS, 3, 8))
    for fact in tapes.FACTS:
        assert getattr(back, fact) == getattr(tape, fact)


def test_a_tape_of_nothing_is_a_tape(tmp_path: Path) -> None:
    batch = hotloop.make("grid/toy", num_envs=2)
    tapes.write(tmp_path / "a.npz", tapes.record(batch, []))
    assert tapes.read(tmp_path / "a.npz").actions.shape == (0, 2, 20)


def test_a_tape_is_never_overwritten(tmp_path: Path, tape: tapes.Tape) -> None:
    (tmp_path / "a.npz").write_text("precious")
    with pytest.raises(InputError, match="never overwritten"):
        tapes.write(tmp_path / "a.npz", tape)
    assert (tmp_path / "a.npz").read_text() == "precious"
    assert list(tmp_path.iterdir()) == [tmp_path / "a.npz"]


def test_a_missing_tape_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the tape .*: No such file"):
        tapes.read(tmp_path / "a.npz")
    with pytest.raises(InputError, match="is no file"):
        tapes.read(tmp_path)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99])
def test_a_truncated_tape_is_refused(tmp_path: Path, tape: tapes.Tape, share: float) -> None:
    tapes.write(tmp_path / "a.npz", tape)
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(InputError, match="not a whole tape"):
        tapes.read(tmp_path / "cut.npz")


def test_a_tape_with_a_damaged_byte_is_refused_or_reads_the_same(tmp_path: Path, tape: tapes.Tape) -> None:
    tapes.write(tmp_path / "a.npz", tape)
    whole = (tmp_path / "a.npz").read_bytes()
    refused = 0
    for place in range(0, len(whole), 7):
        (tmp_path / "b.npz").write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            assert np.array_equal(tapes.read(tmp_path / "b.npz").actions, tape.actions)
        except InputError:
            refused += 1
    assert refused > 10


def test_foreign_files_are_refused(tmp_path: Path, tape: tapes.Tape) -> None:
    file = tmp_path / "a.npz"
    file.write_text('{"kind": "bench"}')
    with pytest.raises(InputError, match="not a whole tape"):
        tapes.read(file)
    with file.open("wb") as stream:
        np.save(stream, tape.actions)
    with pytest.raises(InputError, match="not a whole tape"):
        tapes.read(file)
    np.savez(file, weights=np.zeros(3))
    with pytest.raises(InputError, match="not a whole tape"):
        tapes.read(file)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ('{"format": "hotloop tape 2"}', "format"),
        ('{"format": "hotloop tape 1", "num_envs": 9}', "actions"),
        ('{"format": "hotloop tape 1", "num_envs": 3}', "target"),
        ("[1, 2]", "not a whole tape"),
    ],
)
def test_a_header_of_another_kind_is_refused(
    tmp_path: Path, tape: tapes.Tape, header: str, said: str
) -> None:
    np.savez(tmp_path / "a.npz", header=np.array(header), actions=tape.actions)
    with pytest.raises(InputError, match=said):
        tapes.read(tmp_path / "a.npz")
