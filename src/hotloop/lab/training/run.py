"""A training run from its first update to its record: windows, logs, evaluation, checkpoints, and Ctrl-C.

The clock never stops: a window ends where the next begins, so the writing of one window's logs is in the
next one's time, and the windows add up to the run.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from hotloop.core.clock import cpu_ns, now_ns
from hotloop.core.cluster import LOCAL
from hotloop.core.errors import Code, ExitCode, HotloopError, InputError, Notice, SetupError, notice
from hotloop.core.files import NO_ROOM
from hotloop.core.machine import need
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Activity
from hotloop.core.progress import InterruptFlag
from hotloop.core.record import OUTCOME, Record, Resources, run_id
from hotloop.core.record.comparison import Validation
from hotloop.core.record.metadata import own_commit
from hotloop.core.record.profile import describe_times, profiled_notice
from hotloop.core.settings import Target
from hotloop.core.spans import peak_rss_bytes, resident_bytes
from hotloop.core.time_tree import TimeTree, add, tree_text
from hotloop.envs.batch import Batch
from hotloop.judge.judge import broken_off, judge
from hotloop.lab import causal
from hotloop.lab.loop.record import (
    STEPS,
    LoopLook,
    describe_looks,
    describe_stages,
    keep_few,
    stages_of,
)
from hotloop.lab.loop.record import UPDATES as UPDATED
from hotloop.lab.measure.loop import Tally
from hotloop.lab.measure.policy import LEARNING
from hotloop.lab.measure.record import Recorder, both_validations, describe_method, describe_validation
from hotloop.lab.measure.sides import PauseClock
from hotloop.lab.training import settings as folders
from hotloop.lab.training.ranks import (
    add_windows,
    hire_actors,
    name_slowest_rank,
    share_of,
    start_ranks,
    windows_together,
)
from hotloop.lab.training.settings import RunFolder, RunSettings, per_update
from hotloop.lab.validate.bundle import SUFFIX, bundle_of, write_bundle
from hotloop.lab.validate.shadow import Shadowed, shadow
from hotloop.probes.resources import ResourceSample, RunQueue, Sampler, gpu_facts, reader, ready_share
from hotloop.train.settings import HERE
from hotloop.train.timing import Clock, choose_how, gpu_bytes, is_cuda, span
from hotloop.train.windows import Logs, Watcher, WindowEpisodes, windows_of

if TYPE_CHECKING:
    from hotloop.probes.torch import TorchWindow
    from hotloop.train.actors import ActorPool
    from hotloop.train.algorithm import Update
    from hotloop.train.evaluation import Evaluation
    from hotloop.train.ranks import Ranks


SAMPLE_S = 0.25  # Between two looks at a GPU
UPDATES = "updates."  # What the names of counters begin with that say whose arithmetic updates were made with
STALENESS = "staleness"  # Updates by which what was learned from was old, a mean over each window
MOST_ROUNDS = 64  # Windows, the last ones, whose trees are kept apart: as many as an interval needs
CLOCK = "perf_counter_ns; regions "  # What a method says of its clock, before how the regions were timed


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingWindow:
    """What one window of updates came to."""

    number: int  # Updates of the run so far
    steps: int  # Env-steps of the run since its very beginning
    total: int  # Env-steps it is to make
    wall_ns: int
    env_steps: int  # In this window
    agent_steps: int  # Of those who lived in it
    mean_sps: float  # Env-steps a second since this process began to train
    episodes: WindowEpisodes  # Those that ended in it
    update: "Update"  # The last one
    losses: dict[str, float]  # Means over the window's updates
    agreement: float | None
    times: TimeTree | None
    evaluation: "Evaluation | None"
    validation: Validation | None
    rss_bytes: int
    gpu_bytes: int | None = None  # Of the GPU's memory, that torch holds; None without one
    # Whether torch's profiler was on in it, so that its times are of the profiler as well
    is_profiled: bool = False

    @property
    def sps(self) -> float:
        """Env-steps a second in this window."""
        return self.env_steps * 1e9 / self.wall_ns

    @property
    def eta_s(self) -> float:
        """Seconds left at this window's speed."""
        return max(self.total - self.steps, 0) / self.sps

    def values(self) -> dict[str, float | int | str | None]:
        """All of it by name, for the logs."""
        ended, evaluation, checked = self.episodes, self.evaluation, self.validation
        return {
            "epoch": self.number,
            "sps": self.sps,
            "sps_mean": self.mean_sps,
            "phase": self.update.phase,
            "episodes": ended.episodes,
            "return": ended.mean_return,
            "length": ended.mean_length,
            "learning_rate": self.update.learning_rate,
            "agreement": self.agreement,
            **{f"loss/{name}": value for name, value in self.losses.items()},
            **{f"info/{name}": value for name, value in (ended.infos or ended.sampled).items()},
            **{f"time/{part.path}": part.total_ns / 1e6 for part in (self.times.rows if self.times else ())},
            "time/unaccounted": self.times.unaccounted_ns / 1e6 if self.times else None,
            "eval/return": evaluation.mean_return if evaluation else None,
            "eval/length": evaluation.mean_length if evaluation else None,
            "validation/comparisons": checked.comparisons if checked else None,
            "validation/mismatches": checked.mismatches if checked else None,
            "rss_bytes": self.rss_bytes,
            "gpu_bytes": self.gpu_bytes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """What a run is to do beside its settings."""

    settings: RunSettings
    run: RunFolder
    told: Target  # What the settings were read from, for the run's folder
    resume: Path | None = None  # A checkpoint to go on from
    validate: str | None = None  # `true`, `smoke`, `soak` or a number of comparisons
    watchers: tuple[Watcher, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainListener:
    """What a run calls meanwhile; nothing of it is called inside a rollout."""

    # After every update: env-steps so far, and those there are to be
    update: Callable[[int, int], None] = lambda steps, total: None
    window: Callable[[TrainingWindow], None] = lambda window: None  # After every window
    say: Callable[[str], None] = lambda text: None


@dataclass(slots=True, kw_only=True)
class TrainingState:
    """What is known so far of a run, complete up to the last whole window."""

    work: Tally
    first_steps: int  # Env-steps of the run before this process
    first_agent_steps: int = 0
    begin_ns: int = 0
    begin_cpu_ns: int = 0
    begin_ready_ns: int | None = None
    samples: Sequence[ResourceSample] = ()  # What was in use from time to time, where a GPU learns
    ready: RunQueue = field(default_factory=RunQueue)
    pauses: PauseClock = field(default_factory=PauseClock)
    windows: list[TrainingWindow] = field(default_factory=list)
    evaluations: list["Evaluation"] = field(default_factory=list)
    partial: bool = True
    bundle: Path | None = None  # Where the first difference is kept that a comparison found

    @property
    def agent_steps(self) -> int:
        """Of the run, up to the last whole window."""
        return self.first_agent_steps + sum(window.agent_steps for window in self.windows)

    @property
    def clean(self) -> list[TrainingWindow]:
        """The windows without torch's profiler; all of them if it was on in each."""
        return [window for window in self.windows if not window.is_profiled] or self.windows

    @property
    def times(self) -> TimeTree | None:
        """Of all windows without a profiler together; None where nothing was timed."""
        return add(window.times for window in self.clean if window.times)


def train(asked: TrainRequest, watch: TrainListener | None = None) -> Record:
    """Train to the end; Ctrl-C leaves a checkpoint and a record of the windows there were."""
    looking, no_room = watch or TrainListener(), ""
    with ExitStack() as stack:
        ranks = stack.enter_context(start_ranks(asked.settings, asked.resume))
        opened = stack.enter_context(closing(share_of(asked.settings, 0, ranks.size).open()))
        batch, shadowed = shadow(opened, asked.validate)
        recorder = Recorder("train", opened.spec)
        crew = stack.enter_context(hire_actors(asked.settings))
        session = Session(asked, batch, shadowed, looking, ranks, crew)
        session.open_folder(stack)
        if is_cuda(asked.settings.train.device):  # a side thread looks at the GPU until the run is over
            session.found.samples = stack.enter_context(Sampler(reader(), SAMPLE_S)).samples
        try:
            with InterruptFlag(looking.say) as stop:
                session.run(stop)
        except KeyboardInterrupt:
            session.found.partial = True
        except HotloopError as error:
            session.give_up(error)
            raise
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            session.found.partial, no_room = True, str(error)
        session.close()
        made = session.record(recorder, opened)
        return broken_off(made, ExitCode.USAGE, no_room) if no_room else judge(made)


class Session:
    """A trainer and everything around it."""

    def __init__(
        self,
        asked: TrainRequest,
        batch: Batch,
        shadowed: Shadowed | None,
        watch: TrainListener,
        ranks: "Ranks",
        crew: "ActorPool | None" = None,
    ) -> None:
        for package in ("torch", *(["tensorboard"] if asked.settings.around.tensorboard else [])):
            need(package)
        from hotloop.train.trainer import Trainer

        self.asked, self.settings, self.watch = asked, asked.settings, watch
        self.batch, self.shadowed, self.ranks, self.crew = batch, shadowed, ranks, crew
        self.windows = windows_of(batch, compiled=self.settings.train.compile)
        self.trainer: Trainer = Trainer(
            batch,
            share_of(self.settings, 0, ranks.size).train,
            watchers=(self.windows, *asked.watchers),
            resume=asked.resume,
            folder=asked.run.place,
            ranks=ranks,
            crew=crew,
        )
        if asked.resume is not None:
            if not self.trainer.began_anew:
                self.windows.restore(None if ranks.several else folders.read_windows(asked.resume))
            if self.trainer.finished:
                raise InputError(
                    f"run {asked.run.name} has made its {self.trainer.steps:,} steps of "
                    f"{self.settings.train.total_timesteps:,}: give a larger total_timesteps to go on"
                )
        elif self.settings.train.stagger:
            self.windows.restore(None)  # every env is in the middle of an episode already
        self.clock: Clock | None = None
        if self.settings.timed:
            device = self.settings.train.device
            self.clock = Clock(batch, how=choose_how(self.settings.around.timing, device), device=device)
        self.counted = windows_together(ranks, self.windows.close(), batch)[1] if ranks.several else {}
        self.found = TrainingState(
            work=Tally(self.counters),
            first_steps=self.trainer.steps,
            first_agent_steps=self.trainer.agent_steps,
        )
        self.saved_at: int | None = self.trainer.steps if asked.resume else None

    def record(self, recorder: Recorder, opened: Batch) -> Record:
        """Return the record, with a word on how torch's threads were chosen if Hotloop chose them."""
        threads, run = self.trainer.threads, self.asked.run
        settings = replace(self.settings, train=replace(self.settings.train, torch_threads=threads.threads))
        record = record_of(settings, opened, self.found, recorder, self.shadowed, label=run.name)
        if not threads.is_measured:
            return record
        variant = record.target.variant | {"train.torch_threads_by": "measured"}
        return replace(record, target=replace(record.target, variant=variant))

    def counters(self) -> dict[str, int]:
        """Of all ranks or actors, as they were when the last window ended."""
        elsewhere = self.ranks.several or self.crew is not None
        return (self.counted if elsewhere else self.batch.counters) | self.trainer.counters

    def open_folder(self, stack: ExitStack) -> None:
        """Make the run's folder, now that nothing is left to refuse, and open its logs."""
        run, resumed = self.asked.run, self.asked.resume is not None
        if not resumed:
            run.claim(self.asked.told)
        stack.enter_context(run.lock())
        resumed_at, board = self.trainer.steps if resumed else None, self.settings.around.tensorboard
        self.logs = stack.enter_context(closing(Logs(run.place, resumed_at=resumed_at, tensorboard=board)))
        profiler = self.settings.profiler
        self.trace: TorchWindow | None = None
        if profiler.enabled:
            from hotloop.probes import torch as probe

            self.trace_path = run.trace
            self.trace = probe.TorchWindow(
                self.trace_path,
                wait=profiler.wait_steps,
                warmup=profiler.warmup_steps,
                active=profiler.active_steps,
                record_shapes=profiler.record_shapes,
            )
        if self.trainer.threads.round_ns:
            self.logs.say(self.trainer.threads.text)
            self.watch.say(self.trainer.threads.text)

    def run(self, stop: InterruptFlag) -> None:
        """Train window after window until all steps are made, or Ctrl-C."""
        found = self.found
        found.begin_ns, found.begin_cpu_ns, found.begin_ready_ns = now_ns(), cpu_ns(), found.ready.read()
        self.begin_window(found.begin_ns)
        train = self.settings.train
        # Ray's own processes, of a cluster started for this run, can end this one without a word.
        is_exposed = LOCAL in (train.collect, train.ranks_on if train.ranks > 1 else HERE)
        with found.pauses, causal.run_experiment() as turn:
            while not self.trainer.finished and not stop.asked and not self.differs:
                if is_exposed and self.trainer.steps not in (0, self.saved_at):
                    with span("checkpoint"):
                        self.trainer.note_last()
                        self.save_last(to_disk=False)  # it is the process that may end, not the machine
                if self.trace is not None and self.trace.is_on:
                    self.is_profiled = True
                self.updates.append(self.trainer.update())
                with lifeline.doing(Activity.OURS):
                    self.after_update(stop)
                turn()
        if self.updates:
            self.end_window()
        self.found.partial = stop.asked and not self.trainer.finished
        self.save()

    @property
    def differs(self) -> bool:
        """Whether a comparison failed: what is learnt from there on is worth nothing."""
        return self.shadowed is not None and self.shadowed.shadowing.difference is not None

    def begin_window(self, at_ns: int) -> None:
        self.window_ns = at_ns
        self.updates: list[Update] = []
        self.is_profiled = False
        self.evaluation: Evaluation | None = None
        if self.clock:
            self.clock.begin(at_ns)

    def after_update(self, stop: InterruptFlag) -> None:
        """Evaluate, log and save where it is due; the window ends when it is full."""
        asked, trainer = self.settings, self.trainer
        if self.trace:
            with span("profiler"):
                self.trace.step()
        if asked.eval.every and trainer.updates % asked.eval.every == 0:
            with span("eval"):
                from hotloop.train.evaluation import evaluate

                self.evaluation = evaluate(trainer, self.batch.spec, asked.eval)
                self.found.evaluations.append(self.evaluation)
        with span("logging"):
            self.watch.update(trainer.steps, asked.train.total_timesteps)
        if trainer.finished or stop.asked:
            return  # the end logs and saves
        every = asked.train.checkpoint_every
        saves = every > 0 and trainer.updates % every == 0
        ends = saves or len(self.updates) >= asked.train.log_every
        if not ends and asked.train.supervised_steps:  # the next phase, such as PPO after imitation
            from hotloop.train.imitation import phase_at

            ends = phase_at(trainer.steps, asked.train).name != self.updates[-1].phase
        if ends:
            self.end_window()
        if saves:  # after the log: a run that resumes here begins with a window of its own
            with span("checkpoint"):
                self.save()

    def end_window(self) -> None:
        """Take down the window; what that takes belongs to the next one."""
        times = name_slowest_rank(self.clock.end(), self.ranks) if self.clock else None
        at_ns = self.window_ns + times.total_ns if times else now_ns()
        updates, evaluation, is_profiled = self.updates, self.evaluation, self.is_profiled
        wall_ns = at_ns - self.window_ns
        self.begin_window(at_ns)
        with span("logging"):
            found, trainer = self.found, self.trainer
            if self.crew is not None:
                ended, self.counted = add_windows(self.crew.take_windows()), dict(self.crew.counters)
            else:
                ended, self.counted = windows_together(self.ranks, self.windows.close(), self.batch)
            agreed = [update.agreement for update in updates if update.agreement is not None]
            names = updates[-1].losses
            window = TrainingWindow(
                number=trainer.updates,
                steps=trainer.steps,
                total=self.settings.train.total_timesteps,
                wall_ns=wall_ns,
                env_steps=ended.env_steps,
                agent_steps=trainer.agent_steps - found.agent_steps,
                mean_sps=(trainer.steps - found.first_steps) * 1e9 / (self.window_ns - found.begin_ns),
                episodes=ended,
                update=updates[-1],
                losses={name: fmean(update.losses.get(name, 0.0) for update in updates) for name in names},
                agreement=fmean(agreed) if agreed else None,
                times=times,
                evaluation=evaluation,
                validation=self.shadowed.validation() if self.shadowed else None,
                rss_bytes=resident_bytes(),
                gpu_bytes=gpu_bytes(self.settings.train.device),
                is_profiled=is_profiled,
            )
            found.windows.append(window)
            found.work.note()
            self.logs.write(window.steps, window.values())
            if times:
                self.logs.say(tree_text(times))
            self.watch.window(window)

    def save(self) -> None:
        """Keep a checkpoint, unless there is one of this very step."""
        if self.saved_at == self.trainer.steps:
            return
        path = self.trainer.save(self.asked.run.checkpoints)
        if not self.ranks.several:
            folders.keep_windows(path, self.windows.state())
        self.saved_at = self.trainer.steps

    def save_last(self, *, to_disk: bool = True) -> None:
        """Keep a checkpoint of the last update that was finished."""
        self.trainer.save_last(self.asked.run.checkpoints, to_disk=to_disk)
        self.saved_at = int(self.trainer.last["steps"])

    def give_up(self, error: HotloopError) -> None:
        """Leave a last line in the log: the run cannot go on; what a lost rank left behind is kept."""
        self.logs.say(f"stopped: {error}")
        if self.trainer.last:
            if self.saved_at != self.trainer.last["steps"]:
                self.save_last()
            self.watch.say(
                f"saved {self.asked.run.checkpoints}: --resume goes on from the last update that was finished"
            )
        if self.clock:
            self.clock.stop()

    def close(self) -> None:
        """Stop looking, and keep what was seen."""
        if self.clock:
            self.clock.stop()
        if self.trace:
            try:
                self.trace.close()
            except SetupError as error:
                self.watch.say(str(error))
            else:
                self.watch.say(f"saved {self.trace_path}: open it in https://ui.perfetto.dev")
        if self.shadowed:
            self.found.bundle = keep_difference(self.shadowed, self.asked.run.place)


def keep_difference(shadowed: Shadowed, folder: Path) -> Path | None:
    """Write what it takes to see the first difference again; None where there is none."""
    if shadowed.shadowing.difference is None:
        return None
    return write_bundle(bundle_of(shadowed.shadowing, tape="policy"), folder / f"difference{SUFFIX}")


def record_of(
    settings: RunSettings,
    batch: Batch,
    found: TrainingState,
    recorder: Recorder,
    shadowed: Shadowed | None,
    *,
    label: str,
) -> Record:
    """The record of the windows there were: one value a window."""
    looks = looks_of(found)
    stages, times = stages_of(looks), found.times
    timed: dict[str, Any] = {}
    if times is not None:
        trees = [window.times for window in found.clean if window.times]
        rows = describe_times(replace(times, calls=1), trees[-MOST_ROUNDS:])
        timed = {"phases": rows, "unaccounted_ns": times.unaccounted_ns}
    gained = found.work.gained
    # how often was learned from: rollouts with PPO, minibatches with DQN
    updates = sum(count for name, count in gained.items() if name.startswith(UPDATES))
    bundle = None if found.bundle is None else str(found.bundle)
    by_twin = replace(shadowed.validation(), bundle=bundle) if shadowed else None
    made = recorder.record(
        method=describe_method(
            batch.spec,
            rounds=len(found.windows),  # a round is a window of updates
            iterations=per_update(settings) * settings.train.log_every,
            policy=LEARNING,
            **({"clock": f"{CLOCK}{times.how}"} if times else {}),
        ),
        counters=gained | {"updates": updates},
        values=values(batch, found),
        notices=notices(settings, found),
        partial=found.partial,
        label=label,
        validation=both_validations(by_twin, describe_validation(batch.counters)),
        resources=used(found),
        **timed,
    )
    described, when = settings.described(batch), datetime.fromisoformat(made.created)
    return replace(
        made,
        target=described,
        run_id=run_id(when, *own_commit(made.code), described.words),
        looks=describe_looks(looks, stages) if looks else None,
        stages=tuple(describe_stages(stages)) if len(stages) > 1 else (),
    )


def looks_of(found: TrainingState) -> list[LoopLook]:
    """Return the windows without a profiler as looks at a loop, each in the phase of its updates."""
    looks: list[LoopLook] = []
    before = 0
    for window in found.windows:
        counts = {UPDATED: window.number - before, STEPS: window.env_steps}
        before = window.number
        looks.append(
            LoopLook(
                counts=counts,
                times=window.times or TimeTree(total_ns=window.wall_ns),
                stage=window.update.phase,
                rss_bytes=window.rss_bytes,
            )
        )
    clean = {id(window) for window in found.clean}
    return keep_few([look for look, window in zip(looks, found.windows, strict=True) if id(window) in clean])


def used(found: TrainingState) -> Resources:
    """What the run used, memory as it was at the end of each window."""
    wall_ns = max(now_ns() - found.begin_ns, 1)
    ends = accumulate(window.wall_ns for window in found.windows)
    return Resources(
        rss_peak_bytes=peak_rss_bytes(),
        rss_over_time=tuple(zip(ends, (window.rss_bytes for window in found.windows), strict=True)),
        cpu_share=(cpu_ns() - found.begin_cpu_ns) / wall_ns,
        ready_share=ready_share(found.begin_ready_ns, found.ready.read(), wall_ns),
        pauses=None if any(window.is_profiled for window in found.windows) else found.pauses.pauses,
        gpu=gpu_facts(found.samples) if found.samples else None,
    )


def notices(settings: RunSettings, found: TrainingState) -> list[Notice]:
    """What only the run knows: how it was cut to size, and how it was timed."""
    times = found.times
    host = times is not None and times.how == "async"
    said = [notice(Code.HOST_TIMER, whose="the GPU's", remedy="use train.timing=events")] if host else []
    if on := sum(window.is_profiled for window in found.windows):
        said.append(profiled_notice(on, len(found.windows)))
    return [*settings.notices, *said]


def values(batch: Batch, found: TrainingState) -> dict[str, Sequence[float]]:
    """One value a window; of returns, one a window in which an episode ended."""
    windows, clean = found.windows, found.clean
    known: dict[str, list[float]] = {
        "env_steps_per_s": [window.sps for window in clean],
        "agent_steps_per_s": [window.agent_steps * 1e9 / window.wall_ns for window in clean],
        "wall_ns": [float(window.wall_ns) for window in clean],
        "env_steps": [float(window.env_steps) for window in clean],
        "return_per_agent": [each for window in windows if (each := window.episodes.mean_return) is not None],
        "episode_length": [each for window in windows if (each := window.episodes.mean_length) is not None],
        "agreement": [window.agreement for window in windows if window.agreement is not None],
        STALENESS: [window.losses[STALENESS] for window in windows if STALENESS in window.losses],
        "eval_return": [evaluation.mean_return for evaluation in found.evaluations],
    }
    for name, info in ((name, each.info) for name, each in batch.spec.world.outcomes.items()):
        known[f"{OUTCOME}{name}"] = [
            window.episodes.infos[info] for window in windows if info in window.episodes.infos
        ]
    return {name: rows for name, rows in known.items() if rows or name.endswith("_per_s")}
