"""What a gate, a soak, a sweep and a search for settings found."""

from dataclasses import dataclass, field
from statistics import fmean
from typing import Literal

from hotloop.core.record.codec import Amount, Count

# How a run stands to its budget; of one that is not enforced, a miss is told and is no failure.
Standing = Literal["met", "missed", "cannot tell", "not equal", "expired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value and what it may as well be."""

    value: float
    low: float
    high: float
    samples: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetResult:
    """A run held against one budget."""

    name: str
    metric: str
    unit: str
    more_is_better: bool
    limit: float | None  # Absolute, in the unit
    max_change: float | None  # For the worse, as a share
    # What a change is counted from, as it was found: a commit with its hash, or a baseline.
    against: str | None
    reason: str
    owner: str
    expires: str | None
    enforced: bool
    value: Estimate | None  # In the unit
    change: Estimate | None = None  # Value over that of the baseline, less 1
    standing: Standing
    why: str
    runs: Count = 1  # How often all of it was measured: a miss is seen twice before it is one
    tighter: str | None = None  # The line that would hold what was gained, where a gain is beyond noise

    @property
    def bound(self) -> float | None:
        """What the value or the change is held against; a change for the worse has its sign."""
        if self.limit is not None or self.max_change is None:
            return self.limit
        return -self.max_change if self.more_is_better else self.max_change

    @property
    def distance(self) -> float | None:
        """How far the value is from an absolute limit, as a share of it; below 0 is short of it."""
        if self.limit is None or not self.limit or self.value is None:
            return None
        apart = self.value.value / self.limit - 1
        return apart if self.more_is_better else -apart


SPEED = "env_steps_per_s"  # As it was; what a neighbour does to it is in it

# How many times as long a step takes as that of an instance just made, in turns with it; as a logarithm.
SLOWER = "slower"

SLOWER_IN = "slower."  # Before the name of a phase: the same of it

RSS_BYTES, HEAP_BYTES, GPU_BYTES = "rss_bytes", "heap_bytes", "gpu_bytes"

OPEN_FILES, RUNNING = "open_files", "threads"

# Before the name of what a process holds: what came to it while the first instance stepped by itself.
OWN = "own."

PRINTED = "printed."  # Before the name of a metric that a program prints


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One curve, and its slope with an interval."""

    name: str
    slope: float  # A minute, in the curve's own unit; robust: the median over all pairs of points
    low: float
    high: float  # 99.99%, so that twenty clean soaks are rarely called otherwise
    growth: float  # Over the judged part of the run, by the slope
    alarm: bool  # Whether it surely rises, by more than a trifle, and to the end
    # Whether it rises by what new instances, made and closed, leave behind, and not by steps: no alarm.
    by_new: bool = False
    # Seconds since the beginning, and the value; as many points as a curve needs.
    curve: tuple[tuple[Amount, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Soak:
    """A long run."""

    seconds: Amount
    env_steps: Count
    looks: Count  # At which everything was read
    cut: Count  # Of them, those at the beginning that are not judged
    fresh: Count  # Instances that were made anew to be stepped in turns with the first one
    trends: tuple[Trend, ...]
    ended: str = ""  # Why it ended before its time; empty where it did not
    enough: bool = True  # Whether there were looks enough to say anything

    @property
    def alarms(self) -> tuple[Trend, ...]:
        return tuple(each for each in self.trends if each.alarm)


# By which a cost grows with a size; a power has an exponent of its own, unknown says that none is known.
Law = Literal["constant", "log", "linear", "n log n", "quadratic", "power", "unknown"]

STEP_NS = "ns_per_env_step"  # The cost of an env-step: of a point its median in each repeat
RUN_NS = "ns_per_run"  # Of a whole run of so many steps from its reset on, where steps are the axis
RSS = "rss_bytes"  # What making it and playing it added to the memory of the process
PHASE = "phase."  # Before the name of a phase: its ns of an env-step

# The cost of an env-step in the passes that time functions of the user's code: their shares are of it.
TIMED_NS = "timed_ns_per_env_step"

ELSE = "everything else"  # The phase of all that no named function takes of a step

CPU_NS = "cpu_ns_per_env_step"

AGENT_SPEED = "agent_steps_per_s"

THREADS = "threads"  # The axis whose efficiency is told


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One place on the axes."""

    at: dict[str, str]  # Axis to value, as typed
    values: dict[str, tuple[float, ...]]  # Metric to one value a repeat
    env_steps: Count  # That were measured in every repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The law by which something grows along an axis."""

    axis: str
    at: dict[str, str]  # The other axes' values
    metric: str
    law: Law
    exponent: float
    low: float
    high: float  # The exponent's 95% interval
    constant: float
    factor: float
    also: tuple[Law, ...] = ()  # Laws that the same values allow


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Where one phase overtakes another."""

    axis: str
    at: dict[str, str]
    riser: str  # The phase that costs more from there on
    fallen: str
    size: Amount
    low: Amount
    high: Amount  # The two sizes that were measured, between which it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Knee:
    """From where on more of an axis brings little speed."""

    axis: str
    at: dict[str, str]
    size: Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """What threads bring."""

    at: dict[str, str]
    threads: Count
    speedup: Amount
    # CPU time of an env-step over that with one thread: what shared memory and waiting awake cost.
    work: Amount
    idle: Amount  # Share of the threads' time in which they had nothing to do
    serial: float  # The part that would have to be serial for this speed-up (Karp and Flatt)
    bound: str  # What keeps it from being faster, in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A point that could not be measured."""

    at: dict[str, str]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """All of it."""

    axes: dict[str, tuple[str, ...]]
    repeats: Count
    points: tuple[SweepPoint, ...]
    growths: tuple[Growth, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    knees: tuple[Knee, ...] = ()
    efficiencies: tuple[Efficiency, ...] = ()
    refused: tuple[Refused, ...] = ()


Learning = Literal["worse", "as well", "better", "cannot tell"]

LEARNING_BAND = 0.05  # Of what the present settings learn, that others may learn less and still learn as well

# What a line to paste begins with: of a training, and of envs alone.
TRAIN, BENCH = "hotloop train", "hotloop bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One combination of settings."""

    at: dict[str, str]  # Axis to value
    speeds: tuple[Amount, ...]  # Env-steps a second, one a round, of all rungs that it was in
    median: Amount
    low: Amount | None
    high: Amount | None  # Of the median; None where the rounds are too few
    rungs: Count  # How far it came: each rung keeps half
    rss_bytes: Amount
    latency_ns: Amount  # Of one update of a training, or of one call of a batch
    # The ns of an env-step in each function that the user named.
    parts: dict[str, Amount] = field(default_factory=dict)
    # Whether no other is better in one of speed, memory and latency, and as good in the others.
    best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCheck:
    """What the present settings and the winner have learnt after as many env-steps, seed by seed."""

    env_steps: Count
    present: tuple[float, ...]
    winner: tuple[float, ...]  # The mean return of each seed
    difference: float  # Winner less present, the mean over the seeds
    low: float
    high: float  # Its 95% interval
    # The mean return of each seed before anything was learnt; empty in records that do not know it.
    untrained: tuple[float, ...] = ()
    band: Amount = LEARNING_BAND

    @property
    def learned(self) -> float:
        """What the present settings have learnt: their return beyond that of the same policy untrained.

        Where that is not known their return itself, which says as much only where 0 means nothing.
        """
        if not self.untrained:
            return abs(fmean(self.present))
        return fmean(self.present) - fmean(self.untrained)

    @property
    def margin(self) -> float:
        """The return that may be lost; nothing where nothing was learnt that could be kept."""
        return self.band * max(self.learned, 0.0)

    @property
    def outcome(self) -> Learning:
        """Worse or better by the whole interval; as well where it ends within the margin below."""
        if self.low > -self.margin:
            return "better" if self.low > self.margin else "as well"
        return "worse" if self.high < -self.margin else "cannot tell"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """All of it."""

    axes: dict[str, tuple[str, ...]]
    present: str  # The settings that it began with, as typed
    tried: tuple[Tried, ...]
    skipped: tuple[Refused, ...]
    winner: dict[str, str]  # Axis to value
    words: str  # The winner's line to paste
    # Whether the present settings stay: in turns with them the winner was slower, or it learns less.
    kept: bool
    # Env-steps a second that this machine can be relied on for, with the settings that are recommended.
    floor: Amount | None = None
    learnt: LearningCheck | None = None

    @property
    def is_training(self) -> bool:
        return self.words.startswith(TRAIN)
