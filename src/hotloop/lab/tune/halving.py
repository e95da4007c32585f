"""Successive halving: rung after rung, each for twice as many rounds, of the faster half.

A rung measures what is left in shuffled order, every combination as a cell of its own.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median
from typing import Any

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.experiments import PHASE, RSS, Refused, Tried
from hotloop.core.target import Target
from hotloop.judge import sweep as choosing
from hotloop.lab.cells import Cell, CellCache, Executor, never, sweep
from hotloop.lab.measure import loop
from hotloop.lab.measure.policy import LEARNING, RANDOM
from hotloop.lab.measure.record import Recorder, describe_method, throughput
from hotloop.lab.measure.resources import resident_bytes, settle
from hotloop.lab.measure.sides import Side, SubjectSide, no_collection
from hotloop.lab.measure.target import open_subject
from hotloop.lab.scale.scale import Axes, Place, phases_of
from hotloop.lab.training.settings import is_training
from hotloop.lab.training.settings import read as read_training
from hotloop.lab.training.sides import TrainSide, spec_of, untimed
from hotloop.lab.tune import programs
from hotloop.lab.tune.combinations import name_of, target_at
from hotloop.options.tune import FIRST_ROUNDS, SearchOptions

EXPERIMENT = f"{__name__}:measure"

MOST_ROUNDS = 24

TURN_NS = 20_000_000  # What a round of envs alone takes about; of a training it is an update
WARM_UPDATES = 2  # Of a training, before its rounds

LATE = "the time was over before its turn"


@dataclass(slots=True, kw_only=True)
class TuneCandidate:
    """What is known of a place so far."""

    place: Place
    speeds: list[float] = field(default_factory=list)
    rungs: int = 0
    rss_bytes: float = 0.0
    latency_ns: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)  # The ns of an env-step in each named function
    record: Record | None = None

    def tried(self) -> Tried:
        known = choosing.summarize_candidate(
            self.place.at,
            self.speeds,
            rungs=self.rungs,
            rss_bytes=self.rss_bytes,
            latency_ns=self.latency_ns,
        )
        return replace(known, parts=self.parts)


# Measures places in one rung, for so many rounds; by the name of the place
Measures = Callable[[Sequence[Place], int, int], Mapping[str, Record]]


def halve(
    places: Sequence[Place],
    measure: Measures,
    rounds: int = FIRST_ROUNDS,
    over: Callable[[], bool] = never,
) -> list[TuneCandidate]:
    """Measure rung after rung until one is left, or two that had rounds enough, or the time is over.

    Of a later rung that the time was too short for nobody is said to have come further than the others.
    """
    found = {name_of(place): TuneCandidate(place=place) for place in places}
    left, rung = list(found), 0
    while left:
        records = measure([found[name].place for name in left], rung, min(rounds << rung, MOST_ROUNDS))
        cut = over()
        rung += rung == 0 or not cut or len(records) == len(left)
        for name, record in records.items():
            note(found[name], record, rung)
        left = [name for name in left if name in records]
        if len(left) <= 2 or not records or cut:
            break
        left = choosing.survivors({name: found[name].speeds for name in left})
    return [each for each in found.values() if each.speeds]


def note(found: TuneCandidate, record: Record, rung: int) -> None:
    found.speeds += record.values[record.method.headline]
    found.rungs, found.record = rung, record
    found.rss_bytes = median(record.values.get(RSS, (0.0,)))
    found.latency_ns = median(record.values["latency_ns"])
    named = {name: values for name, values in record.values.items() if name.startswith(PHASE)}
    found.parts = {name.removeprefix(PHASE): median(values) for name, values in named.items()}


class RungRunner:
    """Measures rungs as cells; a cell that its target refuses on the way is skipped."""

    def __init__(
        self,
        axes: Axes,
        executor: Executor,
        shelf: CellCache | None,
        progress: Progress,
        over: Callable[[], bool] = never,
        *,
        options: SearchOptions,
    ) -> None:
        self.axes, self.executor, self.shelf, self.progress = axes, executor, shelf, progress
        self.over, self.options = over, options
        self.skipped: list[Refused] = []

    def __call__(self, places: Sequence[Place], rung: int, rounds: int) -> dict[str, Record]:
        order = [self.cell_of(self.axes, place, rung, rounds, self.options) for place in places]
        cells = {cell.id: name_of(place) for cell, place in zip(order, places, strict=True)}
        random.Random(rung).shuffle(order)
        swept = sweep(order, self.executor, self.shelf, self.progress, over=self.over)
        if swept.interrupted:
            raise KeyboardInterrupt
        ats = {name_of(place): place.at for place in places}
        self.skipped += [Refused(at=ats[cells[each.cell.id]], why=each.refused) for each in swept.refused]
        done = {each.cell.id for each in swept.done}
        late = [cells[cell.id] for cell in order if rung == 0 and cell.id not in done]
        self.skipped += [Refused(at=ats[name], why=LATE) for name in late]
        return {cells[cell.id]: record for cell, record in swept.records}

    @staticmethod
    def cell_of(axes: Axes, place: Place, rung: int, rounds: int, options: SearchOptions) -> Cell:
        target, told = target_at(axes, place), {"rung": rung, "rounds": rounds}
        if not programs.is_program(target):
            return Cell(target=target, experiment=EXPERIMENT, asked=told)
        judged = {"metric": options.metric, "less_is_better": options.less_is_better}
        return Cell(target=target, experiment=programs.EXPERIMENT, asked=told | judged)


def measure(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """One cell: rounds of envs alone or updates of a training, with its memory and its latency."""
    settle()
    before = resident_bytes()
    training = is_training(target)
    side, spec = opened(target)
    recorder = Recorder("bench", spec)
    with closing(side), no_collection():
        one = side.turn(side.grain, 0)
        length = side.grain if training else side.grain * max(1, round(TURN_NS / max(one.ns, 1)))
        side.turn(length, 0)
        plan = loop.Plan(rounds=asked["rounds"], budget_ns=loop.NO_LIMIT, length=loop.Length(length))
        samples = loop.measure({side.name: side}, plan, progress)
        memory = resident_bytes() - before
    turns, gained = samples.turns[side.name], samples.work[side.name].gained
    calls = max(1, length // side.grain)
    walls = [each.ns for each in turns]
    timed = target.time and not training
    parts = phases_of(target, {"policy": RANDOM, "steps": None}, calls * len(turns)) if timed else {}
    return recorder.record(
        method=describe_method(
            spec, rounds=len(turns), iterations=length, policy=LEARNING if training else RANDOM
        ),
        counters=gained,
        values={
            **throughput(spec, length, walls, gained),
            "latency_ns": [ns / calls for ns in walls],
            RSS: [float(max(memory, 0))],
            **parts,
        },
    )


def opened(target: Target) -> tuple[Side, Any]:
    """A side and what it says of itself."""
    if is_training(target):
        settings = untimed(read_training(target))
        return TrainSide(target.words, settings), spec_of(settings)
    side = SubjectSide(target.words, open_subject(target, profile=False), RANDOM)
    return side, side.subject.spec


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a search has to be over: so many seconds from now, or never if None."""

    seconds: float | None = None
    clock: Callable[[], int] = now_ns
    begin_ns: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "begin_ns", self.clock())

    @property
    def left_s(self) -> float:
        """Below 0 where it is past."""
        return inf if self.seconds is None else self.seconds - (self.clock() - self.begin_ns) / 1e9

    def before(self, seconds: float) -> Callable[[], bool]:
        """Whether so much less than all of the time is over."""
        return lambda: self.left_s <= seconds


NEVER = Deadline()


def updates_of(count: int, rounds: int, warmup: int = WARM_UPDATES) -> int:
    """Updates of so many trainings over all rungs, each with its warm-up."""
    total, rung = 0, 0
    while True:
        total += count * (min(rounds << rung, MOST_ROUNDS) + warmup)
        if count <= 2:
            return total
        count, rung = -(-count // 2), rung + 1


def update_s(target: Target) -> float | None:
    """What the second update of a training takes; None where it cannot be run."""
    try:
        side, _ = opened(target)
    except InputError:
        return None
    with closing(side):
        return [side.turn(side.grain, 0) for _ in range(WARM_UPDATES)][-1].ns / 1e9
