"""From a training run to its record: what each window of updates came to, and all of them together."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.clock import cpu_ns, now_ns
from hotloop.core.notices import Code, Notice, notice, profiled_notice
from hotloop.core.record import OUTCOME, Method, Record, Resources, run_id
from hotloop.core.record.comparison import Validation
from hotloop.core.record.metadata import own_commit
from hotloop.core.record.profile import describe_times
from hotloop.core.spans import peak_rss_bytes
from hotloop.core.time_tree import TimeTree, add
from hotloop.envs.batch import Batch
from hotloop.lab.loop.windows import (
    STEPS,
    Counted,
    LoopLook,
    describe_looks,
    describe_stages,
    keep_few,
    stages_of,
)
from hotloop.lab.loop.windows import UPDATES as UPDATED
from hotloop.lab.measure.loop import Tally
from hotloop.lab.measure.policy import LEARNING
from hotloop.lab.measure.record import Recorder, both_validations, describe_method, describe_validation
from hotloop.lab.measure.sides import PauseClock
from hotloop.lab.training.settings import RunSettings, per_update
from hotloop.lab.validate.shadow import Shadowed
from hotloop.probes.resources import ResourceSample, RunQueue, gpu_facts, ready_share
from hotloop.train.windows import WindowEpisodes

if TYPE_CHECKING:
    from hotloop.train.algorithm import Update
    from hotloop.train.evaluation import Evaluation


UPDATES = "updates."  # What the names of counters begin with that say whose arithmetic updates were made with
STALENESS = "staleness"  # Updates by which what was learned from was old, a mean over each window
MOST_ROUNDS = 64  # Windows, the last ones, whose trees are kept apart: as many as an interval needs
CLOCK = "perf_counter_ns; regions "  # What a method says of its clock, before how the regions were timed


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
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
    updates: int = 0
    windows: list[Window] = field(default_factory=list)
    evaluations: list["Evaluation"] = field(default_factory=list)
    partial: bool = True
    bundle: Path | None = None  # Where the first difference is kept that a comparison found

    @property
    def agent_steps(self) -> int:
        """Of the run, up to the last whole window."""
        return self.first_agent_steps + sum(window.agent_steps for window in self.windows)

    @property
    def clean(self) -> list[Window]:
        """The windows without torch's profiler; all of them if it was on in each."""
        return [window for window in self.windows if not window.is_profiled] or self.windows

    @property
    def was_profiled(self) -> bool:
        return any(window.is_profiled for window in self.windows)

    @property
    def times(self) -> TimeTree | None:
        """Of all windows without a profiler together; None where nothing was timed."""
        return add(window.times for window in self.clean if window.times)


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
    stages = stages_of(looks)
    gained = found.work.gained
    # how often was learned from: rollouts with PPO, minibatches with DQN
    updates = sum(count for name, count in gained.items() if name.startswith(UPDATES))
    made = recorder.record(
        method=method(settings, batch, found),
        counters=gained | {"updates": updates},
        values=values(batch, found),
        notices=notices(settings, found),
        partial=found.partial,
        label=label,
        validation=validation(batch, found, shadowed),
        resources=used(found),
        **phases(found),
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
                counted=Counted(counts=counts, wall_ns=window.wall_ns),
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
        pauses=None if found.was_profiled else found.pauses.pauses,
        gpu=gpu_facts(found.samples) if found.samples else None,
    )


def validation(batch: Batch, found: TrainingState, shadowed: Shadowed | None) -> Validation | None:
    """What the twin compared where it was asked to, and what the shadow of the world itself did."""
    bundle = None if found.bundle is None else str(found.bundle)
    by_twin = replace(shadowed.validation(), bundle=bundle) if shadowed else None
    return both_validations(by_twin, describe_validation(batch.counters))


def notices(settings: RunSettings, found: TrainingState) -> list[Notice]:
    """What only the run knows: how it was cut to size, and how it was timed."""
    times = found.times
    host = times is not None and times.how == "async"
    said = [notice(Code.HOST_TIMER, whose="the GPU's", remedy="use train.timing=events")] if host else []
    if found.was_profiled:
        on, windows = sum(window.is_profiled for window in found.windows), len(found.windows)
        said.append(profiled_notice(on, windows))
    return [*settings.notices, *said]


def method(settings: RunSettings, batch: Batch, found: TrainingState) -> Method:
    """A round is a window of updates."""
    steps = per_update(settings) * settings.train.log_every
    times = found.times
    clock = {"clock": f"{CLOCK}{times.how}"} if times else {}
    return describe_method(batch.spec, rounds=len(found.windows), iterations=steps, policy=LEARNING, **clock)


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


def phases(found: TrainingState) -> dict[str, Any]:
    """The account of all windows; nothing where nothing was timed."""
    times, windows = found.times, [window.times for window in found.clean if window.times]
    if times is None:
        return {}
    rows = describe_times(replace(times, calls=1), windows[-MOST_ROUNDS:])
    return {"phases": rows, "unaccounted_ns": times.unaccounted_ns}
