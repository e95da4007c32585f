"""The ladder: one configuration measured as envs alone, as rollouts, as training, and with evaluation.

The rungs take turns, round by round, each with as many env-steps, so that what one costs beyond another is
not the machine's mood. Every probe is off. Each rung leaves a record of its own.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import islice

from hotloop.core.errors import unknown
from hotloop.core.progress import Progress, silent
from hotloop.core.record.comparison import Validation
from hotloop.core.record.record import Record
from hotloop.core.rungs import ENV_ONLY, EVAL_EVERY, RUNGS
from hotloop.judge.judge import goal_of, judge
from hotloop.lab.bench import NOTHING, Extras, with_comparisons
from hotloop.lab.measure.policy import LEARNING, RANDOM
from hotloop.lab.measure.record import Recorder, describe_method, throughput
from hotloop.lab.measure.stepping import no_collection
from hotloop.lab.measure.turns import RUN_IN, Length, Side, SubjectSide, rounds_of, turns_of
from hotloop.lab.measure.work import Tally, describe_validation
from hotloop.lab.training.settings import RunSettings, per_update
from hotloop.lab.training.sides import TrainSide, TrainSpec, spec_of, untimed

MODES = RUNGS

POLICIES = {
    ENV_ONLY: RANDOM,
    "rollout": "untrained policy",
    "trainer": LEARNING,
    "trainer_eval": f"{LEARNING}, evaluated",
}

ORDER = "all rungs in turns, shuffled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Climb:
    """How the ladder is measured."""

    rounds: int = 12
    env_steps: int | None = None
    """In a turn, at least, made up to whole updates; None is one update."""
    warmup: int = 3
    """Updates of every rung before the first round."""
    warmup_steps: int | None = None
    """Env-steps before the first round, where somebody says so."""
    extras: Extras = NOTHING
    """Its label, the speed that is wanted, and the baselines of a rung that is measured alone."""


@dataclass(slots=True, kw_only=True)
class SoFar:
    """What the rungs took and did, complete up to the last whole round."""

    wall_ns: dict[str, list[int]]
    work: dict[str, Tally]
    env_steps: int
    """In a turn."""
    partial: bool = True
    warmup: int = field(default=0)
    checked: dict[str, Validation | None] = field(default_factory=dict)
    """What the shadow of each rung's world compared, warm-up and all."""


def check_modes(words: str) -> tuple[str, ...]:
    """Modes with commas between them, in the order of the ladder."""
    asked = words.split(",")
    for mode in asked:
        if mode not in MODES:
            raise unknown("mode", mode, MODES, f"bench measures {', '.join(MODES)}")
    return tuple(mode for mode in MODES if mode in asked)


def prepared(settings: RunSettings, modes: Sequence[str]) -> RunSettings:
    """The settings as the ladder runs it: nothing looks on, and evaluation has its turn."""
    quiet = untimed(settings)
    if "trainer_eval" in modes and not quiet.eval.every:
        return replace(quiet, eval=replace(quiet.eval, every=EVAL_EVERY))
    return quiet


def climb(
    settings: RunSettings, modes: Sequence[str], asked: Climb, progress: Progress = silent
) -> list[Record]:
    """Measure the rungs; Ctrl-C leaves records of the rounds there were."""

    def once() -> Record:
        return measure_once(settings, modes, asked, progress)[0]

    measured = measure_once(settings, modes, asked, progress)
    if asked.extras.baselines:
        measured = [with_comparisons(measured[0], asked.extras, once)]
    return [judge(each) for each in measured]


def measure_once(
    settings: RunSettings, modes: Sequence[str], asked: Climb, progress: Progress
) -> list[Record]:
    """Open the rungs, let them take turns and close them."""
    ready = prepared(settings, modes)
    spec = spec_of(ready)
    recorder = Recorder("bench", spec)
    with ExitStack() as stack, no_collection():
        rungs = {mode: stack.enter_context(closing(rung(mode, ready))) for mode in modes}
        found = SoFar(
            wall_ns={mode: [] for mode in modes},
            work={mode: Tally(each.counters) for mode, each in rungs.items()},
            env_steps=turn_steps(ready, modes, asked),
            warmup=warmup_steps(ready, asked),
        )
        try:
            measure(rungs, asked, found, progress)
        except KeyboardInterrupt:
            found.partial = True
        found.checked = {mode: describe_validation(each.counters()) for mode, each in rungs.items()}
        return [record(mode, spec, recorder, asked, found) for mode in modes]


def turn_steps(settings: RunSettings, modes: Sequence[str], asked: Climb) -> int:
    """Env-steps of a turn: whole updates, and whole evaluations where there are some."""
    each = per_update(settings)
    updates = max(1, -(-(asked.env_steps or 0) // each))
    every = settings.eval.every if "trainer_eval" in modes else 1
    return each * every * -(-updates // every)


def warmup_steps(settings: RunSettings, asked: Climb) -> int:
    each = per_update(settings)
    return asked.warmup * each if asked.warmup_steps is None else -(-asked.warmup_steps // each) * each


def rung(mode: str, settings: RunSettings) -> Side:
    if mode == ENV_ONLY:
        return SubjectSide(mode, settings.open(), RANDOM)
    return TrainSide(mode, settings, mode)  # type: ignore[arg-type]


def measure(rungs: Mapping[str, Side], asked: Climb, found: SoFar, progress: Progress) -> None:
    """Warm every rung up, then let them take turns."""
    for each in rungs.values():
        if found.warmup:
            each.turn(found.warmup)
    for tally in found.work.values():
        tally.begin()
    rounds = islice(
        rounds_of(turns_of(rungs, Length(found.env_steps, found.env_steps // RUN_IN))), asked.rounds
    )
    for done, turns in enumerate(rounds, 1):
        for mode, turn in turns.items():
            found.wall_ns[mode].append(turn.ns * found.env_steps // turn.env_steps)
            found.work[mode].note()
        progress(done, asked.rounds)
    found.partial = False


def record(mode: str, spec: TrainSpec, recorder: Recorder, asked: Climb, found: SoFar) -> Record:
    """The record of one rung; it is told from the others by its policy and the end of its run id."""
    rounds = len(found.wall_ns[mode])
    made = recorder.record(
        method=describe_method(
            spec,
            rounds=asked.rounds,
            iterations=found.env_steps,
            policy=POLICIES[mode],
            warmup=found.warmup,
            order=ORDER if len(found.wall_ns) > 1 else "single",
        ),
        counters=found.work[mode].gained if rounds else {},
        values=throughput(spec, found.env_steps, found.wall_ns[mode]),
        partial=found.partial,
        label=asked.extras.label or mode,
        validation=found.checked[mode],
    )
    named = replace(made, run_id=f"{made.run_id}-{mode}")
    return replace(named, goal=goal_of(named, asked.extras.wanted))
