"""A training run from its first update to its record: windows, logs, evaluation, checkpoints, and Ctrl-C.

The clock never stops: a window ends where the next begins, so the writing of one window's logs is in the
next one's time, and the windows add up to the run.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from hotloop.core.clock import cpu_ns, now_ns
from hotloop.core.cluster import LOCAL
from hotloop.core.errors import ExitCode, HotloopError, InputError, SetupError
from hotloop.core.files import NO_ROOM
from hotloop.core.machine import need
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Activity
from hotloop.core.progress import InterruptFlag
from hotloop.core.record import Record
from hotloop.core.spans import resident_bytes
from hotloop.core.target import Target
from hotloop.core.time_tree import TimeTree, tree_text
from hotloop.envs.batch import Batch
from hotloop.judge.judge import broken_off, judge
from hotloop.lab import causal
from hotloop.lab.measure.loop import Tally
from hotloop.lab.measure.record import Recorder
from hotloop.lab.training import settings as folders
from hotloop.lab.training.ranks import added, hired, named, share_of, started, windows_together
from hotloop.lab.training.record import TrainingState, Window, record_of
from hotloop.lab.training.settings import Run, RunSettings
from hotloop.lab.validate.bundle import SUFFIX, bundle_of, write_bundle
from hotloop.lab.validate.shadow import Shadowed, shadow
from hotloop.probes.resources import Sampler, reader
from hotloop.train.settings import HERE, ProfilerSettings
from hotloop.train.timing import Clock, choose_how, gpu_bytes, is_cuda, span
from hotloop.train.windows import Logs, Watcher, WindowEpisodes, windows_of

if TYPE_CHECKING:
    from hotloop.train.actors import ActorPool
    from hotloop.train.algorithm import Update
    from hotloop.train.evaluation import Evaluation
    from hotloop.train.ranks import Ranks

SAMPLE_S = 0.25  # Between two looks at a GPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run is to do beside its settings."""

    settings: RunSettings
    run: Run
    told: Target  # What the settings were read from, for the run's folder
    resume: Path | None = None  # A checkpoint to go on from
    validate: str | None = None  # `true`, `smoke`, `soak` or a number of comparisons
    watchers: tuple[Watcher, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """Who looks on; nothing of it is called inside a rollout."""

    # After every update: env-steps so far, and those there are to be
    update: Callable[[int, int], None] = lambda steps, total: None
    window: Callable[[Window], None] = lambda window: None  # After every window
    say: Callable[[str], None] = lambda text: None


def train(asked: Asked, watch: Watch | None = None) -> Record:
    """Train to the end; Ctrl-C leaves a checkpoint and a record of the windows there were."""
    looking, no_room = watch or Watch(), ""
    with ExitStack() as stack:
        ranks = stack.enter_context(started(asked.settings, asked.resume))
        opened = stack.enter_context(closing(share_of(asked.settings, 0, ranks.size).open()))
        batch, shadowed = shadow(opened, asked.validate)
        recorder = Recorder("train", opened.spec)
        crew = stack.enter_context(hired(asked.settings))
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
        found, label = session.found, asked.run.name
        made = session.with_threads(
            record_of(session.settled, opened, found, recorder, shadowed, label=label)
        )
        return broken_off(made, ExitCode.USAGE, no_room) if no_room else judge(made)


class Session:
    """A trainer and everything around it."""

    def __init__(
        self,
        asked: Asked,
        batch: Batch,
        shadowed: Shadowed | None,
        watch: Watch,
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
            how = choose_how(self.settings.around.timing, device)
            self.clock = Clock(batch, how=how, device=device)
        self.counted = windows_together(ranks, self.windows.close(), batch)[1] if ranks.several else {}
        self.found = TrainingState(
            work=Tally(self.counters),
            first_steps=self.trainer.steps,
            first_agent_steps=self.trainer.agent_steps,
        )
        self.saved_at: int | None = self.trainer.steps if asked.resume else None

    @property
    def settled(self) -> RunSettings:
        """The settings with what was chosen for them."""
        train = replace(self.settings.train, torch_threads=self.trainer.threads.threads)
        return replace(self.settings, train=train)

    def with_threads(self, record: Record) -> Record:
        """The record with a word on how torch's threads were chosen, where nobody asked for so many."""
        if not self.trainer.threads.is_measured:
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
        resumed_at = self.trainer.steps if resumed else None
        board = self.settings.around.tensorboard
        self.logs = stack.enter_context(Logs(run.place, resumed_at=resumed_at, tensorboard=board))
        profiler = self.settings.profiler
        self.trace = Trace(profiler, run.trace) if profiler.enabled else None
        if self.trainer.threads.round_ns:
            self.logs.say(self.trainer.threads.text)
            self.watch.say(self.trainer.threads.text)

    def run(self, stop: InterruptFlag) -> None:
        """WindowEpisodes after window until all steps are made, or somebody stops it."""
        found = self.found
        found.begin_ns, found.begin_cpu_ns, found.begin_ready_ns = now_ns(), cpu_ns(), found.ready.read()
        self.begin_window(found.begin_ns)
        with found.pauses, causal.run_experiment() as turn:
            while not self.trainer.finished and not stop.asked and not self.differs:
                self.one_update(stop)
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

    def one_update(self, stop: InterruptFlag) -> None:
        """One rollout and what is due after it."""
        if self.exposed and self.trainer.steps not in (0, self.saved_at):
            with span("checkpoint"):
                self.trainer.note_last()
                self.save_last(to_disk=False)  # it is the process that may end, not the machine
        self.is_profiled = self.is_profiled or (self.trace is not None and self.trace.is_on)
        self.updates.append(self.trainer.update())
        with lifeline.doing(Activity.OURS):
            self.after_update(stop)

    def after_update(self, stop: InterruptFlag) -> None:
        """Evaluate, log and save where it is due; the window ends when it is full."""
        asked, trainer = self.settings, self.trainer
        if self.trace:
            with span("profiler"):
                self.trace.step()
        if due(asked.eval.every, trainer.updates):
            with span("eval"):
                self.evaluate()
        with span("logging"):
            self.watch.update(trainer.steps, asked.train.total_timesteps)
        if trainer.finished or stop.asked:
            return  # the end logs and saves
        saves = due(asked.train.checkpoint_every, trainer.updates)
        if saves or len(self.updates) >= asked.train.log_every or self.changes_phase:
            self.end_window()
        if saves:  # after the log: whoever goes on from here goes on with a window of its own
            with span("checkpoint"):
                self.save()

    @property
    def changes_phase(self) -> bool:
        """Whether the next update is of another phase of the training, such as PPO after imitation."""
        from hotloop.train.imitation import phase_at

        if not self.settings.train.supervised_steps:
            return False
        return phase_at(self.trainer.steps, self.settings.train).name != self.updates[-1].phase

    def end_window(self) -> None:
        """Take down the window; what that takes belongs to the next one."""
        times = named(self.clock.end(), self.ranks) if self.clock else None
        at_ns = self.window_ns + times.total_ns if times else now_ns()
        updates, evaluation, wall_ns = self.updates, self.evaluation, at_ns - self.window_ns
        is_profiled = self.is_profiled
        self.begin_window(at_ns)
        with span("logging"):
            window = self.summed(updates, evaluation, times, wall_ns)
            window = replace(window, is_profiled=is_profiled)
            self.found.windows.append(window)
            self.found.work.note()
            self.found.updates += len(updates)
            self.logs.write(window.steps, window.values())
            if times:
                self.logs.say(tree_text(times))
            self.watch.window(window)

    def summed(
        self,
        updates: "Sequence[Update]",
        evaluation: "Evaluation | None",
        times: TimeTree | None,
        wall_ns: int,
    ) -> Window:
        found, trainer = self.found, self.trainer
        ended, self.counted = self.ended()
        agreed = [update.agreement for update in updates if update.agreement is not None]
        names = updates[-1].losses
        return Window(
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
        )

    def ended(self) -> tuple[WindowEpisodes, dict[str, int]]:
        """The episodes of the window and all that was counted, by whoever collects."""
        if self.crew is not None:
            return added(self.crew.take_windows()), dict(self.crew.counters)
        return windows_together(self.ranks, self.windows.close(), self.batch)

    def evaluate(self) -> None:
        from hotloop.train.evaluation import evaluate

        self.evaluation = evaluate(self.trainer, self.batch.spec, self.settings.eval)
        self.found.evaluations.append(self.evaluation)

    def save(self) -> None:
        """Keep a checkpoint, unless there is one of this very step."""
        if self.saved_at == self.trainer.steps:
            return
        path = self.trainer.save(self.asked.run.checkpoints)
        if not self.ranks.several:
            folders.keep_windows(path, self.windows.state())
        self.saved_at = self.trainer.steps

    @property
    def exposed(self) -> bool:
        """Whether another process can end this one without a word: Ray's own, of a cluster started for it."""
        train = self.settings.train
        return LOCAL in (train.collect, train.ranks_on if train.ranks > 1 else HERE)

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
            self.trace.close(self.watch.say)
        if self.shadowed:
            self.found.bundle = keep_difference(self.shadowed, self.asked.run.place)


def keep_difference(shadowed: Shadowed, folder: Path) -> Path | None:
    """Write what it takes to see the first difference again; None where there is none."""
    if shadowed.shadowing.difference is None:
        return None
    return write_bundle(bundle_of(shadowed.shadowing, tape="policy"), folder / f"difference{SUFFIX}")


def due(every: int, count: int) -> bool:
    return every > 0 and count % every == 0


class Trace:
    """The window of a run; one turn is one update."""

    def __init__(self, asked: ProfilerSettings, path: Path) -> None:
        from hotloop.probes.torch import TorchWindow

        self.path = path
        self._window = TorchWindow(
            path,
            wait=asked.wait_steps,
            warmup=asked.warmup_steps,
            active=asked.active_steps,
            record_shapes=asked.record_shapes,
        )

    @property
    def is_on(self) -> bool:
        return self._window.is_on

    def step(self) -> None:
        self._window.step()

    def close(self, say: Callable[[str], None]) -> None:
        """End the window, and say where its trace is, or why there is none."""
        try:
            self._window.close()
        except SetupError as error:
            say(str(error))
        else:
            say(f"saved {self.path}: open it in https://ui.perfetto.dev")


def check_trace(asked: ProfilerSettings, updates: int) -> None:
    """Refuse a window that the run would end before."""
    if asked.enabled and updates < asked.rollouts:
        raise InputError(
            f"train.profiler needs {asked.rollouts} rollouts (wait_steps + warmup_steps + active_steps) and "
            f"the run has {updates}: give more total_timesteps, or shorten the window"
        )
