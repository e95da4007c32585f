import gc
from collections.abc import Sequence

import numpy as np
import pytest

import hotloop
from hotloop.core.settings import Target
from hotloop.core.turn_clock import repeat
from hotloop.envs.batch import Batch
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject
from hotloop.lab.measure import policy as module
from hotloop.lab.measure.loop import Rounds, warm_up_subjects
from hotloop.lab.measure.policy import FEWEST_BATCHES, Journal, Play, RandomPlay, play_again, play_of
from hotloop.lab.measure.sides import no_collection, play


@pytest.fixture
def batch() -> Batch:
    batch = hotloop.make("grid/toy", num_envs=3, agents=4)
    batch.reset()
    return batch


def test_actions_are_what_a_batch_reads_in_place(batch: Batch) -> None:
    for actions in RandomPlay(batch).draw(20):
        assert (actions.dtype, actions.shape) == (np.int32, (3, 4))
        assert actions.flags.c_contiguous
    play(batch, RandomPlay(batch).draw(20), 20)
    assert batch.counters["actions_converted"] == 0


def test_every_action_of_the_world_is_drawn_and_no_other(batch: Batch) -> None:
    drawn = np.unique(np.stack(RandomPlay(batch).draw(100)))
    assert drawn.tolist() == list(range(batch.spec.num_actions))


def test_the_same_seed_draws_the_same_actions_and_each_round_others(batch: Batch) -> None:
    one, same = RandomPlay(batch), RandomPlay(batch)
    first, second = np.stack(one.draw(16)), np.stack(one.draw(16))
    assert np.array_equal(first, np.stack(same.draw(16)))
    assert not np.array_equal(first, second)


def test_another_seed_draws_other_actions(batch: Batch) -> None:
    other = hotloop.make("grid/toy", num_envs=3, agents=4, seed=43)
    assert not np.array_equal(np.stack(RandomPlay(batch).draw(16)), np.stack(RandomPlay(other).draw(16)))


def test_large_actions_are_drawn_a_few_at_a_time_but_never_fewer_than_sixteen(
    batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 20 * 3 * 4 * 4)
    assert len(RandomPlay(batch).draw(1_000)) == 20
    monkeypatch.setattr(module, "MOST_BYTES", 1)
    assert len(RandomPlay(batch).draw(1_000)) == FEWEST_BATCHES


def test_actions_that_run_out_begin_again(batch: Batch) -> None:
    drawn = RandomPlay(batch).draw(16)
    seen = list(repeat(drawn, 40))
    assert len(seen) == 40
    assert seen[16] is drawn[0]


def test_play_makes_exactly_the_calls_it_was_asked_for(batch: Batch) -> None:
    play(batch, RandomPlay(batch).draw(5), 5)
    assert batch.counters["batch_calls"] == 5


def test_the_collector_is_off_inside_and_as_before_afterwards() -> None:
    with no_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with no_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_players_tape_leads_the_measured_batch_where_the_player_would_have() -> None:
    given = {"num_envs": 2, "seed": 6, "max_steps": 30}
    measured, asked = hotloop.make("grid/guard", **given), hotloop.make("grid/guard", **given)
    script = play_of("teacher", measured)
    measured.reset()
    asked.reset()
    for calls in (7, 1, 40):
        play(measured, script.draw(calls), calls)
        for _ in range(calls):
            asked.step(asked.choose("teacher"))
    assert (measured.digest() == asked.digest()).all()
    assert script.policy == "teacher (replayed tape)"


def test_what_was_drawn_and_not_played_is_drawn_again() -> None:
    batch = hotloop.make("grid/guard", num_envs=2)
    whole = play_of("teacher", batch).draw(9)
    script = play_of("teacher", batch)
    first = script.draw(6)
    script.put_back(first[4:])
    again = [*first[:4], *script.draw(5)]
    assert np.array_equal(np.stack(whole), np.stack(again))


def test_random_play_is_drawn_without_a_tape(batch: Batch) -> None:
    script = play_of("random", batch)
    assert isinstance(script, RandomPlay)
    assert script.policy == "random"


def test_random_play_leaves_out_what_a_world_leaves_out() -> None:
    batch = hotloop.make("prospector", num_envs=64)
    drawn = np.unique(np.stack(RandomPlay(batch).draw(200)))
    assert drawn.tolist() == list(range(68))
    assert batch.spec.num_actions == 69


def open_guard() -> Subject:
    subject = open_target(Target("grid/guard", {"num_envs": 2}))
    subject.reset()
    return subject


class Noting:
    """A subject that knows what it was given to play."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.spec, self.played = subject, subject.spec, list[bytes]()

    def step(self, actions: object) -> None:
        self.played.append(bytes(actions))  # type: ignore[call-overload]
        self.subject.step(actions)

    def wait(self) -> None: ...


def run(script: Play, subject: Noting) -> None:
    """Warm up, stop in the middle of a draw, then play two rounds."""
    asked = Rounds(count=2, iterations=14, warmup=2 * 300, box_warmup=False)
    rounds = warm_up_subjects([subject], script, asked, lambda done, total: None)  # type: ignore[list-item]
    for _ in range(rounds.count):
        for chosen in repeat(script.draw(20), 20):
            subject.step(chosen)


@pytest.mark.parametrize("policy", ["random", "teacher"])
def test_a_journal_brings_the_same_actions_again(policy: str) -> None:
    played = Noting(open_guard())
    journal = Journal(play_of(policy, played.subject))
    run(journal, played)
    again = play_again(play_of(policy, open_guard()), journal.draws, 10_000)
    assert [bytes(actions) for actions in again] == played.played
    assert len(played.played) == 300 + 40


def test_only_the_first_calls_are_drawn_where_only_they_are_asked_for() -> None:
    script = Counting()
    assert list(play_again(script, [(4, 4, 2), (9, 9, 1)], 6)) == [0, 1, 2, 3, 4, 5]
    assert script.asked == [4, 4]


def test_equal_draws_are_written_once() -> None:
    journal = Journal(Counting())
    for _ in range(3):
        journal.draw(5)
    drawn = journal.draw(5)
    journal.put_back(drawn[2:])
    journal.draw(7)
    assert journal.draws == ((5, 5, 3), (5, 2, 1), (7, 7, 1))


def test_what_was_put_back_comes_again() -> None:
    script = Counting()
    assert list(play_again(script, [(5, 2, 1), (3, 3, 1)], 100)) == [0, 1, 2, 3, 4]


class Counting:
    """Plays 0, 1, 2, ..."""

    policy = "counting"

    def __init__(self) -> None:
        self.next = 0
        self.asked: list[int] = []

    def draw(self, calls: int) -> Sequence[int]:
        self.asked.append(calls)
        drawn = list(range(self.next, self.next + calls))
        self.next += calls
        return drawn

    def put_back(self, actions: Sequence[int]) -> None:
        self.next -= len(actions)

    def close(self) -> None:
        pass
