"""Bisecting: which commit did it, by as few builds as there can be, each step a confirmed comparison."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Literal

from hotloop.core.errors import HotloopError, InputError
from hotloop.core.machine import git
from hotloop.core.progress import Progress, silent
from hotloop.core.project import Budget
from hotloop.core.record import Record
from hotloop.lab.compare.commits import Say
from hotloop.lab.gate.gate import Profiles
from hotloop.lab.gate.measure import GateContext, against_of, held_against
from hotloop.lab.gate.places import Checkouts, Measurers

Verdict = Literal["good", "bad", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One commit that was tried."""

    commit: str
    told: Verdict
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectResult:
    """What a search came to."""

    # Hash and subject of the commits that may have done it, the oldest first; one where it is known
    suspects: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]


@dataclass(slots=True)
class Search:
    """A range that shrinks: the first commit is good, the last is bad, what is between is not known."""

    commits: Sequence[str]  # From the first after the good one to the bad one, the oldest first
    low: int = -1  # The last that is known to be good
    high: int = field(init=False)  # The first that is known to be bad
    skipped: set[int] = field(default_factory=set)
    hints: list[int] = field(default_factory=list)  # To be tried before the middle

    def __post_init__(self) -> None:
        self.high = len(self.commits) - 1

    def next(self) -> int | None:
        """The commit to try: the nearest to the middle that can be told; None where none is left."""
        left = [at for at in range(self.low + 1, self.high) if at not in self.skipped]
        while self.hints:
            if (at := self.hints.pop(0)) in left:
                return at
        middle = (self.low + self.high) / 2
        return min(left, key=lambda at: abs(at - middle), default=None)

    def note(self, at: int, told: Verdict) -> None:
        if told == "good":
            self.low = at
        elif told == "bad":
            self.high = at
        else:
            self.skipped.add(at)

    @property
    def suspects(self) -> tuple[str, ...]:
        """The first bad one, and those before it that nobody could tell."""
        return tuple(self.commits[self.low + 1 : self.high + 1])


def search(
    commits: Sequence[str],
    judge: Callable[[str], Step],
    subject: Callable[[str], str] = str,
    hint: str | None = None,
) -> BisectResult:
    """Find the first bad commit; the last is bad, and what is before the first is good.

    A hint is a commit that may well be it: it and the one before are tried first.
    """
    if not commits:
        raise InputError("there is no commit between the two: nothing to bisect")
    looked, steps = Search(commits), list[Step]()
    if hint in commits:
        looked.hints = [commits.index(hint), commits.index(hint) - 1]
    while (at := looked.next()) is not None:
        steps.append(judge(commits[at]))
        looked.note(at, steps[-1].told)
    suspects = tuple((commit, subject(commit)) for commit in looked.suspects)
    return BisectResult(suspects=suspects, steps=tuple(steps))


def bisect(
    budget: Budget,
    how: GateContext,
    profiles: Profiles,
    progress: Progress = silent,
    *,
    say: Say,
    hint: str | None = None,
) -> BisectResult:
    """Find the commit since which a budget is missed, between what it is held against and HEAD."""
    against = against_of(budget, how)
    if against is None or against.place is None:
        raise InputError(f"--bisect: budget {budget.name} is held against no commit: give it max_change")
    folder = how.places.project
    commits = between(how, against.place.commit.sha, "HEAD")
    refuse_changes(how.places)
    # which commit did it, whatever others changed in between
    by_speed = replace(how, options=replace(how.options, unlike=True))

    def subject(commit: str) -> str:
        return git(folder, "log", "-1", "--format=%s", commit) or ""

    with Measurers(budget.measured) as gauges:  # the good one is opened once for all

        def measure(commit: str) -> Step:
            try:
                place = how.places.at(commit)
                record = held_against(budget, by_speed, against, place, gauges, progress)
            except HotloopError as error:  # what does not build, or cannot be measured, is skipped
                step = Step(commit=commit, told="skip", why=str(error).partition("\n")[0])
            else:
                with suppress(HotloopError):  # a profile that is kept on the way decides nothing
                    profiles.of(budget, place)
                step = verdict_of(commit, record)
            say(f"{commit[:12]} {step.told}: {step.why}")
            return step

        return search(commits, measure, subject, hint)


def refuse_changes(places: Checkouts) -> None:
    """Raise InputError if the working tree has uncommitted changes."""
    if places.tree().commit.dirty:
        raise InputError("--bisect: uncommitted changes are in no commit: commit or stash them first")


def between(how: GateContext, good: str, bad: str) -> list[str]:
    """The commits after one up to another, the oldest first, along the line of first parents."""
    found = git(how.places.project, "rev-list", "--first-parent", "--reverse", f"{good}..{bad}")
    return (found or "").split()


def verdict_of(commit: str, record: Record) -> Step:
    """Return whether a commit is good or bad by its budget, or has to be skipped."""
    held = record.held
    assert held is not None
    change = f"{held.change.value:+.1%}; " if held.change else ""
    known: dict[str, Verdict] = {"met": "good", "missed": "bad"}
    why = f"{change}{held.standing}, {held.why}"
    return Step(commit=commit, told=known.get(held.standing, "skip"), why=why)
