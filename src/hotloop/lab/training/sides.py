"""Trainings as sides: what takes turns in the ladder of bench and in compare, every probe off.

A turn is a number of whole updates, never less than one.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from functools import cached_property, partial
from typing import Literal

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError, unknown
from hotloop.core.machine import code, need
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.comparison import AFTER, RETURNS
from hotloop.core.record.metadata import CodeInfo, Instructions
from hotloop.core.settings import ENV_ONLY, EVAL_EVERY, RUNGS, Target
from hotloop.core.turn_clock import RUN_IN, Turn, TurnClock
from hotloop.envs.spec import Spec
from hotloop.judge.judge import goal_of, judge
from hotloop.lab.bench import wanted_of, with_comparisons
from hotloop.lab.compare.compare import CompareSettings, measure_comparison
from hotloop.lab.compare.contenders import Contender
from hotloop.lab.measure.loop import NO_LIMIT, Length, Plan, Samples, measure, until_interrupted
from hotloop.lab.measure.policy import LEARNING, RANDOM
from hotloop.lab.measure.record import Recorder, describe_method, describe_validation, throughput
from hotloop.lab.measure.sides import Side, SubjectSide, no_collection
from hotloop.lab.training.ranks import hire_actors, share_of, start_ranks, windows_together
from hotloop.lab.training.settings import RunSettings, per_update, read
from hotloop.lab.validate.equal import USUAL, Agreement, Reach
from hotloop.options.bench import BenchOptions
from hotloop.stats.summary import with_metrics
from hotloop.train.windows import windows_of

Mode = Literal["rollout", "trainer", "trainer_eval"]

SPEED_ONLY = (
    "training is compared whole: give no --policy, --profile, --control or --instructions; "
    "hotloop train shows where its time goes"
)


def spec_of(settings: RunSettings) -> Spec:
    """Return the spec of a training: its batch's, with the training's keys among the parameters."""
    batch = settings.open()
    batch.close()
    notices = (*batch.spec.notices, *settings.notices)
    return replace(
        batch.spec, described=settings.described(batch), notices=notices, phases=(), made_from=None
    )


def untimed(settings: RunSettings) -> RunSettings:
    """The same training with nothing looking on."""
    return replace(settings, around=replace(settings.around, timing="off"))


class TrainSide(Side):
    """A trainer with window metrics, run update by update: all of it, rollouts alone, or with evaluation."""

    def __init__(self, name: str, settings: RunSettings, mode: Mode = "trainer") -> None:
        need("torch")
        from hotloop.train.trainer import Trainer

        self.name, self.settings, self.mode = name, settings, mode
        with ExitStack() as held:
            ranks = held.enter_context(start_ranks(settings))
            crew = held.enter_context(hire_actors(settings))
            share = share_of(settings, 0, ranks.size)
            self.batch = held.enter_context(closing(share.open()))
            self.windows = windows_of(self.batch, compiled=settings.train.compile)
            self.trainer = Trainer(self.batch, share.train, watchers=(self.windows,), ranks=ranks, crew=crew)
            self.crew, self.updates = crew, 0
            self._clock = TurnClock()
            self._held = held.pop_all()

    @property
    def grain(self) -> int:
        return self.trainer.steps_per_update

    def turn(self, env_steps: int, run_in: int | None = None) -> Turn:
        """Whole updates, which are long enough to need nothing before them."""
        from hotloop.train.arithmetic import use_threads

        use_threads(self.trainer.threads.threads)
        updates = max(1, round(env_steps / self.trainer.steps_per_update))
        took = self._clock.time(partial(self.run, updates))
        return took._replace(env_steps=updates * self.trainer.steps_per_update)

    def run(self, updates: int) -> int:
        """Make so many updates; returns the ns."""
        begin = now_ns()
        for _ in range(updates):
            self.update()
        return now_ns() - begin

    def update(self) -> None:
        self.updates += 1
        if self.updates % self.settings.train.log_every == 0:
            windows_together(self.trainer.ranks, self.windows.close(), self.batch)
        if self.mode == "rollout":
            self.trainer.collect()  # nothing is learnt from it
            return
        self.trainer.update()
        if self.mode == "trainer_eval" and self.updates % self.settings.eval.every == 0:
            self.evaluate()

    def evaluate(self) -> tuple[float, ...]:
        """The returns of the policy's episodes on envs of their own."""
        from hotloop.train.evaluation import evaluate

        return evaluate(self.trainer, self.batch.spec, self.settings.eval).returns

    def counters(self) -> Mapping[str, int]:
        learned, size = self.trainer.counters, self.trainer.ranks.size
        counted = self.batch.counters if self.crew is None else self.crew.counters
        envs = {name: size * count for name, count in counted.items()}
        return envs | learned | {"updates": sum(learned.values())}

    def close(self) -> None:
        self._held.close()


class TrainContender(Contender):
    """A training as it was typed: a target, its keys and those of the trainer.

    It takes no other seed: what it learns depends on it.
    """

    def __init__(self, target: Target) -> None:
        self.settings = untimed(read(target))
        self.name = target.words

    @cached_property
    def spec(self) -> Spec:
        return spec_of(self.settings)

    @cached_property
    def code(self) -> CodeInfo:
        return code(asdict(self.spec.build) if self.spec.build else None)

    def side(self, policy: str, *, profile: bool = False, seed: int | None = None) -> Side:
        return TrainSide(self.name, self.settings)

    def agreement(
        self, other: Contender, reach: Reach = USUAL, policy: str = RANDOM, progress: Progress = silent
    ) -> Agreement:
        raise InputError("two trainings are compared by their speed and their returns, not by their bytes")

    def instructions(self, policy: str, env_steps: int | None = None) -> Instructions:
        raise InputError(SPEED_ONLY)

    def returns_after(self, env_steps: int) -> tuple[float, ...]:
        """Train anew for so many env-steps, then the returns of episodes whose seeds all sides share."""
        returns, _ = self.trained_for(env_steps)
        return returns

    def trained_for(self, env_steps: int) -> tuple[tuple[float, ...], Mapping[str, int]]:
        """The same, and what was counted in the training."""
        longer = replace(self.settings.train, total_timesteps=max(env_steps, 1))
        with closing(TrainSide(self.name, replace(self.settings, train=longer))) as side:
            while not side.trainer.finished:
                side.update()
            counted = dict(side.counters())
            return side.evaluate(), counted

    def untrained(self) -> tuple[float, ...]:
        """The returns of the same episodes before anything was learnt."""
        with closing(TrainSide(self.name, self.settings)) as side:
            return side.evaluate()

    def evaluation_s(self) -> float:
        """What the episodes after a training take, of one that has not begun to learn."""
        begin = now_ns()
        self.untrained()
        return (now_ns() - begin) / 1e9


def check_one_variable(a: TrainContender, b: TrainContender) -> None:
    """Refuse an A/B in which more than one thing differs."""
    one, other = (each.spec.described for each in (a, b))
    if one.name != other.name:
        raise InputError(f"the sides train on {one.name} and {other.name}: name one target, or use --unlike")
    mine, theirs = one.params | one.variant, other.params | other.variant
    differ = [key for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
    if len(differ) > 1:
        raise InputError(
            f"the sides differ in {', '.join(differ)}: training is compared on one variable, or use --unlike"
        )


def compare_trainings(
    a: TrainContender,
    b: TrainContender,
    asked: CompareSettings,
    return_after: int | None,
    progress: Progress = silent,
) -> Record:
    """Compare the speed of two trainings and, where asked, what they have learnt after as many steps."""
    found = measure_comparison(a, b, replace(asked, replayed=False, policy=LEARNING), progress)
    if return_after is not None and not found.partial:
        found = with_returns(found, a, b, return_after, progress)
    return judge(found)


def with_returns(
    record: Record, a: TrainContender, b: TrainContender, env_steps: int, progress: Progress
) -> Record:
    """Add the returns of both sides after so many env-steps; Ctrl-C leaves them out, and marks the record."""
    values: dict[str, tuple[float, ...]] = {AFTER: (float(env_steps),)}
    with until_interrupted() as state:
        for done, (name, side) in enumerate(zip(RETURNS, (a, b), strict=True), 1):
            values[name] = tuple(side.returns_after(env_steps))
            progress(done, 2)
    if state.partial:
        return replace(record, partial=True)
    return with_metrics(replace(record, values=record.values | values))


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
        return measure_rungs(settings, modes, options, progress)[0]

    measured = measure_rungs(settings, modes, options, progress)
    if baselines:
        measured = [with_comparisons(measured[0], baselines, options.band_share, once)]
    return [judge(each) for each in measured]


def measure_rungs(
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
        # What the shadow of each world compared, warm-up and all.
        checked = {mode: describe_validation(each.counters()) for mode, each in rungs.items()}
    method = describe_method(
        spec,
        rounds=options.ladder_rounds,
        iterations=env_steps,
        policy=RANDOM,
        warmup=warmup,
        order=ORDER if len(modes) > 1 else "single",
    )
    env_steps, records = samples.length.env_steps, list[Record]()
    for mode in modes:
        turns = samples.turns[mode][: samples.count]
        made = recorder.record(
            method=replace(method, policy=POLICIES[mode]),
            counters=samples.work[mode].gained if turns else {},
            values=throughput(spec, env_steps, [turn.ns * env_steps // turn.env_steps for turn in turns]),
            partial=samples.partial,
            label=options.phase or mode,
            validation=checked[mode],
        )
        named = replace(made, run_id=f"{made.run_id}-{mode}")
        records.append(replace(named, goal=goal_of(named, wanted_of(options))))
    return records


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
