"""Scale: what a target costs at every place of a grid, measured in shuffled order with repeats.

Every place is a cell: how many steps it makes follows from the target and what was asked, so the same sweep
twice does the same work; only a call that takes long makes them ten times fewer, or a hundred.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import product
from statistics import fmean, median
from typing import Any, TypeVar, get_origin

from hotloop.core import registry, spans
from hotloop.core.clock import now_ns, utc_now
from hotloop.core.errors import Code, InputError, notice, unknown
from hotloop.core.process import lifeline
from hotloop.core.progress import Progress, silent
from hotloop.core.record import CPU_SHARE, Record, run_id
from hotloop.core.record.experiments import (
    CPU_NS,
    ELSE,
    PHASE,
    RSS,
    RUN_NS,
    STEP_NS,
    TIMED_NS,
    Refused,
    Sweep,
    SweepPoint,
)
from hotloop.core.record.metadata import own_commit
from hotloop.core.settings import Target, describe
from hotloop.core.time_tree import TimeTree
from hotloop.core.turn_clock import timed
from hotloop.envs.foreign.inside import ENV_STEP
from hotloop.envs.foreign.phases import Function, find, home_of, watching
from hotloop.envs.spec import BatchSettings
from hotloop.judge.judge import judge
from hotloop.judge.sweep import conclude
from hotloop.lab.measure import loop
from hotloop.lab.measure.loop import NO_LIMIT, Length, Samples, calm_or_all, until_interrupted
from hotloop.lab.measure.policy import play_of
from hotloop.lab.measure.record import Recorder, describe_method, describe_validation, throughput
from hotloop.lab.measure.resources import release_memory, resident_bytes
from hotloop.lab.measure.sides import SubjectSide, calls_for, no_collection, play
from hotloop.lab.measure.target import open_subject
from hotloop.lab.sweep.cells import Cell, CellCache, CellResult, Executor, LocalExecutor, run_again, sweep
from hotloop.lab.training import settings as training
from hotloop.options.sweeps import ScaleOptions

STEPS = "steps"  # The axis that is the length of a run, and no key of the target

ALIASES = {"envs": "num_envs"}

# The classic ones, for whatever has such keys; a world may have its own of the same name, and more
GRIDS: Mapping[str, Mapping[str, str]] = {
    "agents": {"agents": "10,20,50,100,200,500,1000"},
    "steps": {STEPS: "100,200,500,1000,2000,5000"},
    "envs": {"num_envs": "50,100,200,300,400,500"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlace:
    """One place on the axes."""

    at: dict[str, str]  # Axis to value
    keys: dict[str, str]  # What the target is given for it

    @property
    def steps(self) -> int | None:
        """How long a run is, where that is an axis."""
        return int(self.at[STEPS]) if STEPS in self.at else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """The places of a sweep."""

    target: Target  # With the keys that stay the same
    values: dict[str, tuple[str, ...]]  # Axis to its values, in the order they were given
    places: tuple[SweepPlace, ...]

    def target_at(self, place: SweepPlace) -> Target:
        return self.target.with_keys(place.keys)

    @property
    def words(self) -> str:
        """As they would be typed."""
        return " ".join(f"{axis}={','.join(values)}" for axis, values in self.values.items())


Rows = Mapping[str, Mapping[str, str]]  # The sizes of an axis, each to the keys that make it


def read(target: Target, grid: str | None = None, *, kind: str = "scale") -> Axes:
    """Split a target's keys into those of one value and axes; refuse a target without an axis."""
    single, several = split_keys(target)
    rows = dict[str, Rows]() if grid is None else dict([grid_of(target, grid)])
    rows |= {axis: plain_rows(axis, values) for axis, values in several.items()}
    if not rows:
        grids = ", or --grid NAME" if kind == "scale" else ""
        raise InputError(
            f"{kind} needs an axis: a key with several values, such as agents=10,100,1000{grids}"
        )
    check_values({axis: tuple(sizes) for axis, sizes in rows.items()})
    return Axes(
        target=replace(target, keys=single),
        values={axis: tuple(sizes) for axis, sizes in rows.items()},
        places=tuple(places_of(rows)),
    )


def plain_rows(axis: str, values: Sequence[str]) -> Rows:
    """Return the sizes of an axis that is a key, or the length of a run."""
    return {value: {} if axis == STEPS else {axis: value} for value in values}


def grid_of(target: Target, grid: str) -> tuple[str, Rows]:
    """Return the axis of a grid and its sizes, by the grid's name: a world's own, or a classic one."""
    own = {} if target.is_foreign else registry.find(target.name).world.sizes
    if grid in own:
        sizes = own[grid].items()
        return grid, {f"{size:g}": {key: str(value) for key, value in keys.items()} for size, keys in sizes}
    if grid in GRIDS:
        [(axis, values)] = GRIDS[grid].items()
        return axis, plain_rows(axis, values.split(","))
    there = list(dict.fromkeys([*GRIDS, *own]))
    raise unknown("grid", grid, there, f"{target.name} has {', '.join(there)}")


def split_keys(target: Target) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Return the keys of one value, and the axes."""
    single, several = dict[str, Any](), dict[str, tuple[str, ...]]()
    infos: list[Any] = []  # what is declared of the keys of our worlds
    if not target.is_foreign:
        world = registry.find(target.name).world
        infos = [*describe(world.parameters), *describe(BatchSettings)]
    # keys whose one value has commas in it cannot be axes
    lists = {info.name for info in infos if get_origin(info.annotation) is tuple} | training.keys_of_lists()
    has_steps = any(info.name == STEPS for info in infos)
    for key, value in target.keys.items():
        name = ALIASES.get(key, key)
        if isinstance(value, str) and "," in value and name not in lists:
            several[name] = tuple(word.strip() for word in value.split(","))
        elif name == STEPS and not has_steps:
            several[name] = (str(value),)
        else:
            single[name] = value
    return single, several


def check_values(several: Mapping[str, Sequence[str]]) -> None:
    """Refuse axes of one value, of an empty one, or of no length."""
    for axis, values in several.items():
        if len(values) < 2:
            raise InputError(f"{axis}={values[0]} is one value: an axis needs several, as {axis}=10,100,1000")
        if "" in values:
            raise InputError(f"{axis}={','.join(values)}: a value is empty; take out a comma")
    for word in several.get(STEPS, ()):
        if not word.isdecimal() or int(word) < 1:
            raise InputError(f"steps={word} does not fit: expected a length of at least 1")


def places_of(rows: Mapping[str, Rows]) -> Iterator[SweepPlace]:
    """Yield every combination of sizes."""
    for values in product(*rows.values()):
        at = dict(zip(rows, values, strict=True))
        keys = dict[str, str]()
        for axis, value in at.items():
            keys |= rows[axis][value]
        yield SweepPlace(at=at, keys=keys)


KIND = "scale"

EXPERIMENT = f"{__name__}:measure"

ROUNDS = 5  # Of a cell; it gives their median
WHOLE = "step"  # What the whole of a step is called beside its phases
TRIED = 3  # Calls that tell how long one takes
BOX_NS = 300_000_000  # What a round may take; else it has ten times fewer calls
TURNS = 40  # In which phases are looked at: short, so that most end before another process gets the core

TURN_NS = 1_000_000

FEWEST_CALM = 5  # Undisturbed turns that are enough to leave out the others

WARM: set[str] = set()  # Targets that were opened in this process
CELL_S = 0.25  # What a cell takes beside its calls: its record, and the memory that is given back
MOST_TRIED = 24  # Places whose calls are tried
ENOUGH_NS = 5_000_000  # Of calls at one place, after which one of them is known well enough


def cells_of(axes: Axes, options: ScaleOptions) -> list[Cell]:
    """Return every place once per repeat, each repeat shuffled by itself: no place is always first."""
    cells = list[Cell]()
    for repeat in range(options.repeats):
        block = []
        for place in axes.places:
            told: dict[str, Any] = {"repeat": repeat, "at": place.at, "env_steps": options.env_steps}
            told |= {"policy": options.policy, "phases": not options.no_phases, "steps": place.steps}
            block.append(Cell(target=axes.target_at(place), experiment=EXPERIMENT, asked=told))
        random.Random(repeat).shuffle(block)
        cells += block
    return cells


def scale(
    axes: Axes,
    options: ScaleOptions,
    progress: Progress = silent,
    *,
    executor: Executor | None = None,
    shelf: CellCache | None = None,
    tell: Callable[[CellResult], None] = lambda _: None,
) -> Record:
    """Measure every place and say by which laws it grows; Ctrl-C leaves a record of the cells there were."""
    now = utc_now()
    so_far = list[CellResult]()

    def note(each: CellResult) -> None:
        so_far.append(each)
        if each.record is not None:
            lifeline.offer(lambda: record_of(axes, options, now, so_far, partial=True))
        tell(each)

    swept = sweep(cells_of(axes, options), executor or LocalExecutor(), shelf, progress, note)
    if not swept.records:
        if swept.interrupted:
            raise KeyboardInterrupt
        raise InputError(f"no place of {axes.words} can be measured: {swept.refused[0].refused}")
    return judge(record_of(axes, options, now, swept.done, partial=swept.interrupted))


def record_of(
    axes: Axes, options: ScaleOptions, now: datetime, done: Sequence[CellResult], *, partial: bool
) -> Record:
    """Return one record of all cells, made from the first and what all of them found."""
    records = [(each.cell, each.record) for each in done if each.record is not None]
    first = records[0][1]
    again = run_again(done)
    points = tuple(point for place in axes.places for point in point_of(place, records))
    called = {name for point in points for name in point.values}
    wanted = [] if options.no_phases else [name.rpartition(":")[2] for name in axes.target.time]
    refused = {str(each.cell.asked["at"]): each for each in done if each.record is None}  # each place once
    found = Sweep(
        axes=axes.values,
        repeats=options.repeats,
        points=points,
        refused=tuple(Refused(at=each.cell.asked["at"], why=each.refused) for each in refused.values()),
    )
    keys = {**axes.target.keys, **{axis: ",".join(values) for axis, values in axes.values.items()}}
    target = replace(first.target, name=axes.target.name, keys=keys)
    return replace(
        first,
        run_id=run_id(now, *own_commit(first.code), f"scale-{target.words}"),
        kind=KIND,
        created=now.isoformat(timespec="seconds"),
        target=target,
        method=replace(first.method, rounds=options.repeats, order="all places, shuffled in each repeat"),
        work=add_work([record for _, record in records]),
        values={},
        metrics={},
        notices=(
            *dict.fromkeys(said for _, record in records for said in record.notices),
            *(notice(Code.NEVER_CALLED, function=name) for name in wanted if f"{PHASE}{name}" not in called),
            *again,
        ),
        sweep=conclude(found, first.machine.get("usable_cores")),
        partial=partial,
    )


def add_work(records: Sequence[Record]) -> Any:
    """Return the work of all cells."""
    total = records[0].work
    names = ("env_steps", "agent_steps", "resets", "decisions", "updates", "tokens", "rows")
    return replace(
        total, coverage={}, **{name: sum(getattr(each.work, name) for each in records) for name in names}
    )


def point_of(place: SweepPlace, records: Sequence[tuple[Cell, Record]]) -> list[SweepPoint]:
    """Return what the repeats found at a place; nothing if none could be measured."""
    here = [record for cell, record in records if cell.asked["at"] == place.at]
    if not here:
        return []
    names = dict.fromkeys(name for record in here for name in record.values)
    values = {
        name: tuple(median(record.values[name]) for record in here if record.values.get(name))
        for name in names
        if name not in (CPU_SHARE, "env_steps_per_s", "episodes_per_s")
    }
    return [SweepPoint(at=place.at, values=values, env_steps=here[0].work.env_steps)]


def measure(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Measure one cell: its speed, its memory, and its phases in a pass of their own.

    If the length of a run is an axis, each round is one run, from its reset on.
    """
    policy = asked["policy"]
    if target.name not in WARM:  # so that no cell pays for what is loaded only once
        WARM.add(target.name)
        with (
            closing(open_subject(target, profile=False)) as subject,
            closing(play_of(policy, subject)) as script,
        ):
            Recorder("bench", subject.spec)
            subject.reset()
            play(subject, script.draw(1), 1)
    release_memory()
    before = resident_bytes()
    with ExitStack() as stack:
        subject = open_subject(target, profile=False)
        side = stack.enter_context(closing(SubjectSide(KIND, subject, asked["policy"], alone=True)))
        recorder = Recorder("bench", subject.spec)
        stack.enter_context(no_collection())
        subject.reset()
        calls = asked["steps"] or fitted(
            calls_for(asked["env_steps"], subject),
            min(play(subject, side.script.draw(1), 1) for _ in range(TRIED)),
        )
        play(subject, side.script.draw(calls), calls)
        side.from_reset = asked["steps"] is not None
        samples, length = Samples({KIND: side}), Length(calls * subject.spec.num_envs)
        plan = loop.Plan(rounds=ROUNDS, budget_ns=NO_LIMIT, length=length)
        with until_interrupted(samples):
            loop.measure({KIND: side}, plan, lambda done, total: progress(done, total + 1), samples=samples)
        release_memory()
        memory = resident_bytes() - before
        made = cell_record(side, recorder, samples)
    extra = {RSS: (float(memory),)} if memory > 0 else {}
    phases = {}
    if asked["phases"] and not samples.partial:
        phases = phases_of(target, asked["policy"], asked["steps"], calls)
    return replace(made, values=made.values | extra | phases)


def fitted(calls: int, call_ns: int) -> int:
    """Return so many calls, or ten times fewer until they fit the box: the same on every run."""
    while calls > 1 and calls * call_ns > BOX_NS:
        calls = max(1, calls // 10)
    return calls


def cell_record(side: SubjectSide, recorder: Recorder, samples: Samples) -> Record:
    """Return the record of a cell's rounds."""
    spec, env_steps, gained = side.subject.spec, samples.length.env_steps, samples.work[KIND].gained
    turns = samples.turns[KIND][: samples.count]
    walls = [turn.ns for turn in turns]
    costs = {
        STEP_NS: [ns / env_steps for ns in walls],
        CPU_NS: [turn.cpu_ns / env_steps for turn in turns],
        CPU_SHARE: [turn.cpu_ns / turn.ns for turn in turns],
        **({RUN_NS: [float(ns) for ns in walls]} if side.from_reset else {}),
    }
    policy = side.script.policy
    return recorder.record(
        method=describe_method(spec, rounds=ROUNDS, iterations=env_steps, policy=policy, warmup=env_steps),
        counters=gained,
        values={**throughput(spec, env_steps, walls, gained), **costs},
        partial=samples.partial,
        validation=describe_validation(side.subject.counters),
    )


R = TypeVar("R")


class NamedParts:
    """Times the functions that a target names, over a stretch of play."""

    def __init__(self, target: Target) -> None:
        home = home_of(target.name)
        self.functions = tuple(find(name, home) for name in target.time)

    def time(self, play: Callable[[], R]) -> tuple[R, dict[str, int], int]:
        """Return what `play` returns, the ns in each function and outside of all, and the ns in whole steps.

        A function that calls another has its time too, and none of its own twice.
        """
        if not self.functions:
            return play(), {}, 0
        with watching(self.functions):
            spans.enable()
            try:
                returned = play()
            finally:
                spans.disable()
        steps = [row for top in spans.tree() for row in top.walk() if is_step(row)]
        parts = {each.name: sum(time_in(row, [each]) for row in steps) for each in self.functions}
        whole_ns = sum(row.total_ns for row in steps)
        named_ns = sum(time_in(row, self.functions) for row in steps)
        return returned, {**parts, ELSE: max(whole_ns - named_ns, 0)}, whole_ns


def is_step(row: TimeTree) -> bool:
    """Return whether a row is the step of an env that is in no other one."""
    *above, name = row.path.split("/")
    return name == ENV_STEP and ENV_STEP not in above


def time_in(row: TimeTree, functions: Iterable[Function]) -> int:
    """Return the ns below a row that functions have; inside the first of them nothing is counted again."""
    names = {name for each in functions for name in each.rows}
    if row.path.rpartition("/")[2] in names:
        return row.total_ns
    return sum(time_in(child, functions) for child in row.children)


def phases_of(target: Target, policy: str, steps: int | None, calls: int) -> dict[str, tuple[float, ...]]:
    """Return the ns of an env-step in each phase, one a round, from another instance, with the instrument.

    Rounds are short turns, or whole runs if their length is an axis.
    """
    with (
        closing(open_subject(target, profile=True)) as subject,
        closing(play_of(policy, subject)) as script,
        no_collection(),
    ):
        subject.reset()
        warm = min(calls, TRIED)
        play(subject, script.draw(warm), warm)
        parts, turn, count = NamedParts(target), calls, ROUNDS
        if steps is None:
            one_ns = max(1, min(play(subject, script.draw(1), 1) for _ in range(TRIED)))
            turn, count = max(1, min(calls // TURNS, TURN_NS // one_ns)), min(calls, TURNS)
        rounds, are_calm, env_steps = list[dict[str, float]](), list[bool](), turn * subject.spec.num_envs
        for _ in range(count):
            actions = script.draw(turn)
            if steps is not None:
                subject.reset()
            before = subject.phase_totals()
            took, named, whole_ns = parts.time(partial(timed, partial(play, subject, actions, turn)))
            gained = {name: ns - before.get(name, 0) for name, ns in subject.phase_totals().items()}
            if named:
                gained = {**gained, **named, WHOLE: whole_ns}
            rounds.append({name: ns / env_steps for name, ns in gained.items()})
            are_calm.append(not took.disturbed)
    kept = calm_or_all(rounds, are_calm, FEWEST_CALM)
    names = [name for name in kept[0] if name != WHOLE and any(each.get(name) for each in kept)]
    phases = {f"{PHASE}{name}": tuple(each.get(name, 0.0) for each in kept) for name in names}
    if not target.time:
        return phases
    phases[TIMED_NS] = tuple(each[WHOLE] for each in kept)
    return {name: (fmean(values),) for name, values in phases.items()}  # a function may run only now and then


def forecast(axes: Axes, options: ScaleOptions, progress: Progress = silent) -> float:
    """Return the seconds that a sweep takes, about; InputError if none of its places can be opened."""
    tried = sample(axes.places)
    seconds = 0.0
    refused: list[InputError] = []
    for done, place in enumerate(tried):
        progress(done, len(tried))
        try:
            seconds += CELL_S + cell_s(axes.target_at(place), place, options)
        except InputError as error:
            refused.append(error)
    if len(refused) == len(tried):
        raise refused[0]
    return seconds * options.repeats * len(axes.places) / len(tried)


def sample(places: Sequence[SweepPlace]) -> Sequence[SweepPlace]:
    """Return places from the first to the last, evenly apart: all of them if they are few."""
    last, count = len(places) - 1, min(len(places), MOST_TRIED)
    return [places[round(number * last / max(count - 1, 1))] for number in range(count)]


def cell_s(target: Target, place: SweepPlace, options: ScaleOptions) -> float:
    """Return the seconds that one cell takes, about, from opening its target and a few calls."""
    begin = now_ns()
    with closing(open_subject(target, profile=False)) as subject:
        open_ns = now_ns() - begin
        with closing(play_of(options.policy, subject)) as script:
            begin = now_ns()
            subject.reset()
            reset_ns = now_ns() - begin
            took: list[int] = []  # by a few calls; the first may prepare
            while len(took) < 2 or (len(took) < TRIED and sum(took) < ENOUGH_NS):
                took.append(play(subject, script.draw(1), 1))
            call_ns = min(took[1:])
        per_round = place.steps or fitted(calls_for(options.env_steps, subject), call_ns)
    resets, instances = (2 * ROUNDS if place.steps else 2), 2 - options.no_phases
    calls = (1 + ROUNDS) * per_round + TRIED
    if place.steps and not options.no_phases:
        calls += ROUNDS * per_round
    elif not options.no_phases:
        turn = max(1, min(per_round // TURNS, TURN_NS // max(call_ns, 1)))
        calls += 2 * TRIED + turn * min(per_round, TURNS)
    return (instances * open_ns + resets * reset_ns + calls * call_ns) / 1e9
