"""Tune: which settings are the fastest, found by halving, confirmed in turns, and held to what is learnt.

Combinations that cannot be run are left out before anything runs. Every rung measures those that are left, in
shuffled order, for twice as many rounds as the one before, and keeps the faster half. Who wins is who can be
relied on for most: the highest lower end of an interval.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from statistics import fmean, median
from typing import Any

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import (
    ENV_STEPS_PER_S,
    RSS,
    Described,
    Learnt,
    Record,
    Refused,
    Tried,
    Tuning,
    own_commit,
    run_id,
)
from hotloop.core.target import Target
from hotloop.judge import tune as choosing
from hotloop.judge.judge import judge
from hotloop.lab import axes as reading
from hotloop.lab.axes import Axes, Place
from hotloop.lab.cells import Cell, Executor, Here, Shelf, sweep
from hotloop.lab.compare.compare import Asked as Comparing
from hotloop.lab.compare.compare import compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.held import resident_bytes, settle
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.record import Recorder, describe_method, throughput
from hotloop.lab.measure.settle import Plan
from hotloop.lab.measure.stepping import no_collection
from hotloop.lab.measure.target import open_subject
from hotloop.lab.measure.turns import Side, SubjectSide, Turn
from hotloop.lab.training.settings import PREFIX, agents_of, is_training, per_update
from hotloop.lab.training.settings import read as read_training
from hotloop.lab.training.sides import (
    LEARNING,
    TrainContender,
    TrainSide,
    compare_trainings,
    spec_of,
    untimed,
)

KIND = "tune"

EXPERIMENT = f"{__name__}:measure"

ALIASES = {
    "num_workers": "threads",
    "n_envs": "num_envs",
    "rollout_steps": "train.num_steps",
    "n_steps": "train.num_steps",
    "batch_size": "train.minibatch_size",
    "n_epochs": "train.update_epochs",
}
"""What other trainers call it, to what it is called here."""

MINIBATCHES, MINIBATCH_SIZE = "num_minibatches", "train.minibatch_size"
"""A number of them, which becomes a size once the rollout's is known."""

FIRST_ROUNDS = 6
"""Of the first rung: the fewest that have an interval; each rung has twice as many as the one before."""

MOST_ROUNDS = 24

TURN_NS = 20_000_000
"""What a round of envs alone takes about; of a training it is an update."""

SEEDS = 6
"""Trainings of each side in the learning check: the fewest differences with an interval."""

RETURN = "return"
"""Of each episode after a training of the learning check."""

CONFIRM_NS, CONFIRM_TRAINING_NS = 30_000_000_000, 120_000_000_000
"""What the confirmation takes: a turn of a training is an update at least."""

CELL_S = 5.0
"""What a cell of envs alone takes about, over all rungs."""

WARM_UPDATES = 2
"""Of a training, before its rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How settings are searched for."""

    rounds: int = FIRST_ROUNDS
    learn_steps: int = 0
    """Env-steps of each training of the learning check; 0 leaves it out."""
    seeds: int = SEEDS
    confirm_ns: int | None = None
    """What the confirmation may take, and as much again for faster or slower; None is the usual."""

    def confirming_ns(self, *, training: bool) -> int:
        return self.confirm_ns or (CONFIRM_TRAINING_NS if training else CONFIRM_NS)

    def __post_init__(self) -> None:
        if self.confirm_ns is not None and not 0 < self.confirm_ns < 10**15:
            raise InputError(f"a confirmation of {self.confirm_ns / 1e9:g} s: expected more than 0")
        if self.rounds < 1 or self.seeds < 1 or self.learn_steps < 0:
            raise InputError("rounds and seeds are at least 1, and steps to learn at least 0")


def read(target: Target) -> Axes:
    """The axes under our own names, num_minibatches become sizes."""
    named = {ALIASES.get(key, key): value for key, value in target.keys.items()}
    if len(named) < len(target.keys):
        raise InputError("a key is given under two names: give it once")
    found = reading.read(replace(target, keys=named), kind=KIND)
    return replace(found, places=tuple(with_size(found.target, place) for place in found.places))


def with_size(target: Target, place: Place) -> Place:
    """The place with a size of minibatches, where their number was given."""
    asked = {**target.keys, **place.keys}
    if MINIBATCHES not in asked:
        return place
    keys = {key: value for key, value in place.keys.items() if key != MINIBATCHES}
    bare = target.with_keys(keys)
    bare.keys.pop(MINIBATCHES, None)
    settings = read_training(Target(bare.name, {**bare.keys, MINIBATCH_SIZE: "1"}))
    samples = per_update(settings) * agents_of(settings.target)
    count = int(str(asked[MINIBATCHES]))
    return replace(place, keys={**keys, MINIBATCH_SIZE: str(samples // count if count > 0 else 0)})


def target_at(axes: Axes, place: Place) -> Target:
    found = axes.target_at(place)
    found.keys.pop(MINIBATCHES, None)
    return found


def sort(axes: Axes) -> tuple[list[Place], list[Refused]]:
    """The places that can be run, and the others with the reason; refuses a search where none can."""
    runs, skipped = list[Place](), list[Refused]()
    for place in axes.places:
        try:
            check_place(target_at(axes, place))
            runs.append(place)
        except InputError as error:
            skipped.append(Refused(at=place.at, why=str(error)))
    if not runs:
        raise InputError(f"none of the {len(skipped)} combinations can be run: {skipped[0].why}")
    return runs, skipped


def check_place(target: Target) -> None:
    if is_training(target):
        read_training(target)
    elif not target.is_foreign:
        open_subject(target, profile=False).close()


def forecast(axes: Axes, asked: Asked) -> float:
    """Seconds that the search and its confirmation take about; of a training, by an update or two of it."""
    count, training = len(axes.places), is_training(target_at(axes, axes.places[0]))
    confirming = 2 * asked.confirming_ns(training=training) / 1e9
    if not training:
        return count * CELL_S + confirming
    ends = [target_at(axes, place) for place in (axes.places[0], axes.places[-1])]
    took = [seconds for seconds in map(update_s, ends) if seconds is not None]
    return updates_of(count, asked.rounds) * (fmean(took) if took else 1.0) + confirming


def updates_of(count: int, rounds: int) -> int:
    """Updates of so many trainings over all rungs."""
    total, rung = 0, 0
    while True:
        total += count * (min(rounds << rung, MOST_ROUNDS) + WARM_UPDATES)
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


@dataclass(slots=True, kw_only=True)
class Found:
    """What is known of a place so far."""

    place: Place
    speeds: list[float] = field(default_factory=list)
    rungs: int = 0
    rss_bytes: float = 0.0
    latency_ns: float = 0.0
    record: Record | None = None

    def tried(self) -> Tried:
        return choosing.tried(
            self.place.at,
            self.speeds,
            rungs=self.rungs,
            rss_bytes=self.rss_bytes,
            latency_ns=self.latency_ns,
        )


Measures = Callable[[Sequence[Place], int, int], Mapping[str, Record]]
"""Measures places in one rung, for so many rounds; by the name of the place."""


def name_of(place: Place) -> str:
    return " ".join(f"{axis}={value}" for axis, value in place.at.items())


def halve(places: Sequence[Place], measure: Measures, rounds: int = FIRST_ROUNDS) -> list[Found]:
    """Measure rung after rung until one is left, or two that had rounds enough."""
    found = {name_of(place): Found(place=place) for place in places}
    left, rung = list(found), 0
    while left:
        records = measure([found[name].place for name in left], rung, min(rounds << rung, MOST_ROUNDS))
        rung += 1
        for name, record in records.items():
            note(found[name], record, rung)
        left = [name for name in left if name in records]
        if len(left) <= 2 or not records:
            break
        left = choosing.survivors({name: found[name].speeds for name in left})
    return [each for each in found.values() if each.speeds]


def note(found: Found, record: Record, rung: int) -> None:
    found.speeds += record.values[ENV_STEPS_PER_S]
    found.rungs, found.record = rung, record
    found.rss_bytes = median(record.values.get(RSS, (0.0,)))
    found.latency_ns = median(record.values["latency_ns"])


class Sweeping:
    """Measures rungs as cells; a cell that its target refuses on the way is skipped."""

    def __init__(self, axes: Axes, executor: Executor, shelf: Shelf | None, progress: Progress) -> None:
        self.axes, self.executor, self.shelf, self.progress = axes, executor, shelf, progress
        self.skipped: list[Refused] = []

    def __call__(self, places: Sequence[Place], rung: int, rounds: int) -> dict[str, Record]:
        order = [self.cell_of(self.axes, place, rung, rounds) for place in places]
        cells = {cell.id: name_of(place) for cell, place in zip(order, places, strict=True)}
        random.Random(rung).shuffle(order)
        swept = sweep(order, self.executor, self.shelf, self.progress)
        if swept.interrupted:
            raise KeyboardInterrupt
        ats = {name_of(place): place.at for place in places}
        self.skipped += [Refused(at=ats[cells[each.cell.id]], why=each.refused) for each in swept.refused]
        return {cells[cell.id]: record for cell, record in swept.records}

    @staticmethod
    def cell_of(axes: Axes, place: Place, rung: int, rounds: int) -> Cell:
        asked = {"rung": rung, "rounds": rounds}
        return Cell(target=target_at(axes, place), experiment=EXPERIMENT, asked=asked)


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
        start = dict(side.counters())
        turns = [turned(side, length, number, asked["rounds"], progress) for number in range(asked["rounds"])]
        memory = resident_bytes() - before
        gained = {name: count - start.get(name, 0) for name, count in side.counters().items()}
    calls = max(1, length // side.grain)
    walls = [max(1, each.ns - each.off_ns) for each in turns]
    return recorder.record(
        method=describe_method(
            spec, rounds=len(turns), iterations=length, policy=LEARNING if training else RANDOM
        ),
        counters=gained,
        values={
            **throughput(spec, length, walls, gained),
            "latency_ns": [ns / calls for ns in walls],
            RSS: [float(max(memory, 0))],
        },
    )


def opened(target: Target) -> tuple[Side, Any]:
    """A side and what it says of itself."""
    if is_training(target):
        settings = untimed(read_training(target))
        return TrainSide(target.words, settings), spec_of(settings)
    side = SubjectSide(target.words, open_subject(target, profile=False), RANDOM)
    return side, side.subject.spec


def turned(side: Side, length: int, number: int, rounds: int, progress: Progress) -> Turn:
    taken = side.turn(length, 0)
    progress(number + 1, rounds)
    return taken


def tune(
    axes: Axes,
    asked: Asked,
    progress: Progress = silent,
    *,
    executor: Executor | None = None,
    learners: Executor | None = None,
    shelf: Shelf | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Record:
    """Search, confirm, check what is learnt; Ctrl-C leaves the cells, for --resume, and what came next.

    `learners` run trainings, which nobody times; where none are given the executor does.
    """
    now = utc_now()
    places, skipped = sort(axes)
    present = checked_present(axes)
    sweeping = Sweeping(axes, executor or Here(), shelf, progress)
    found = halve(places, sweeping, asked.rounds)
    if not found:
        raise InputError(f"none of the combinations can be measured: {sweeping.skipped[0].why}")
    tried = choosing.marked([each.tried() for each in found])
    won = choosing.winner(tried)
    best = next(each for each in found if each.place.at == won.at)
    chosen, running = target_at(axes, best.place), executor or Here()
    confirmed = confirm(present, chosen, asked, running, progress)
    keep = confirmed is not None and any(each.outcome == "slower" for each in confirmed.comparisons)
    stopped = confirmed is not None and confirmed.partial
    learning: Learnt | None = None
    try:
        if not (keep or stopped):
            learning = learn(present, chosen, asked, learners or running, progress, say)
    except KeyboardInterrupt:
        stopped = True
    result = Tuning(
        axes=axes.values,
        present=present.words,
        tried=tried,
        skipped=(*skipped, *sweeping.skipped),
        winner=won.at,
        words=f"hotloop {'train' if is_training(chosen) else 'bench'} {(present if keep else chosen).words}",
        kept=keep,
        floor=None if keep or stopped else choosing.floor(won.speeds),
        learnt=learning,
    )
    assert best.record is not None
    made = record_of(best.record, confirmed, result, axes, now)
    return judge(replace(made, partial=stopped))


def present_of(axes: Axes) -> Target:
    """The settings that stand now: what is given with one value, and what nobody gave as it is usually."""
    keys = {key: value for key, value in axes.target.keys.items() if key != MINIBATCHES}
    training = any(axis.startswith(PREFIX) or axis == MINIBATCHES for axis in axes.values)
    if training and not any(key.startswith(PREFIX) for key in keys):
        keys[f"{PREFIX}timing"] = "off"  # it is a training, and nothing about it is given
    return Target(axes.target.name, keys, axes.target.phases)


def checked_present(axes: Axes) -> Target:
    """The present settings; refused before anything is measured where they cannot be run beside a winner."""
    present = present_of(axes)
    try:
        check_place(present)
    except InputError as error:
        raise InputError(
            f"the present settings, {present.words}, cannot be run: {error}; the winner takes turns with "
            "them, so give a key of theirs that fits"
        ) from None
    return present


def confirm(
    present: Target, chosen: Target, asked: Asked, executor: Executor, progress: Progress
) -> Record | None:
    """The winner against the present settings, in turns; None where they are the same."""
    if is_same(present, chosen):
        return None
    told = {"present": asdict(present), "budget_ns": asked.confirming_ns(training=is_training(chosen))}
    cell = Cell(target=chosen, experiment=f"{__name__}:confirm_one", asked=told)
    [found] = executor.run([cell], progress)
    if found.record is None:
        raise InputError(f"{chosen.words} cannot be confirmed: {found.refused}")
    return found.record


def is_same(one: Target, other: Target) -> bool:
    """Whether two targets come to the same settings: a key may be given as what it is usually."""
    if one == other or one.is_foreign:
        return one == other
    mine, theirs = described_as(one), described_as(other)
    return (mine.params, mine.variant) == (theirs.params, theirs.variant)


def described_as(target: Target) -> Described:
    if is_training(target):
        return spec_of(untimed(read_training(target))).described
    with closing(open_subject(target, profile=False)) as subject:
        return subject.spec.described


def confirm_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """A target against the present settings, in turns."""
    present = Target(**asked["present"])
    how = Comparing(plan=Plan(budget_ns=asked["budget_ns"]), unlike=True)
    if is_training(target):
        return compare_trainings(TrainContender(present), TrainContender(target), how, None, progress)
    return compare(TargetContender(present), TargetContender(target), how, progress)


def learn(
    present: Target,
    chosen: Target,
    asked: Asked,
    executor: Executor,
    progress: Progress,
    say: Callable[[str], None],
) -> Learnt | None:
    """What both have learnt after as many env-steps, with the same seeds; None where they are the same."""
    if not asked.learn_steps or not is_training(chosen) or is_same(present, chosen):
        return None
    trainings = 2 * asked.seeds
    seconds = asked.seeds * sum(training_s(each, asked.learn_steps) for each in (present, chosen))
    say(f"learning check: {trainings} trainings of {asked.learn_steps:,} env-steps, about {seconds:.0f} s")
    sides = {"present": present, "chosen": chosen}
    cells = {
        (name, seed): learn_cell(target.with_keys({"seed": seed, f"{PREFIX}seed": seed}), asked.learn_steps)
        for seed in range(1, asked.seeds + 1)
        for name, target in sides.items()
    }
    swept = sweep(list(cells.values()), executor, None, progress)
    if swept.interrupted:
        raise KeyboardInterrupt
    if swept.refused:
        raise InputError(f"a training of the learning check cannot be run: {swept.refused[0].refused}")
    found = {cell.id: fmean(record.values[RETURN]) for cell, record in swept.records}
    returns = {name: [found[cells[name, seed].id] for seed in range(1, asked.seeds + 1)] for name in sides}
    return choosing.learnt(asked.learn_steps, returns["present"], returns["chosen"])


def training_s(target: Target, env_steps: int) -> float:
    """What a training of so many env-steps takes about on this machine as it is, with its evaluation."""
    updates = -(-env_steps // per_update(read_training(target)))
    return updates * (update_s(target) or 0.0) + TrainContender(target).evaluation_s()


def learn_cell(target: Target, env_steps: int) -> Cell:
    return Cell(target=target, experiment=f"{__name__}:learn_one", asked={"env_steps": env_steps})


def learn_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Train for so many env-steps; the record has the returns of the episodes after it."""
    contender = TrainContender(target)
    recorder = Recorder("bench", contender.spec)
    returns = contender.returns_after(asked["env_steps"])
    method = describe_method(contender.spec, rounds=1, iterations=asked["env_steps"], policy=LEARNING)
    return recorder.record(method=method, counters={}, values={RETURN: list(returns)})


def record_of(best: Record, confirmed: Record | None, result: Tuning, axes: Axes, now: datetime) -> Record:
    """The winner's record, with all that was tried and how it was confirmed."""
    several = {axis: ",".join(values) for axis, values in axes.values.items()}
    target = replace(best.target, keys={**axes.target.keys, **several})
    return replace(
        best,
        run_id=run_id(now, *own_commit(best.code), f"{KIND}-{target.words}"),
        kind=KIND,
        created=now.isoformat(timespec="seconds"),
        target=target,
        comparisons=confirmed.comparisons if confirmed else (),
        tuning=result,
    )
