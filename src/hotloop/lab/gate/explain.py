"""Why a budget is missed: both places profiled, and the difference by phase, span and function.

Profiles are kept by commit and target, so that one that was measured before is not measured again.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hotloop.core.code import git
from hotloop.core.errors import HotloopError
from hotloop.core.files import free_path, write_new
from hotloop.core.machine import machine
from hotloop.core.notices import Code, notice
from hotloop.core.project import Budget
from hotloop.core.record import stacks
from hotloop.core.record.profile import WALL, Finding, Table
from hotloop.core.record.record import Record, file_name, read
from hotloop.core.record.stacks import Stack
from hotloop.lab.gate.places import Gauge, Place

PROBE = "difference"

STACKS = "samples.speedscope.json"
"""What the sampling probe calls its stacks."""

SMALLEST = 0.002
"""Of the time then: what changed by less is left out."""

MOST_ROWS = 15

BY_OWN_TIME = "Functions, by their own time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A profile of a place, and where its stacks are."""

    record: Record
    stacks: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiles:
    """The profiles of commits, in a folder: continuous profiling."""

    folder: Path

    def of(self, budget: Budget, place: Place) -> Kept:
        """The profile of a place: a kept one of the same commit and machine, or a new one."""
        stem = file_name(f"{place.commit.sha[:12]}-{budget.words}")
        path = self.folder / f"{stem}.json"
        if not place.commit.dirty and (kept := self._kept(path)):
            return kept
        self.folder.mkdir(parents=True, exist_ok=True)
        path = free_path(path)
        room = self.folder / f".{path.stem}"
        room.mkdir(exist_ok=True)
        try:
            with Gauge(place, budget.measured) as gauge:
                record = gauge.measure("profile", folder=str(room.resolve()))
            found = room / STACKS
            beside = path.with_suffix(f".{STACKS}")
            if found.exists():
                stacks.write(beside, "samples", within(place.folder, stacks.read(found)))
            write_new(path, record.to_json())
        finally:
            for left in room.iterdir():
                left.unlink()
            room.rmdir()
        return Kept(record=record, stacks=beside if beside.exists() else None)

    def _kept(self, path: Path) -> Kept | None:
        """A profile that was kept, if it is of this machine."""
        try:
            record = read(path)
        except HotloopError:
            return None
        beside = path.with_suffix(f".{STACKS}")
        same = record.machine["fingerprint"] == machine()["fingerprint"]
        return Kept(record=record, stacks=beside if beside.exists() else None) if same else None


def within(folder: Path, found: Mapping[Stack, float]) -> dict[Stack, float]:
    """The same stacks with files of a place by their paths in it, so that two places can be compared."""
    home = f"{folder.resolve()}/"
    told: Counter[Stack] = Counter()
    for stack, seconds in found.items():
        told[tuple((name, file.removeprefix(home), line) for name, file, line in stack)] += seconds  # type: ignore[assignment]
    return dict(told)


def explained(record: Record, budget: Budget, then: Place, now: Place, profiles: Profiles) -> Record:
    """A record with what changed between two places; a notice where that cannot be looked at."""
    try:
        before, after = (profiles.of(budget, place) for place in (then, now))
    except HotloopError as error:
        said = notice(Code.NO_PROBE, probe=PROBE, why=str(error), remedy="mend that, and run the gate again")
        return replace(record, notices=(*record.notices, said))
    whole = slower(record)
    tables = [phase_table(before.record, after.record, whole)]
    facts = {"then": before.record.run_id, "now": after.record.run_id, "times_as_long": whole}
    if before.stacks and after.stacks:
        sampled = stacks.read(before.stacks), stacks.read(after.stacks)
        tables = [*function_tables(*sampled, whole, own_files(now.folder)), *tables]
        facts |= {"stacks_then": str(before.stacks), "stacks_now": str(after.stacks)}
    found = Finding(probe=PROBE, facts=facts, tables=tuple(each for each in tables if each.rows))
    return replace(record, findings=(*record.findings, found))


def slower(record: Record) -> float:
    """How many times as long it takes now, by what was measured for the budget: in turns, or counted."""
    held = record.held
    if held is None or held.change is None:
        return 1.0
    is_time = held.metric.startswith(("phase", "instructions")) and not held.more_is_better
    if held.more_is_better:
        return 1 / (1 + held.change.value)
    return 1 + held.change.value if is_time and not held.metric.startswith("phase") else 1.0


def phase_table(before: Record, after: Record, whole: float) -> Table:
    """Every phase and span by how much it grew, as shares of the time that an env-step took then."""
    then = {phase.path: phase.share for phase in before.phases if phase.path != WALL}
    now = {phase.path: phase.share * whole for phase in after.phases if phase.path != WALL}
    return Table(title="Phases and spans", columns=COLUMNS["phase"], rows=rows(then, now))


def own_files(folder: Path) -> frozenset[str]:
    """The files of a project, by the ends of their paths: installed, they lie elsewhere."""
    return frozenset(map(stacks.short, (git(folder, "ls-files", "*.py") or "").splitlines()))


def function_tables(
    before: Mapping[Stack, float], after: Mapping[Stack, float], whole: float, own: Container[str]
) -> list[Table]:
    """Every function by how much its own time grew, the same way.

    First those of the project, where they call any other: what a library takes is said of who asked it to.
    """

    def innermost(stack: Stack) -> tuple[str, str]:
        return stack[-1][:2]

    def asker(stack: Stack) -> tuple[str, str]:
        mine = (frame for frame in reversed(stack) if stacks.short(frame[1]) in own)
        return next(mine, stack[-1])[:2]

    titles = {"Functions of the project, with the libraries they call": asker, BY_OWN_TIME: innermost}
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
    """Each function's part of the whole, which may be so many times as long, its lines together."""
    own: defaultdict[str, float] = defaultdict(float)
    whole = sum(found.values()) or 1.0
    for stack, seconds in found.items():
        own[placed(whose(stack))] += seconds / whole * times
    return dict(own)


def placed(function: tuple[str, str]) -> str:
    name, file = function
    return f"{name} ({stacks.short(file)})" if file and file != "~" else name


def rows(then: Mapping[str, float], now: Mapping[str, float]) -> tuple[tuple[object, ...], ...]:
    """Name, then, now and the difference; what grew most first, what shrank most last."""
    changed = [(name, then.get(name, 0.0), now.get(name, 0.0)) for name in {**then, **now}]
    told = [(name, a, b, b - a) for name, a, b in changed if abs(b - a) >= SMALLEST]
    return tuple(sorted(told, key=lambda row: -row[3])[:MOST_ROWS])
