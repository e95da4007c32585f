"""The gate: every budget of a project measured, judged, and where it is missed explained."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hotloop.core.code import git
from hotloop.core.errors import ExitCode, HotloopError, InputError, worst
from hotloop.core.progress import Progress, silent
from hotloop.core.project import Budget, Project, parse
from hotloop.core.record.record import Record, read
from hotloop.judge.gate import weakened
from hotloop.lab.compare.commits import Say
from hotloop.lab.gate.explain import Profiles, explained
from hotloop.lab.gate.init import branch_of
from hotloop.lab.gate.measure import How, against_of, commit_of, gauged, not_itself
from hotloop.lab.gate.places import Gauges, Places
from hotloop.stats.summary import with_metrics

FOLDER = Path("artifacts/gate")
"""Where records go, below the project's folder, unless somebody says otherwise."""

FAILURES = ("missed",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One budget, and what came of it."""

    budget: Budget
    record: Record | None
    """None where it could not be measured at all."""
    error: str | None = None
    code: ExitCode

    @property
    def is_missed(self) -> bool:
        """Whether it is red for what was measured, so that there is something to explain."""
        held = self.record.held if self.record else None
        return held is not None and held.standing in FAILURES and held.enforced


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of all budgets."""

    rows: tuple[Row, ...]

    @property
    def code(self) -> ExitCode:
        return worst(row.code for row in self.rows)

    @property
    def records(self) -> list[Record]:
        return [row.record for row in self.rows if row.record]


def chosen(project: Project, only: Sequence[str]) -> list[Budget]:
    """The budgets that were asked for by name, or all; InputError where one is not there."""
    return [project.budget(name) for name in only] if only else list(project.budgets.values())


def run(
    budgets: Sequence[Budget], how: How, progress: Progress = silent, *, say: Say = lambda words: None
) -> Result:
    """Measure each target once for all its budgets; one that cannot be measured keeps no other from it."""
    rows: dict[int, Row] = {}
    for group in by_target(budgets):
        with Gauges(budgets[group[0]].measured) as gauges:
            for place in group:
                budget, number = budgets[place], f"{len(rows) + 1} of {len(budgets)}"
                say(f"{number}: {budget.name}, {budget.metric} of {budget.words}")
                rows[place] = one(budget, how, gauges, progress)
    return Result(rows=tuple(rows[place] for place in range(len(budgets))))


def by_target(budgets: Sequence[Budget]) -> list[list[int]]:
    """Return the places of budgets, those of a target together; the strictest change from a commit first."""
    groups: dict[str, list[int]] = {}
    for place, budget in enumerate(budgets):
        groups.setdefault(budget.words, []).append(place)

    def turn(place: int) -> tuple[bool, float]:
        return budgets[place].max_change is None, budgets[place].max_change or 0.0

    return [sorted(group, key=turn) for group in groups.values()]


def one(budget: Budget, how: How, gauges: Gauges, progress: Progress) -> Row:
    """One budget, measured; an error is its row's."""
    try:
        record = gauged(budget, how, gauges, progress)
    except HotloopError as error:
        gauges.restart()
        said = f"line {budget.line}: budget.{budget.name}: {' '.join(str(error).split())}"
        return Row(budget=budget, record=None, error=said, code=error.exit_code)
    return Row(budget=budget, record=record, code=ExitCode(record.exit_code))


def weaker(project: Project, places: Places) -> list[str]:
    """The budgets that were removed or loosened since the main branch was left, or its last commit."""
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


def with_reasons(result: Result, how: How, profiles: Profiles) -> Result:
    """The same, where a budget that is missed against a commit says in which phase and function."""
    return replace(result, rows=tuple(reasoned(row, how, profiles) for row in result.rows))


def reasoned(row: Row, how: How, profiles: Profiles) -> Row:
    """A row with what changed; what cannot be profiled is left as it is."""
    if not row.is_missed or row.budget.program is not None or row.record is None:
        return row
    against = against_of(row.budget, how)
    if against is None or against.place is None:
        return row
    record = explained(row.record, row.budget, against.place, how.places.tree(), profiles)
    return replace(row, record=record)


def trend(folder: Path, name: str, latest: int = 20) -> list[Record]:
    """Earlier records of a budget, oldest first: the distance to its limit over time."""
    found = sorted(earlier(folder, name), key=lambda record: record.created)
    return found[-latest:]


def earlier(folder: Path, name: str) -> Iterator[Record]:
    for path in folder.glob(f"*-{name}*.json"):
        try:
            record = read(path)
        except HotloopError:  # somebody else's file is no part of a trend
            continue
        if record.held and record.held.name == name:
            yield with_metrics(record)
