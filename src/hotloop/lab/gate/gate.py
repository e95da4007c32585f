"""The gate: every budget of a project measured, judged, and where it is missed explained."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from hotloop.core.errors import Code, ExitCode, HotloopError, InputError, notice, worst
from hotloop.core.files import free_path, write_new
from hotloop.core.machine import git, machine
from hotloop.core.progress import Progress, silent
from hotloop.core.project import Budget, Project, parse
from hotloop.core.record import Record, file_name, read, stacks
from hotloop.core.record.profile import WALL, Finding, Table
from hotloop.core.record.stacks import Stack
from hotloop.judge.checks import weakened
from hotloop.lab.compare.commits import Say
from hotloop.lab.gate.measure import (
    Checkouts,
    CodePlace,
    GateContext,
    Measurers,
    RemoteMeasurer,
    against_of,
    branch_of,
    commit_of,
    measure_budget,
    not_itself,
)
from hotloop.stats.summary import with_metrics

PROBE = "difference"

STACKS = "samples.speedscope.json"  # What the sampling probe calls its stacks
SMALLEST = 0.002  # Of the time then: what changed by less is left out

MOST_ROWS = 15

BY_OWN_TIME = "Functions, by their own time"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProfile:
    """A profile of a place, and where its stacks are."""

    record: Record
    stacks: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """The profiles of commits, in a folder: continuous profiling."""

    folder: Path

    def of(self, budget: Budget, place: CodePlace) -> StoredProfile:
        """Return the profile of a place: a stored one of the same commit and machine, or a new one."""
        path = self.folder / f"{file_name(f'{place.commit.sha[:12]}-{budget.words}')}.json"
        if not place.commit.dirty:
            with suppress(HotloopError):
                record = read(path)
                beside = path.with_suffix(f".{STACKS}")
                if record.machine["fingerprint"] == machine()["fingerprint"]:
                    return StoredProfile(record=record, stacks=beside if beside.exists() else None)
        self.folder.mkdir(parents=True, exist_ok=True)
        path = free_path(path)
        room = self.folder / f".{path.stem}"
        room.mkdir(exist_ok=True)
        try:
            with RemoteMeasurer(place, budget.measured) as gauge:
                record = gauge.measure("profile", folder=str(room.resolve()))
            found = room / STACKS
            beside = path.with_suffix(f".{STACKS}")
            if found.exists():
                # Files by their paths in the place, so that two places can be compared.
                home, seen = f"{place.folder.resolve()}/", Counter[Stack]()
                for stack, seconds in stacks.read(found).items():
                    inside = tuple((name, file.removeprefix(home), line) for name, file, line in stack)
                    seen[inside] += seconds  # type: ignore[assignment]
                stacks.write(beside, "samples", dict(seen))
            write_new(path, record.to_json())
        finally:
            for left in room.iterdir():
                left.unlink()
            room.rmdir()
        return StoredProfile(record=record, stacks=beside if beside.exists() else None)


def explain(record: Record, budget: Budget, then: CodePlace, now: CodePlace, profiles: Profiles) -> Record:
    """Return a record with what changed between two places; with a notice if that cannot be profiled."""
    try:
        before, after = (profiles.of(budget, place) for place in (then, now))
    except HotloopError as error:
        said = notice(Code.NO_PROBE, probe=PROBE, why=str(error), remedy="mend that, and run the gate again")
        return replace(record, notices=(*record.notices, said))
    whole = slower(record)
    # every phase and span by how much it grew, as shares of the time that an env-step took then
    old = {phase.path: phase.share for phase in before.record.phases if phase.path != WALL}
    new = {phase.path: phase.share * whole for phase in after.record.phases if phase.path != WALL}
    tables = [Table(title="Phases and spans", columns=COLUMNS["phase"], rows=rows(old, new))]
    facts = {"then": before.record.run_id, "now": after.record.run_id, "times_as_long": whole}
    if before.stacks and after.stacks:
        sampled = stacks.read(before.stacks), stacks.read(after.stacks)
        tables = [*function_tables(*sampled, whole, own_files(now.folder)), *tables]
        facts |= {"stacks_then": str(before.stacks), "stacks_now": str(after.stacks)}
    found = Finding(probe=PROBE, facts=facts, tables=tuple(each for each in tables if each.rows))
    return replace(record, findings=(*record.findings, found))


def slower(record: Record) -> float:
    """Return how many times as long it takes now, by what was measured for the budget."""
    held = record.held
    if held is None or held.change is None:
        return 1.0
    is_time = held.metric.startswith(("phase", "instructions")) and not held.more_is_better
    if held.more_is_better:
        return 1 / (1 + held.change.value)
    return 1 + held.change.value if is_time and not held.metric.startswith("phase") else 1.0


def own_files(folder: Path) -> frozenset[str]:
    """Return the files of a project, by the ends of their paths: installed, they lie elsewhere."""
    return frozenset(map(stacks.short, (git(folder, "ls-files", "*.py") or "").splitlines()))


def function_tables(
    before: Mapping[Stack, float], after: Mapping[Stack, float], whole: float, own: Container[str]
) -> list[Table]:
    """Return every function by how much its own time grew, in the same way.

    First those of the project, if they call any other: a library's time counts for its caller.
    """

    def innermost(stack: Stack) -> tuple[str, str]:
        return stack[-1][:2]

    def caller(stack: Stack) -> tuple[str, str]:
        mine = (frame for frame in reversed(stack) if stacks.short(frame[1]) in own)
        return next(mine, stack[-1])[:2]

    titles = {"Functions of the project, with the libraries they call": caller, BY_OWN_TIME: innermost}
    told = {
        title: rows(shares_by(whose, before), shares_by(whose, after, whole))
        for title, whose in titles.items()
    }
    distinct = {found: title for title, found in told.items()}  # of equal ones, the latter
    return [Table(title=title, columns=COLUMNS["function"], rows=found) for found, title in distinct.items()]


COLUMNS = {first: (first, "then_share", "now_share", "difference_share") for first in ("phase", "function")}


def shares_by(
    whose: Callable[[Stack], tuple[str, str]], found: Mapping[Stack, float], times: float = 1.0
) -> dict[str, float]:
    """Return each function's share of the whole, which may be so many times as long, its lines together."""
    own: defaultdict[str, float] = defaultdict(float)
    whole = sum(found.values()) or 1.0
    for stack, seconds in found.items():
        name, file = whose(stack)
        own[f"{name} ({stacks.short(file)})" if file and file != "~" else name] += seconds / whole * times
    return dict(own)


def rows(then: Mapping[str, float], now: Mapping[str, float]) -> tuple[tuple[object, ...], ...]:
    """Return name, then, now and the difference; what grew most first, what shrank most last."""
    changed = [(name, then.get(name, 0.0), now.get(name, 0.0)) for name in {**then, **now}]
    told = [(name, a, b, b - a) for name, a, b in changed if abs(b - a) >= SMALLEST]
    return tuple(sorted(told, key=lambda row: -row[3])[:MOST_ROWS])


# Where records go by default, below the project's folder
FOLDER = Path("artifacts/gate")


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """One budget, and what came of it."""

    budget: Budget
    record: Record | None  # None where it could not be measured at all
    error: str | None = None
    code: ExitCode

    @property
    def is_missed(self) -> bool:
        """Whether it is red for what was measured, so that there is something to explain."""
        held = self.record.held if self.record else None
        return held is not None and held.standing == "missed" and held.enforced


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of all budgets."""

    rows: tuple[BudgetRow, ...]

    @property
    def code(self) -> ExitCode:
        return worst(row.code for row in self.rows)

    @property
    def records(self) -> list[Record]:
        return [row.record for row in self.rows if row.record]


def chosen(project: Project, only: Sequence[str]) -> list[Budget]:
    """Return the budgets of these names, or all; InputError if one does not exist."""
    return [project.budget(name) for name in only] if only else list(project.budgets.values())


def run(
    budgets: Sequence[Budget], how: GateContext, progress: Progress = silent, *, say: Say = lambda words: None
) -> Result:
    """Measure each target once for all its budgets; one that cannot be measured does not stop the others."""
    groups: dict[str, list[int]] = {}
    for place, budget in enumerate(budgets):
        groups.setdefault(budget.words, []).append(place)
    rows: dict[int, BudgetRow] = {}
    for group in groups.values():
        # the strictest change from a commit first
        group.sort(key=lambda place: (budgets[place].max_change is None, budgets[place].max_change or 0.0))
        with Measurers(budgets[group[0]].measured) as gauges:
            for place in group:
                budget, number = budgets[place], f"{len(rows) + 1} of {len(budgets)}"
                say(f"{number}: {budget.name}, {budget.metric} of {budget.words}")
                try:
                    against = against_of(budget, how)
                    record = measure_budget(budget, how, against, how.places.tree(), gauges, progress)
                except HotloopError as error:  # which is its row's
                    gauges.restart()
                    said = f"line {budget.line}: budget.{budget.name}: {' '.join(str(error).split())}"
                    rows[place] = BudgetRow(budget=budget, record=None, error=said, code=error.exit_code)
                else:
                    rows[place] = BudgetRow(budget=budget, record=record, code=ExitCode(record.exit_code))
    return Result(rows=tuple(rows[place] for place in range(len(budgets))))


def weaker(project: Project, places: Checkouts) -> list[str]:
    """Return the budgets that were removed or loosened since the main branch was left, or its last commit."""
    branch = branch_of(project.folder) or "HEAD"
    found = (commit_of(project.folder, each) for each in (branch, f"origin/{branch}"))
    sha = next(filter(None, found), None)
    before = sha and not_itself(places, sha)
    text = before and git(project.folder, "show", f"{before}:./{project.path.name}")
    if not before or not text:
        return []
    try:
        old = parse(text).budgets
    except InputError:  # a record that cannot be a baseline
        return []
    return [f"{each}, since {before[:12]}" for each in weakened(old, project.budgets)]


def with_reasons(result: Result, how: GateContext, profiles: Profiles) -> Result:
    """Return the result with phases and functions added to budgets that are missed against a commit."""
    rows = []
    for row in result.rows:
        against = against_of(row.budget, how) if row.is_missed and row.budget.program is None else None
        if row.record is None or against is None or against.place is None:
            rows.append(row)
            continue
        record = explain(row.record, row.budget, against.place, how.places.tree(), profiles)
        rows.append(replace(row, record=record))
    return replace(result, rows=tuple(rows))


def trend(folder: Path, name: str, latest: int = 20) -> list[Record]:
    """Return earlier records of a budget, oldest first: the distance to its limit over time."""
    found = []
    for path in folder.glob(f"*-{name}*.json"):
        try:
            record = read(path)
        except HotloopError:  # another file is no part of a trend
            continue
        if record.held and record.held.name == name:
            found.append(with_metrics(record))
    return sorted(found, key=lambda record: record.created)[-latest:]


Verdict = Literal["good", "bad", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectStep:
    """One commit that was tried."""

    commit: str
    told: Verdict
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectResult:
    """What a search came to."""

    # Hash and subject of the commits that may have done it, the oldest first; one where it is known
    suspects: tuple[tuple[str, str], ...]
    steps: tuple[BisectStep, ...]


def search(
    commits: Sequence[str],
    judge: Callable[[str], BisectStep],
    subject: Callable[[str], str] = str,
    hint: str | None = None,
) -> BisectResult:
    """Find the first bad commit; the last is bad, and what is before the first is good.

    A hint is a commit that may well be it: it and the one before are tried first, then always the one
    nearest to the middle that can be judged.
    """
    if not commits:
        raise InputError("there is no commit between the two: nothing to bisect")
    low, high = -1, len(commits) - 1  # the last that is known to be good, and the first to be bad
    hints = [commits.index(hint), commits.index(hint) - 1] if hint in commits else []
    skipped, steps = set[int](), list[BisectStep]()
    while left := [at for at in range(low + 1, high) if at not in skipped]:
        hints = [at for at in hints if at in left]
        at = hints.pop(0) if hints else min((abs(at - (low + high) / 2), at) for at in left)[1]
        steps.append(judge(commits[at]))
        if steps[-1].told == "good":
            low = at
        elif steps[-1].told == "bad":
            high = at
        else:
            skipped.add(at)
    suspects = tuple((commit, subject(commit)) for commit in commits[low + 1 : high + 1])
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
    line = f"{against.place.commit.sha}..HEAD"  # along first parents
    commits = (git(folder, "rev-list", "--first-parent", "--reverse", line) or "").split()
    refuse_changes(how.places)
    # which commit did it, whatever others changed in between
    by_speed = replace(how, options=replace(how.options, unlike=True))

    def subject(commit: str) -> str:
        return git(folder, "log", "-1", "--format=%s", commit) or ""

    with Measurers(budget.measured) as gauges:  # the good one is opened once for all

        def measure(commit: str) -> BisectStep:
            try:
                place = how.places.at(commit)
                record = measure_budget(budget, by_speed, against, place, gauges, progress)
            except HotloopError as error:  # what does not build, or cannot be measured, is skipped
                step = BisectStep(commit=commit, told="skip", why=str(error).partition("\n")[0])
            else:
                with suppress(HotloopError):  # a profile that is kept on the way decides nothing
                    profiles.of(budget, place)
                held = record.held
                assert held is not None
                known: dict[str, Verdict] = {"met": "good", "missed": "bad"}
                change = f"{held.change.value:+.1%}; " if held.change else ""
                why = f"{change}{held.standing}, {held.why}"
                step = BisectStep(commit=commit, told=known.get(held.standing, "skip"), why=why)
            say(f"{commit[:12]} {step.told}: {step.why}")
            return step

        return search(commits, measure, subject, hint)


def refuse_changes(places: Checkouts) -> None:
    """Raise InputError if the working tree has uncommitted changes."""
    if places.tree().commit.dirty:
        raise InputError("--bisect: uncommitted changes are in no commit: commit or stash them first")
