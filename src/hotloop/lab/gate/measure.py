"""Measuring for a budget: the present code, in turns with what it is held against where that is a commit."""

import json
import os
import re
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.machine import git, machine
from hotloop.core.process.worker import Worker
from hotloop.core.progress import Progress, silent
from hotloop.core.project import Budget
from hotloop.core.record import Record
from hotloop.core.record.comparison import Comparison
from hotloop.core.record.experiments import BudgetResult
from hotloop.core.record.metadata import own_commit
from hotloop.core.settings import Target
from hotloop.judge import baselines
from hotloop.judge.checks import (
    MEMORY,
    change_of_speed,
    downgrade_if_unmeasurable,
    hold,
    lacked_cpu,
    needs_another,
    settle,
    values_of,
)
from hotloop.judge.compare import compare_stored
from hotloop.judge.judge import judge
from hotloop.lab.compare.commits import (
    TREE,
    Checkout,
    Commit,
    Say,
    prepare,
    python_of,
    resolve,
    root_of,
    side_environment,
    worker_settings,
)
from hotloop.lab.compare.compare import CompareSettings, measure_comparison
from hotloop.lab.compare.process import CommitContender
from hotloop.lab.measure.loop import Plan
from hotloop.lab.measure.sides import Garbage
from hotloop.lab.programs import measure as programs
from hotloop.lab.programs.launch import Metric, Program
from hotloop.options.bench import BenchProgramOptions
from hotloop.options.gate import GateOptions
from hotloop.stats.summary import FEWEST, outcome, with_metrics

KIND = "gate"

SPEEDS = ("env_steps_per_s", "agent_steps_per_s")
COUNTED = "instructions_per_env_step"

LOOKS, PROCESSES = 6, 3  # Pairs of looks at the phases, and of processes whose memory is read
ROUNDS = 12  # Of a speed that is measured alone

# How many times as long each further run may take, and how many times as long as the first at most
LONGER, LONGEST = 3, 9

# What stands after the name of a metric that a program prints
NUMBER = r"\s*[=:]\s*([-+]?[\d.,_]+(?:[eE][-+]?\d+)?)"


BRANCHES = ("main", "master", "trunk", "develop")

GAUGE = Path(__file__).parents[1] / "workers" / "gauge.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class CodePlace:
    """Where code lies that is measured, and what runs it."""

    commit: Commit
    folder: Path
    python: Path
    environment: Mapping[str, str]  # For what measures it with Hotloop
    bare: Mapping[str, str]  # For what knows nothing of Hotloop
    is_tree: bool = False

    @property
    def name(self) -> str:
        return self.commit.name

    def checkout(self, target: Target, root: Path, garbage: Garbage = "between") -> Checkout:
        """Return what opens the target here, in a process of its own."""
        tree = {} if self.is_tree else {"tree": str(root.resolve())}
        return Checkout(
            commit=self.commit,
            place=self.folder,
            target=target,
            settings=worker_settings(target, garbage, **tree),
            environment=self.bare,
            python=self.python if self.is_tree else None,
        )


class Checkouts(ExitStack):
    """The working tree of a project and commits of it; each commit is built once, and gone at the end."""

    def __init__(self, project: Path, *, build: str | None = None, say: Say) -> None:
        super().__init__()
        self.project, self._build, self._say = project.resolve(), build, say
        room = tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True)
        self._room = Path(self.enter_context(room))
        self._built: dict[str, CodePlace] = {}

    @property
    def root(self) -> Path:
        return root_of(self.project)

    @property
    def builds(self) -> int:
        """How many commits were built."""
        return len(self._built)

    def tree(self) -> CodePlace:
        """What lies in the project's folder now, run by the present Python."""
        sha = git(self.project, "rev-parse", "HEAD") or "unknown"
        dirty = sha != "unknown" and bool(git(self.project, "status", "--porcelain", "--untracked-files=no"))
        return CodePlace(
            commit=Commit(ref=TREE, sha=sha, dirty=dirty),
            folder=self.project,
            python=Path(sys.executable),
            environment=dict(os.environ),
            bare=dict(os.environ),
            is_tree=True,
        )

    def at(self, ref: str) -> CodePlace:
        """A commit, built in a folder of its own; InputError where it does not build."""
        commit = resolve(self.root, ref)
        if commit.sha not in self._built:
            room = self._room / commit.sha[:12]
            room.mkdir()
            folder = prepare(self.root, commit, room / "code", self.project, self._build, self._say)
            self._built[commit.sha] = place_of(commit, folder, side_environment(folder, room))
        return self._built[commit.sha]


def branch_of(folder: Path) -> str | None:
    """Return the branch that others are merged into, by the remote or by its usual names."""
    remote = git(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if remote:
        return remote.removeprefix("origin/")
    known = (git(folder, "branch", "--format=%(refname:short)") or "").split()
    current = git(folder, "branch", "--show-current") or None
    return next((name for name in BRANCHES if name in known), current)


def place_of(commit: Commit, folder: Path, bare: Mapping[str, str]) -> CodePlace:
    """Return a checkout with the Python that measures it: its own if that has Hotloop, else this one."""
    own = python_of(folder)
    packages = folder / ".venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    if own.exists() and (packages / "hotloop").exists():
        return CodePlace(commit=commit, folder=folder, python=own, environment=bare, bare=bare)
    first = [*([str(packages)] if own.exists() else []), str(folder), str(folder / "src")]
    path = os.pathsep.join([*first, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**bare, "PYTHONPATH": path}
    return CodePlace(
        commit=commit, folder=folder, python=Path(sys.executable), environment=environment, bare=bare
    )


class RemoteMeasurer(Worker):
    """A process that measures a target at a place; workers/gauge.py is what it runs."""

    def __init__(self, place: CodePlace, target: Target, policy: str = "random") -> None:
        self._place = place
        settings = json.dumps({"target": target.plain(), "policy": policy})
        super().__init__(
            target.words if place.is_tree else f"{target.words} at {place.name}",
            [str(place.python), "-P", str(GAUGE), settings],
            place.environment,
            place.folder,
        )
        try:
            self.answer()
        except BaseException:
            self.close()
            raise

    def measure(self, do: str, **order: object) -> Record:
        """Have it measure once; InputError if what it measured was not this place's code."""
        record = with_metrics(Record.from_json(self.ask(do=do, **order)["record"]))
        ran = own_commit(record.code)[0]
        if not self._place.is_tree and ran not in (self._place.commit.sha, "unknown"):
            raise InputError(
                f"{self._place.name}: code of {ran[:12]} was loaded, which is not the commit's: "
                "the build must install the project into .venv of the checkout"
            )
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurements:
    """What one measurement left, which budgets read."""

    ours: Sequence[Record]
    # Of the other place, where it was not measured in turns with ours in one record
    theirs: Sequence[Record] = ()


class Measurers(ExitStack):
    """What measures one target for all its budgets, and what it measured; open from one run to the next."""

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._target = target
        self._open: dict[tuple[Path, str], RemoteMeasurer] = {}
        # By what was measured, where, in turns with what, and how often before
        self.taken: dict[tuple[object, ...], Measurements] = {}
        # By what was measured: the commit that took turns with the present code
        self.turns: dict[str, CodePlace] = {}

    def at(self, place: CodePlace, kind: str) -> RemoteMeasurer:
        """Return the process that measures one kind of thing at a place."""
        key = place.folder, kind
        if key not in self._open:
            self._open[key] = self.enter_context(RemoteMeasurer(place, self._target))
        return self._open[key]

    def restart(self) -> None:
        """Begin with new processes: one of these may have ended."""
        self._open.clear()
        self.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Against:
    """What a relative budget is held against."""

    name: str
    place: CodePlace | None = None
    record: Record | None = None
    doubt: str | None = None  # Why there is nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One measurement for a budget."""

    record: Record
    now: tuple[float, ...]
    then: tuple[float, ...] = ()
    comparison: Comparison | None = None
    doubt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GateContext:
    """How budgets are measured."""

    places: Checkouts
    today: date
    options: GateOptions = field(default_factory=GateOptions)


def against_of(budget: Budget, how: GateContext) -> Against | None:
    """Return what a budget is relative to; None if its limit is absolute.

    A branch means the commit where it was left: later commits on it do not count.
    """
    word = budget.against
    if word is None:
        return None
    if baselines.is_kept(word, machine()):
        try:
            return Against(name=f"baseline {word}", record=baselines.find(word, machine()))
        except InputError as error:
            return Against(name=f"baseline {word}", doubt=str(error))
    sha = commit_of(how.places.project, word)
    if sha is None:
        remedy = f"commit, fetch or tag it, or hotloop bench {budget.words} --save-baseline {word}"
        if "/" in word or baselines.names_file(word):
            remedy = f"git fetch it (actions/checkout needs fetch-depth: 0), or keep a record as {word}"
        return Against(name=word, doubt=f"there is no baseline {word} yet, and no such commit: {remedy}")
    before = not_itself(how.places, sha)
    if before is None:
        return Against(name=word, doubt=f"there is no baseline yet: {word} is the first commit, and this one")
    place = how.places.at(before)
    place = replace(place, commit=replace(place.commit, ref=word if before == sha else f"{word}, before it"))
    return Against(name=place.name, place=place)


def commit_of(folder: Path, word: str) -> str | None:
    """Return the commit where HEAD left a branch, a tag or a hash; None if there is none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
    sha = git(folder, *words)
    return sha and (git(folder, "merge-base", sha, "HEAD") or sha)


def not_itself(places: Checkouts, sha: str) -> str | None:
    """Return the commit, or the one before if it is what lies here: nothing is its own baseline."""
    tree = places.tree()
    if sha != tree.commit.sha or tree.commit.dirty:
        return sha
    return git(places.project, "rev-parse", "--verify", "--quiet", f"{sha}^1")


def measure_budget(
    budget: Budget,
    how: GateContext,
    against: Against | None,
    now: CodePlace,
    gauges: Measurers,
    progress: Progress = silent,
) -> Record:
    """Measure for a budget, as often as it takes, and judge: the record is of the last run.

    What `gauges` measured for another budget of the target already is not measured again.
    """
    runs: list[BudgetResult] = []
    missing = against is not None and against.doubt is not None  # which no further run would find
    while not runs or (needs_another(runs) and not missing):
        asked = Measurement(budget=budget, how=how, against=against, now=now, gauges=gauges, run=len(runs))
        measured = measure(asked, progress)
        comparison = measured.comparison
        held = hold(
            budget,
            how.today,
            now=measured.now,
            then=measured.then,
            change=change_of_speed(comparison) if comparison else None,
            against=against.name if against else None,
            doubt=(against.doubt if against else None) or measured.doubt,
            difference=None if comparison is None or how.options.unlike else comparison.difference,
        )
        runs.append(downgrade_if_unmeasurable(held, lacked_cpu(budget, measured.record)))
    settled, created = settle(runs), utc_now().isoformat(timespec="seconds")
    kept = replace(measured.record, kind=KIND, label=budget.name, held=settled, created=created)
    return judge(with_metrics(kept))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measurement that is to be made."""

    budget: Budget
    how: GateContext
    against: Against | None
    now: CodePlace
    gauges: Measurers
    run: int  # How often it was measured before

    @property
    def then(self) -> CodePlace | None:
        return self.against.place if self.against else None

    @property
    def plan(self) -> Plan:
        """Of a comparison: each further one may take longer."""
        seconds = self.how.options.budget * min(LONGER**self.run, LONGEST)
        return Plan(band=band_of(self.budget), budget_ns=round(seconds * 1e9))


def measure(asking: Measurement, progress: Progress = silent) -> Measured:
    """Make a measurement, or read what another budget of the same target had measured."""
    then = asking.then
    if then is None and not (asking.against and asking.against.record):  # in another budget's turns
        then = asking.gauges.turns.get(kind_of(asking.budget))
    taken = take(asking, then, progress)
    if asking.budget.program is not None:
        return of_program(asking, then, taken)
    if asking.budget.metric in SPEEDS:
        if asking.then is None and then is not None and not turned_speeds(asking.budget, taken):
            return of_speed(asking, None, take(asking, None, progress))
        return of_speed(asking, then, taken)
    return of_looks(asking, taken)


def kind_of(budget: Budget) -> str:
    """Return what has to be measured for a budget's metric."""
    if budget.program is not None:
        return f"{budget.part} {budget.pattern}" if budget.part else "runs"
    if budget.metric in SPEEDS:
        return "speed"
    return budget.metric if budget.metric in (MEMORY, COUNTED) else "phases"


def take(asking: Measurement, then: CodePlace | None, progress: Progress) -> Measurements:
    """Measure by what the metric needs, once for all budgets of the target."""
    kind, gauges = kind_of(asking.budget), asking.gauges
    key = kind, asking.now.folder, then and then.folder, asking.run
    if key in gauges.taken:
        return gauges.taken[key]
    if asking.budget.program is not None:
        taken = Measurements(ours=[program_runs(asking, then, progress)])
    elif kind == "speed" and then is not None:
        taken = in_turns(asking, then, progress)
    elif kind == "speed":
        taken = Measurements(ours=[gauges.at(asking.now, kind).measure("bench", count=ROUNDS)])
    else:
        taken = by_processes(asking, then) if kind == MEMORY else measure_alternating(asking, then)
    gauges.taken[key] = taken
    if asking.then is not None:
        gauges.turns[kind] = asking.then
    return taken


def of_speed(asking: Measurement, then: CodePlace | None, taken: Measurements) -> Measured:
    """Return the speed of the present code, and its comparison if the budget is relative to a commit."""
    budget, [record] = asking.budget, taken.ours
    if then is None:
        return with_baseline(budget, asking.against, [record])
    speeds = turned_speeds(budget, taken)
    if asking.then is None:
        return Measured(record=replace(record, comparisons=()), now=speeds)
    found = record.comparisons[0]
    return Measured(record=record, now=speeds, comparison=found, doubt=inconclusive_reason(found))


def turned_speeds(budget: Budget, taken: Measurements) -> tuple[float, ...]:
    """Return the speeds of the present code in its turns; empty if the two answered differently."""
    [record] = taken.ours
    agents = record.work.agent_steps / max(record.work.env_steps, 1) if budget.metric == SPEEDS[1] else 1
    return tuple(agents * 1e9 / ns for ns in record.values.get("b.ns_per_env_step", ()))


def of_looks(asking: Measurement, taken: Measurements) -> Measured:
    """Return the phases, counts or memory that were measured, beside what the budget is relative to."""
    budget, ours, theirs = asking.budget, taken.ours, taken.theirs
    if asking.then is None:
        return with_baseline(budget, asking.against, ours)
    sets = {record.instructions.isa for record in (*ours, *theirs) if record.instructions}
    if budget.metric == COUNTED and len(sets) > 1:
        return Measured(record=ours[0], now=(), doubt="the two were counted on different instruction sets")
    now, then = (tuple(values_of(budget, each)[0] for each in side) for side in (ours, theirs))
    return Measured(record=ours[-1], now=now, then=then)


def with_baseline(budget: Budget, against: Against | None, records: Sequence[Record]) -> Measured:
    """Return what was measured alone, beside a saved baseline if there is one."""
    now = tuple(value for record in records for value in values_of(budget, record))
    last, kept = records[-1], against.record if against else None
    if kept is None:
        return Measured(record=last, now=now)
    if budget.metric in SPEEDS:
        compared = compare_stored(kept, last, band=band_of(budget))
        return Measured(record=last, now=now, comparison=compared, doubt=inconclusive_reason(compared))
    if kept.machine["fingerprint"] != last.machine["fingerprint"]:
        return Measured(record=last, now=now, doubt="the baseline is of another machine: keep one of this")
    then = values_of(budget, kept)
    return Measured(record=last, now=now, then=(sum(then) / len(then),) * len(now))


def band_of(budget: Budget) -> float:
    """Return the band whose lower edge is the largest change for the worse that is allowed."""
    change = budget.max_change or 0.0
    return change / (1 - change)


def inconclusive_reason(comparison: Comparison) -> str | None:
    """Return why a comparison's interval must not be read; None if it may, or says so by itself."""
    if comparison.ratio is None:
        return comparison.why
    said = outcome(comparison.ratio, comparison.band)
    return comparison.why if said != "cannot tell" and comparison.outcome == "cannot tell" else None


def in_turns(asking: Measurement, then: CodePlace, progress: Progress) -> Measurements:
    """Measure the speed of two places in turns, after both answered alike."""
    budget, how = asking.budget, asking.how
    a, b = (CommitContender(place.checkout(budget.measured, how.places.root)) for place in (then, asking.now))
    asked = CompareSettings(plan=asking.plan, unlike=how.options.unlike, replayed=not how.options.unlike)
    with closing(a), closing(b):
        record = measure_comparison(a, b, asked, progress)
    if record.partial:
        raise KeyboardInterrupt
    return Measurements(ours=[record])


def measure_alternating(asking: Measurement, then: CodePlace | None) -> Measurements:
    """Count instructions, or profile phases, at both places in turn, over the same env-steps.

    Repeat instruction counts in new processes so that memory layout varies.
    """
    kind = kind_of(asking.budget)
    counted = kind == COUNTED
    do, looks = ("count", 1) if counted else ("phases", LOOKS)
    order: dict[str, int] = {"layout": asking.run} if counted else {}
    gauges = [asking.gauges.at(place, kind) for place in (asking.now, then) if place]
    first = gauges[0].measure(do, **order)
    stretch = first.method.rounds * first.method.iterations  # env-steps of every look
    if counted:
        assert first.instructions is not None
        stretch = first.instructions.runs[-1][0]
    taken: list[list[Record]] = [[first] if counted else [], []]
    for look in range(looks):
        sides = list(zip(gauges, taken, strict=False))
        for gauge, records in sides if look % 2 else reversed(sides):
            if not (counted and records):
                records.append(gauge.measure(do, env_steps=stretch, **order))
    return Measurements(ours=taken[0], theirs=taken[1])


def by_processes(asking: Measurement, then: CodePlace | None) -> Measurements:
    """Measure the memory of new processes, the two places in turns."""
    taken: list[list[Record]] = [[], []]
    for _ in range(PROCESSES):
        for place, records in zip((asking.now, then), taken, strict=True):
            if place is not None:
                with RemoteMeasurer(place, asking.budget.measured) as gauge:
                    records.append(gauge.measure("bench", count=FEWEST))
    return Measurements(ours=taken[0], theirs=taken[1])


def program_runs(asking: Measurement, then: CodePlace | None, progress: Progress) -> Record:
    """Measure whole runs of a program, in turns with the same at the other place."""
    program, metric = Program.parse(asking.budget.program or ""), printed(asking.budget)
    if then is None:
        record = programs.bench(program, BenchProgramOptions(), progress, metric=metric)
    else:
        words = [inside(place, program) for place in (then, asking.now)]
        record = programs.compare(words, asking.plan, progress, metric=metric)
    if record.partial:
        raise KeyboardInterrupt
    return record


def of_program(asking: Measurement, then: CodePlace | None, taken: Measurements) -> Measured:
    """Return what the runs of a program took or printed."""
    budget, [record] = asking.budget, taken.ours
    if then is None:
        return Measured(record=record, now=values_of(budget, record))
    name = budget.part or budget.metric
    a, b = (record.values[f"{side}.{name}"] for side in "ab")
    if asking.then is None:
        return Measured(record=replace(record, comparisons=()), now=b)
    found = record.comparisons[0]
    if budget.kind.more_is_better:
        return Measured(record=record, now=b, comparison=found, doubt=inconclusive_reason(found))
    doubt = None if budget.metric == MEMORY else inconclusive_reason(found)
    return Measured(record=record, now=b, then=a, doubt=doubt)


def printed(budget: Budget) -> Metric | None:
    """Return the metric that a program prints: by its own pattern, or as `name=number` or `name: number`."""
    if not budget.part:
        return None
    named = rf"(?<!\w){re.escape(budget.part)}{NUMBER}"
    pattern = re.compile(budget.pattern or named, re.MULTILINE)
    return Metric(name=budget.part, pattern=pattern, less_is_better=not budget.kind.more_is_better)


def inside(place: CodePlace, program: Program) -> Program:
    """Return a program that runs in a place's folder, with that place's Python first."""
    tools = place.folder / ".venv" / "bin"
    script = 'cd "$0" && PATH="$1:$PATH" && shift && exec "$@"'
    return Program(("sh", "-c", script, str(place.folder), str(tools), *program.words))
