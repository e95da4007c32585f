from collections.abc import Sequence

import pytest

from hotloop.core.errors import InputError
from hotloop.lab.gate.gate import BisectResult, BisectStep, Verdict, search

COMMITS = [f"c{number}" for number in range(1, 21)]


def bisected(first_bad: int, skipped: Sequence[int] = (), hint: str | None = None) -> BisectResult:
    def judge(commit: str) -> BisectStep:
        number = int(commit[1:])
        told: Verdict = "skip" if number in skipped else "bad" if number >= first_bad else "good"
        return BisectStep(commit=commit, told=told, why="")

    return search(COMMITS, judge, hint=hint)


@pytest.mark.parametrize("first_bad", range(1, 21))
def test_the_first_bad_commit_is_found_by_few_builds(first_bad: int) -> None:
    found = bisected(first_bad)
    assert found.suspects == ((f"c{first_bad}", f"c{first_bad}"),)
    assert len(found.steps) <= 5


@pytest.mark.parametrize("first_bad", range(1, 21))
def test_what_another_budget_was_missed_since_is_tried_first(first_bad: int) -> None:
    found = bisected(first_bad, hint=f"c{first_bad}")
    assert found.suspects == ((f"c{first_bad}", f"c{first_bad}"),)
    assert len(found.steps) <= 2
    assert bisected(first_bad, hint="c9").suspects == found.suspects
    assert bisected(first_bad, hint="of another branch").suspects == found.suspects


def test_what_cannot_be_told_is_gone_around() -> None:
    found = bisected(13, skipped=[10, 11, 9])
    assert [commit for commit, _ in found.suspects] == ["c13"]
    assert [step.commit for step in found.steps if step.told == "skip"]


def test_what_is_beside_a_skipped_commit_stays_suspect() -> None:
    found = bisected(13, skipped=[12])
    assert [commit for commit, _ in found.suspects] == ["c12", "c13"]
    every = bisected(13, skipped=range(1, 20))
    assert len(every.suspects) == 20


def test_one_commit_needs_no_build() -> None:
    found = search(["only"], lambda commit: pytest.fail("it was built"))
    assert [commit for commit, _ in found.suspects] == ["only"]
    with pytest.raises(InputError, match="nothing to bisect"):
        search([], lambda commit: pytest.fail("it was built"))
