"""The ladder: one configuration measured as envs alone, as rollouts, as training, and with evaluation.

The rungs take turns, round by round, each with as many env-steps, so that what one costs beyond another is
not the machine's mood. Every probe is off. Each rung leaves a record of its own.
"""

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

from hotloop.core.errors import unknown
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Method, Record
from hotloop.core.record.comparison import Validation
from hotloop.core.target import ENV_ONLY, EVAL_EVERY, RUNGS
from hotloop.core.turn_clock import RUN_IN
from hotloop.envs.spec import Spec
from hotloop.judge.judge import goal_of, judge
from hotloop.lab.bench import wanted_of, with_comparisons
from hotloop.lab.measure.loop import NO_LIMIT, Length, Plan, Samples, measure, until_interrupted
from hotloop.lab.measure.policy import LEARNING, RANDOM
from hotloop.lab.measure.record import Recorder, describe_method, describe_validation, throughput
from hotloop.lab.measure.sides import Side, SubjectSide, no_collection
from hotloop.lab.training.settings import RunSettings, per_update
from hotloop.lab.training.sides import TrainSide, spec_of, untimed
from hotloop.options.bench import BenchOptions

MODES = RUNGS

POLICIES = {
    ENV_ONLY: RANDOM,
    "rollout": "untrained policy",
    "trainer": LEARNING,
    "trainer_eval": f"{LEARNING}, evaluated",
}

ORDER = "all rungs in turns, shuffled"

WARMUP, QUICK_WARMUP = 3, 1  # Updates of every rung before the first round


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
    settings: RunSettings,
    modes: Sequence[str],
    options: BenchOptions,
    progress: Progress = silent,
    *,
    baselines: Sequence[Record] = (),
) -> list[Record]:
    """Measure the rungs; Ctrl-C leaves records of the rounds there were.

    `baselines` are of a rung that is measured alone.
    """

    def once() -> Record:
        return measure_once(settings, modes, options, progress)[0]

    measured = measure_once(settings, modes, options, progress)
    if baselines:
        measured = [with_comparisons(measured[0], baselines, options.band_share, once)]
    return [judge(each) for each in measured]


def measure_once(
    settings: RunSettings, modes: Sequence[str], options: BenchOptions, progress: Progress
) -> list[Record]:
    """Open the rungs, let them take turns and close them."""
    ready = prepared(settings, modes)
    spec = spec_of(ready)
    recorder = Recorder("bench", spec)
    with ExitStack() as stack, no_collection():
        rungs = {mode: stack.enter_context(closing(rung(mode, ready))) for mode in modes}
        env_steps, warmup = turn_steps(ready, modes, options), warmup_steps(ready, options)
        plan = Plan(
            rounds=options.ladder_rounds, budget_ns=NO_LIMIT, length=Length(env_steps, env_steps // RUN_IN)
        )
        samples = Samples(rungs, plan.length)
        with until_interrupted(samples):
            for each in rungs.values():
                if warmup:
                    each.turn(warmup)
            measure(rungs, plan, progress, samples=samples)
        checked = {mode: describe_validation(each.counters()) for mode, each in rungs.items()}
    method = describe_method(
        spec,
        rounds=options.ladder_rounds,
        iterations=env_steps,
        policy=RANDOM,
        warmup=warmup,
        order=ORDER if len(modes) > 1 else "single",
    )
    return [record(mode, recorder, method, samples, options, spec, checked[mode]) for mode in modes]


def turn_steps(settings: RunSettings, modes: Sequence[str], options: BenchOptions) -> int:
    """Env-steps of a turn: whole updates, and whole evaluations where there are some."""
    each = per_update(settings)
    updates = max(1, -(-(options.iterations or 0) // each))
    every = settings.eval.every if "trainer_eval" in modes else 1
    return each * every * -(-updates // every)


def warmup_steps(settings: RunSettings, options: BenchOptions) -> int:
    """Return the env-steps of every rung before the first round: whole updates."""
    each = per_update(settings)
    if options.warmup is None:
        return (QUICK_WARMUP if options.quick else WARMUP) * each
    return -(-options.warmup // each) * each


def rung(mode: str, settings: RunSettings) -> Side:
    if mode == ENV_ONLY:
        return SubjectSide(mode, settings.open(), RANDOM)
    return TrainSide(mode, settings, mode)  # type: ignore[arg-type]


def record(
    mode: str,
    recorder: Recorder,
    method: Method,
    samples: Samples,
    options: BenchOptions,
    spec: Spec,
    checked: Validation | None,
) -> Record:
    """Return the record of one rung; it differs from the others by its policy and the end of its run id.

    `checked` is what the shadow of its world compared, warm-up and all.
    """
    turns, env_steps = samples.turns[mode][: samples.count], samples.length.env_steps
    made = recorder.record(
        method=replace(method, policy=POLICIES[mode]),
        counters=samples.work[mode].gained if turns else {},
        values=throughput(spec, env_steps, [turn.ns * env_steps // turn.env_steps for turn in turns]),
        partial=samples.partial,
        label=options.phase or mode,
        validation=checked,
    )
    named = replace(made, run_id=f"{made.run_id}-{mode}")
    return replace(named, goal=goal_of(named, wanted_of(options)))
