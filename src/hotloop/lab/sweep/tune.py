"""Tune: which settings are the fastest, found by halving, confirmed in turns, and held to what is learnt.

Combinations that cannot be run are left out before anything runs. Who wins is who can be relied on for most:
the highest lower end of an interval.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from math import inf
from statistics import fmean, median
from typing import Any

from hotloop.core.clock import now_ns, utc_now
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.project import PROGRAM
from hotloop.core.record import Record, run_id
from hotloop.core.record.experiments import BENCH, PHASE, RSS, TRAIN, LearningCheck, Refused, Tried, Tuning
from hotloop.core.record.metadata import own_commit
from hotloop.core.settings import Target
from hotloop.judge import sweep as choosing
from hotloop.judge.judge import judge
from hotloop.lab.compare.compare import CompareSettings as Comparing
from hotloop.lab.compare.compare import compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure import loop
from hotloop.lab.measure.loop import Plan, until_interrupted
from hotloop.lab.measure.policy import LEARNING, RANDOM
from hotloop.lab.measure.record import Recorder, describe_method, throughput
from hotloop.lab.measure.resources import release_memory, resident_bytes
from hotloop.lab.measure.sides import Side, SubjectSide, no_collection
from hotloop.lab.measure.target import open_subject
from hotloop.lab.programs import measure as programs
from hotloop.lab.programs.launch import metric_of
from hotloop.lab.sweep import combinations
from hotloop.lab.sweep.cells import Cell, CellCache, Executor, LocalExecutor, sweep
from hotloop.lab.sweep.combinations import (
    KIND,
    checked_present,
    is_program,
    is_same,
    name_of,
    sort,
    target_at,
)
from hotloop.lab.sweep.scale import Axes, SweepPlace, phases_of
from hotloop.lab.training.settings import PREFIX, is_training, per_update
from hotloop.lab.training.settings import read as read_training
from hotloop.lab.training.sides import TrainContender, TrainSide, compare_trainings, spec_of, untimed
from hotloop.options.sweeps import FIRST_ROUNDS, SearchOptions
from hotloop.stats.summary import FEWEST

CELL_S = 5.0  # What a cell of envs alone takes about, over all rungs

# Of programs: three sides in the fewest rounds, after their warm-up, and as much again
CONFIRMING_RUNS = 2 * (3 * FEWEST + 2)

LONGEST = 2.0  # Times what was forecast that the search, and its learning check, may take


def confirming_s(axes: Axes, options: SearchOptions) -> float:
    """Return the seconds of a first confirmation at most: as much again for faster or slower."""
    return 2 * options.confirming_ns(training=is_training(target_at(axes, axes.places[0]))) / 1e9


def reserved_s(axes: Axes, options: SearchOptions) -> float:
    """Return the seconds that the search leaves the confirmation: half of the time at most."""
    half = (options.at_most_s or 0.0) / 2
    return half if isinstance(axes, combinations.ProgramAxes) else min(confirming_s(axes, options), half)


def forecast(axes: Axes, options: SearchOptions) -> float:
    """Return the seconds of search and confirmation, about; of a training, by an update or two of it."""
    count, training = len(axes.places), is_training(target_at(axes, axes.places[0]))
    confirming = confirming_s(axes, options)
    if isinstance(axes, combinations.ProgramAxes):
        seconds = combinations.forecast_s(axes)
        return updates_of(count, options.first_rounds, 0) * seconds + max(
            confirming, CONFIRMING_RUNS * seconds
        )
    if not training:
        return count * CELL_S + confirming
    ends = [target_at(axes, place) for place in (axes.places[0], axes.places[-1])]
    took = [seconds for seconds in map(update_s, ends) if seconds is not None]
    return updates_of(count, options.first_rounds) * (fmean(took) if took else 1.0) + confirming


def tune(
    axes: Axes,
    options: SearchOptions,
    progress: Progress = silent,
    *,
    executor: Executor | None = None,
    learners: Executor | None = None,
    shelf: CellCache | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Record:
    """Search, confirm, check what is learnt; Ctrl-C leaves the cells, for --resume, and what came next.

    The search leaves the confirmation its time. `learners` run trainings, which nobody times; where none are
    given the executor does.
    """
    now, end = utc_now(), Deadline(options.at_most_s)
    over = end.before(reserved_s(axes, options))
    places, skipped = sort(axes)
    present = checked_present(axes)
    sweeping = RungRunner(axes, executor or LocalExecutor(), shelf, progress, over, options=options)
    found = halve(places, sweeping, options.first_rounds, over)
    if not found:
        raise InputError(f"none of the combinations can be measured: {sweeping.skipped[0].why}")
    if over():
        say("search: its time was over, the winner is of what was measured by then")
    tried = choosing.mark_best([each.tried() for each in found])
    won = choosing.winner(tried)
    best = next(each for each in found if each.place.at == won.at)
    chosen, running = target_at(axes, best.place), executor or LocalExecutor()
    confirmed = confirm(present, chosen, options, running, progress, say, end)
    outcomes = {each.outcome for each in confirmed.comparisons} if confirmed else {"same"}
    keep = "slower" in outcomes
    stopped = confirmed is not None and confirmed.partial
    learning: LearningCheck | None = None
    if not (keep or stopped):
        with until_interrupted() as state:
            learning = learn(present, chosen, options, learners or running, progress, say)
        stopped = state.partial
    keep = keep or (learning is not None and learning.outcome == "worse")
    relied_on = won.speeds
    if is_program(chosen) and confirmed:  # its turns are runs like any other
        name = f"b.{confirmed.method.headline}"
        for each in (name, f"second.{name}"):
            relied_on = (*relied_on, *confirmed.values.get(each, ()))
    pasted = present if keep else chosen
    how = TRAIN if is_training(chosen) else BENCH
    result = Tuning(
        axes=axes.values,
        present=present.words,
        tried=tried,
        skipped=(*skipped, *sweeping.skipped),
        winner=won.at,
        words=combinations.program_of(pasted).name if is_program(pasted) else f"{how} {pasted.words}",
        kept=keep,
        floor=None if keep or stopped or "cannot tell" in outcomes else choosing.floor(relied_on),
        learnt=learning,
    )
    assert best.record is not None
    made = record_of(best.record, confirmed, result, axes, now)
    return judge(replace(made, partial=stopped))


def record_of(best: Record, confirmed: Record | None, result: Tuning, axes: Axes, now: datetime) -> Record:
    """Return the winner's record, with all that was tried and how it was confirmed."""
    several = {axis: ",".join(values) for axis, values in axes.values.items()}
    target = replace(best.target, keys={**axes.target.keys, **several})
    if isinstance(axes, combinations.ProgramAxes):
        target = replace(best.target, name=axes.target.name.removeprefix(PROGRAM))
    return replace(
        best,
        run_id=run_id(now, *own_commit(best.code), f"{KIND}-{target.words}"),
        kind=KIND,
        created=now.isoformat(timespec="seconds"),
        target=target,
        comparisons=confirmed.comparisons if confirmed else (),
        tuning=result,
    )


EXPERIMENT = f"{__name__}:measure"

MOST_ROUNDS = 24

TURN_NS = 20_000_000  # What a round of envs alone takes about; of a training it is an update
WARM_UPDATES = 2  # Of a training, before its rounds

LATE = "the time was over before its turn"


@dataclass(slots=True, kw_only=True)
class TuneCandidate:
    """What is known of a place so far."""

    place: SweepPlace
    speeds: list[float] = field(default_factory=list)
    rungs: int = 0
    rss_bytes: float = 0.0
    latency_ns: float = 0.0
    parts: dict[str, float] = field(default_factory=dict)  # The ns of an env-step in each named function
    record: Record | None = None

    def note(self, record: Record, rung: int) -> None:
        """Add what one more cell of it found."""
        self.speeds += record.values[record.method.headline]
        self.rungs, self.record = rung, record
        self.rss_bytes = median(record.values.get(RSS, (0.0,)))
        self.latency_ns = median(record.values["latency_ns"])
        named = {name: values for name, values in record.values.items() if name.startswith(PHASE)}
        self.parts = {name.removeprefix(PHASE): median(values) for name, values in named.items()}

    def tried(self) -> Tried:
        """Return what a record says of it."""
        known = choosing.summarize_candidate(
            self.place.at,
            self.speeds,
            rungs=self.rungs,
            rss_bytes=self.rss_bytes,
            latency_ns=self.latency_ns,
        )
        return replace(known, parts=self.parts)


# Measures places in one rung, for so many rounds; by the name of the place
Measures = Callable[[Sequence[SweepPlace], int, int], Mapping[str, Record]]


def halve(
    places: Sequence[SweepPlace],
    measure: Measures,
    rounds: int = FIRST_ROUNDS,
    over: Callable[[], bool] = lambda: False,
) -> list[TuneCandidate]:
    """Measure rung after rung until one is left, or two that had rounds enough, or the time is over.

    If time runs out during a later rung, that rung is not counted.
    """
    found = {name_of(place): TuneCandidate(place=place) for place in places}
    left, rung = list(found), 0
    while left:
        records = measure([found[name].place for name in left], rung, min(rounds << rung, MOST_ROUNDS))
        cut = over()
        rung += rung == 0 or not cut or len(records) == len(left)
        for name, record in records.items():
            found[name].note(record, rung)
        left = [name for name in left if name in records]
        if len(left) <= 2 or not records or cut:
            break
        left = choosing.survivors({name: found[name].speeds for name in left})
    return [each for each in found.values() if each.speeds]


class RungRunner:
    """Measures rungs as cells; a cell that its target refuses on the way is skipped."""

    def __init__(
        self,
        axes: Axes,
        executor: Executor,
        shelf: CellCache | None,
        progress: Progress,
        over: Callable[[], bool] = lambda: False,
        *,
        options: SearchOptions,
    ) -> None:
        self.axes, self.executor, self.shelf, self.progress = axes, executor, shelf, progress
        self.over, self.options = over, options
        self.skipped: list[Refused] = []

    def __call__(self, places: Sequence[SweepPlace], rung: int, rounds: int) -> dict[str, Record]:
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
    def cell_of(axes: Axes, place: SweepPlace, rung: int, rounds: int, options: SearchOptions) -> Cell:
        target, told = target_at(axes, place), {"rung": rung, "rounds": rounds}
        if not is_program(target):
            return Cell(target=target, experiment=EXPERIMENT, asked=told)
        judged = {"metric": options.metric, "less_is_better": options.less_is_better}
        return Cell(target=target, experiment=combinations.EXPERIMENT, asked=told | judged)


def measure(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Measure one cell: rounds of envs alone or updates of a training, with its memory and its latency."""
    release_memory()
    before = resident_bytes()
    training = is_training(target)
    side, spec = open_side(target)
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
    parts = phases_of(target, RANDOM, None, calls * len(turns)) if timed else {}
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


def open_side(target: Target) -> tuple[Side, Any]:
    """Open a side; return it with its spec."""
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
        """Return the seconds that are left, below 0 if it is past."""
        return inf if self.seconds is None else self.seconds - (self.clock() - self.begin_ns) / 1e9

    def before(self, seconds: float) -> Callable[[], bool]:
        """Return what says whether all but so many seconds are over."""
        return lambda: self.left_s <= seconds


NEVER = Deadline()


def updates_of(count: int, rounds: int, warmup: int = WARM_UPDATES) -> int:
    """Return the updates of so many trainings over all rungs, each with its warm-up."""
    total, rung = 0, 0
    while True:
        total += count * (min(rounds << rung, MOST_ROUNDS) + warmup)
        if count <= 2:
            return total
        count, rung = -(-count // 2), rung + 1


def update_s(target: Target) -> float | None:
    """Return the seconds of a training's second update; None if it cannot be run."""
    try:
        side, _ = open_side(target)
    except InputError:
        return None
    with closing(side):
        return [side.turn(side.grain, 0) for _ in range(WARM_UPDATES)][-1].ns / 1e9


# How many times as long as asked for each confirmation may take, and as much again for a verdict
LONGER = (1, 2)


def confirm(
    present: Target,
    chosen: Target,
    options: SearchOptions,
    executor: Executor,
    progress: Progress,
    say: Callable[[str], None],
    end: Deadline = NEVER,
) -> Record | None:
    """Compare the winner with the present settings, in turns; None if they are the same.

    What cannot be told is measured anew for longer, until it can be, the last time was, or no time is left.
    """
    if is_same(present, chosen):
        return None
    usual_ns = options.confirming_ns(training=is_training(chosen))
    for times in LONGER:
        budget_ns = within(end, times * usual_ns, least_ns=usual_ns // 4)
        told = {"present": asdict(present), "budget_ns": budget_ns}
        if is_program(chosen):
            told |= {"metric": options.metric, "less_is_better": options.less_is_better}
        cell = Cell(target=chosen, experiment=f"{__name__}:confirm_one", asked=told)
        [found] = executor.run([cell], progress)
        if found.record is None:
            raise InputError(f"{chosen.words} cannot be confirmed: {found.refused}")
        longer_ns = within(end, LONGER[-1] * usual_ns)
        # more rounds could tell what these could not, were they too few for an interval or too noisy
        is_open = any(each.outcome == "cannot tell" for each in found.record.comparisons)
        if times == LONGER[-1] or found.record.partial or not is_open or longer_ns <= budget_ns:
            break
        say(
            f"confirmation: {budget_ns / 1e9:.0f} s could not tell ({found.record.comparisons[0].why}): "
            f"once more, up to {longer_ns / 1e9:.0f} s"
        )
    return found.record


def within(end: Deadline, wanted_ns: int, least_ns: int = 0) -> int:
    """Return the ns wanted, or what can be had twice: faster or slower takes it a second time."""
    return int(min(wanted_ns, max(1e9 * end.left_s / 2, least_ns)))


def confirm_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Compare a target with the present settings, in turns."""
    present = Target(**asked.pop("present"))
    if is_program(target):
        metric = metric_of(asked["metric"], less_is_better=asked["less_is_better"])
        sides = [combinations.program_of(each) for each in (present, target)]
        return programs.compare(sides, Plan(budget_ns=asked["budget_ns"]), progress, metric=metric)
    how = Comparing(plan=Plan(budget_ns=asked["budget_ns"]), unlike=True)
    if is_training(target):
        return compare_trainings(TrainContender(present), TrainContender(target), how, None, progress)
    return compare(TargetContender(present), TargetContender(target), how, progress)


# Of each episode after a training of the learning check, and before it
RETURN, UNTRAINED = "return", "untrained_return"


def announced(present: Target, options: SearchOptions) -> float:
    """Return the seconds of the learning check, about, if the winner is as fast as the present settings."""
    if not is_wanted(present, options):
        return 0.0
    return 2 * options.seeds * learning_s(present, options)


def learn(
    present: Target,
    chosen: Target,
    options: SearchOptions,
    executor: Executor,
    progress: Progress,
    say: Callable[[str], None],
) -> LearningCheck | None:
    """Compare what both have learnt after as many env-steps and the same seeds; None if they are the same."""
    if not is_wanted(chosen, options) or is_same(present, chosen):
        return None
    seconds = options.seeds * sum(learning_s(each, options) for each in (present, chosen))
    length = f" of {options.learn_steps:,} env-steps" if options.learn_steps else ""
    say(
        f"learning check: {2 * options.seeds} trainings{length}, about {seconds:.0f} s, "
        f"at most {LONGEST * seconds:.0f} s; "
        f"as well is at most {options.learning_band_share:.0%} less than the present settings learn"
    )
    cells = {
        (name, seed): cell_of(target, seed, options, untrained=target is present)
        for seed in range(1, options.seeds + 1)
        for name, target in (("present", present), ("chosen", chosen))
    }
    end = Deadline(LONGEST * seconds)
    swept = sweep(list(cells.values()), executor, None, progress, over=end.before(0))
    if swept.interrupted:
        raise KeyboardInterrupt
    if swept.refused:
        raise InputError(f"a training of the learning check cannot be run: {swept.refused[0].refused}")
    found = {cell.id: record.values for cell, record in swept.records}
    pairs = [
        (found[cells["present", seed].id], found[cells["chosen", seed].id])
        for seed in range(1, options.seeds + 1)
        if found.keys() >= {cells["present", seed].id, cells["chosen", seed].id}
    ]
    if len(pairs) < options.seeds:
        say(f"learning check: its time was over after {len(pairs)} of {options.seeds} seeds")
    if is_program(chosen) and combinations.repeats(pairs):
        say("learning check: every run learnt exactly the same, which is one seed: put {seed} where it goes")
        pairs = pairs[:1]
    if not pairs:
        return None
    return choosing.learning_check(
        options.learn_steps,
        [fmean(present[RETURN]) for present, _ in pairs],
        [fmean(chosen[RETURN]) for _, chosen in pairs],
        [fmean(present[UNTRAINED]) for present, _ in pairs if UNTRAINED in present],
        options.learning_band_share,
    )


def is_wanted(target: Target, options: SearchOptions) -> bool:
    """Return whether learning is checked: of trainings, and of programs that print a metric of it."""
    if is_program(target):
        return options.learning_metric is not None
    return bool(options.learn_steps) and is_training(target)


def learning_s(target: Target, options: SearchOptions) -> float:
    """Return the seconds of one training of the check, about."""
    return combinations.run_s(target) if is_program(target) else training_s(target, options.learn_steps)


def cell_of(target: Target, seed: int, options: SearchOptions, *, untrained: bool) -> Cell:
    """Return the cell of one training with one seed."""
    if not is_program(target):
        seeded = target.with_keys({"seed": seed, f"{PREFIX}seed": seed})
        return learn_cell(seeded, options.learn_steps, untrained=untrained)
    told = {"metric": options.learning_metric, "seed": seed}
    return Cell(target=target, experiment=combinations.LEARNING, asked=told)


def training_s(target: Target, env_steps: int) -> float:
    """Return the seconds of a training of so many env-steps here, about, with its evaluation."""
    updates = -(-env_steps // per_update(read_training(target)))
    return updates * (update_s(target) or 0.0) + TrainContender(target).evaluation_s()


def learn_cell(target: Target, env_steps: int, *, untrained: bool = False) -> Cell:
    """Return the cell of one training; `untrained` evaluates it before, too."""
    told = {"env_steps": env_steps, "untrained": untrained}
    return Cell(target=target, experiment=f"{__name__}:learn_one", asked=told)


def learn_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Train for so many env-steps; the record has the returns of the episodes after it, and before it."""
    contender = TrainContender(target)
    recorder = Recorder("bench", contender.spec)
    before = {UNTRAINED: list(contender.untrained())} if asked["untrained"] else {}
    returns, counted = contender.trained_for(asked["env_steps"])
    method = describe_method(contender.spec, rounds=1, iterations=asked["env_steps"], policy=LEARNING)
    return recorder.record(method=method, counters=counted, values=before | {RETURN: list(returns)})
