from collections.abc import Sequence

import pytest

from hotloop.core.target import Target
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import Journal, Play, play_again, play_of
from hotloop.lab.measure.rounds import Rounds, warm_up
from hotloop.lab.measure.stepping import repeat


def open_guard() -> Subject:
    subject = open_target(Target("grid/guard", {"num_envs": 2}))
    subject.reset()
    return subject


class Noting:
    """A subject that knows what it was given to play."""

    def __init__(self, subject: Subject) -> None:
        self.subject, self.spec, self.played = subject, subject.spec, list[bytes]()

    def wait(self) -> None: ...

    def step(self, actions: object) -> None:
        self.played.append(bytes(actions))  # type: ignore[call-overload]
        self.subject.step(actions)


def run(script: Play, subject: Noting) -> None:
    """Warm up, stop in the middle of a draw, then play two rounds."""
    asked = Rounds(count=2, iterations=14, warmup=2 * 300, box_warmup=False)
    rounds = warm_up([subject], script, asked, lambda done, total: None)  # type: ignore[list-item]
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
