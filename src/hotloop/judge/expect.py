"""Expectations: what this machine has reached before, in records, and what its memory allows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median

from hotloop.core.errors import Code
from hotloop.core.record import ENV_STEPS_PER_S, Record
from hotloop.core.record.codec import Interval
from hotloop.judge.case import Case, speed_up
from hotloop.judge.course import views
from hotloop.stats.summary import ONE_MISS_IN, sign_interval

HALF = 0.5  # Of the best, below which a configuration is likely to be at fault

# Parameters that do not change how fast a step is.
WHATEVER = ("seed", "total_timesteps", "train.seed", "train.total_timesteps", "autoreset")

QUIET = ("profile", "render_mode", "command")  # Variants that say how it was looked at

# The phases of a training, and what they are called here.
PHASES = {"imitation": "supervised", "fade": "fade", "ppo": "PPO", "explore": "exploring", "dqn": "DQN"}

# The finding that has what the owner of a loop expects: phase to the least and most steps per second.
EXPECT = "expect"

AGENT_STEPS = "agent_steps_per_s"


Ranges = Mapping[str, tuple[float, float]]  # Phase to the least and the most steps per second


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedSpeed:
    """What the records of one configuration came to."""

    configuration: str  # `env only`, `PPO`, `supervised`, `own loop` or `program`
    device: str  # CPU or GPU
    records: int
    unit: str
    best: float
    best_run: str
    typical: float  # The median of their medians
    this: float | None  # Of the record that is diagnosed, where it is one of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What copying alone would take."""

    bytes_per_env_step: float
    bytes_per_s: float  # Of a copy, measured on this machine
    phase: str
    phase_ns: float  # What the phase that writes them takes for an env-step

    @property
    def least_ns(self) -> float:
        return self.bytes_per_env_step * 1e9 / self.bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedSpeed:
    """A speed that the owner expects, beside what was reached."""

    phase: str
    low: float
    high: float
    reached: float  # Steps per second
    differing: tuple[str, ...] = ()  # What differs from the best record of the same work

    @property
    def is_short(self) -> bool:
        return self.reached < HALF * self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """What could be expected of a run."""

    refused: str | None = None  # Why nothing is expected: the record is of another machine, or of a busy one
    table: tuple[ReachedSpeed, ...] = ()
    expected: float | None = None  # The best of the same work on this machine
    reached: float | None = None
    best_run: str | None = None
    # Of a run that declared several, the one that is furthest from its best; it is what is told here.
    phase: str | None = None
    differing: tuple[str, ...] = ()  # Settings that are not as in the best run
    memory: Memory | None = None
    given: tuple[ExpectedSpeed, ...] = ()

    @property
    def is_short(self) -> bool:
        """Whether less than half of what is expected was reached."""
        return bool(self.expected and self.reached and self.reached < HALF * self.expected)


def expect(
    record: Record,
    others: Sequence[Record],
    fingerprint: str,
    copy_bytes_per_s: float | None = None,
    project: Mapping[str, Ranges] | None = None,
) -> Expectations:
    """Hold a record against all of this machine; `fingerprint` is this machine's.

    `project` is what the owner expects by device and phase, as hotloop.toml has it.
    """
    found = of_records(record, others, fingerprint, copy_bytes_per_s)
    return replace(found, given=tuple(owner_speeds(record, project or {}, found.differing)))


def owner_speeds(
    record: Record, project: Mapping[str, Ranges], differing: tuple[str, ...]
) -> Iterable[ExpectedSpeed]:
    """Return what the owner expects of this record; nothing of one of a busy machine."""
    _, device = configuration(record)
    known = f"{device} {record.machine['cpu']} {record.target.device}".lower().split()
    ranges: dict[str, Sequence[float]] = {}
    for asked, table in project.items():
        if asked.lower() in known:
            ranges |= table
    for finding in record.findings:
        ranges |= finding.facts if finding.probe == EXPECT else {}
    stages = of_stages(record)
    # A phase by all its names; a run of one population by those of the run.
    speeds = {
        name: each.metrics[ENV_STEPS_PER_S]
        for each in stages
        for name in (
            configuration(each)[0].lower(),
            (each.stages[0].name if len(each.stages) == 1 else each.target.name).lower(),
        )
        if ENV_STEPS_PER_S in each.metrics
    }
    for phase, (low, high) in ranges.items():
        metric = speeds.get(phase.lower())
        # One speed that is expected of a loop of the user's own is that of the loop, whatever it is called.
        if metric is None and len(stages) == len(ranges) == 1 and record.kind == "run":
            metric = record.metrics.get(ENV_STEPS_PER_S)
        if metric and not is_busy(record):
            yield ExpectedSpeed(phase=phase, low=low, high=high, reached=metric.median, differing=differing)


def of_records(
    record: Record, others: Sequence[Record], fingerprint: str, copy_bytes_per_s: float | None
) -> Expectations:
    """Return what the records of this machine let one expect."""
    if record.machine["fingerprint"] != fingerprint:
        return Expectations(refused=f"the record is from another machine, {record.machine['fingerprint']}")
    if is_busy(record):
        return Expectations(refused="the machine was busy", memory=memory(record, copy_bytes_per_s))
    # Others of this target and machine that were run to their end and have a speed.
    others = [
        each
        for each in others
        if each.machine["fingerprint"] == fingerprint
        and each.target.name == record.target.name
        and each.kind in ("bench", "profile", "train", "run")
        and each.run_id != record.run_id
        and not (each.partial or is_busy(each))
    ]
    mine = [stage for each in (*others, record) for stage in of_stages(each)]
    stages = of_stages(record)

    def standing(stage: Record) -> float:
        """Return what a phase reached of the best of its kind."""
        best = max((speed(each) or 0.0 for each in mine if same_work(each, stage)), default=0.0)
        return (speed(stage) or 0.0) / best if best else 1.0

    record = min(stages, key=standing)
    same = [each for each in mine if same_work(each, record) and speed(each)]
    best = max(same, key=lambda each: speed(each) or 0.0, default=None)
    return Expectations(
        phase=str(record.label) if len(stages) > 1 else None,
        table=tuple(reached_speeds(mine, record)) if others else (),
        expected=speed(best) if best else None,
        reached=speed(record),
        best_run=best.run_id if best else None,
        differing=tuple(unlike_settings(record, best)) if best and best is not record else (),
        memory=memory(record, copy_bytes_per_s),
    )


def of_stages(record: Record) -> tuple[Record, ...]:
    """Return the phases that a run has declared, each a population of its own; else the run itself."""
    declared = [each.is_declared for each in record.stages]
    return (all(declared) and views(record)) or (record,)


def is_busy(record: Record) -> bool:
    """Return whether other work ran beside it, so that its speed is neither a promise nor a failure."""
    return any(each.code == Code.BUSY_MACHINE for each in record.notices)


def unit(record: Record) -> str:
    """Return the metric that is compared: agent-steps only if an env has several agents."""
    several = record.work.agent_steps != record.work.env_steps
    if AGENT_STEPS in record.metrics and (several or ENV_STEPS_PER_S not in record.metrics):
        return AGENT_STEPS
    return ENV_STEPS_PER_S if ENV_STEPS_PER_S in record.metrics else record.method.headline


def speed(record: Record) -> float | None:
    metric = record.metrics.get(unit(record))
    return metric.median if metric and metric.median > 0 else None


def configuration(record: Record) -> tuple[str, str]:
    """Return what was run, a training by its phases in their order, and on what."""
    case = Case(record)
    device = "GPU" if case.on_gpu else "CPU"
    if record.kind == "train" and record.stages:
        return ", then ".join(PHASES.get(each.name, each.name) for each in record.stages), device
    if record.kind == "train":
        supervised = int(case.setting("supervised_steps") or 0)
        return ("supervised" if supervised >= record.work.env_steps else "PPO"), device
    if record.kind == "run":
        return f"own loop, {record.stages[0].name}" if len(record.stages) == 1 else "own loop", device
    return ("program" if record.work.runs else "env only"), device


def reached_speeds(records: Iterable[Record], record: Record) -> Iterable[ReachedSpeed]:
    """Yield a row a configuration, in the order of their names."""
    groups: dict[tuple[str, str, str], list[tuple[float, Record]]] = {}
    for each in records:
        found = speed(each)
        if found is not None:
            groups.setdefault((*configuration(each), unit(each)), []).append((found, each))
    for (name, device, counted), members in sorted(groups.items()):
        best, holder = max(members, key=lambda member: member[0])
        here = [found for found, each in members if each.run_id == record.run_id]
        yield ReachedSpeed(
            configuration=name,
            device=device,
            records=len(members),
            unit=counted,
            best=best,
            best_run=holder.run_id,
            typical=median(found for found, _ in members),
            this=here[0] if here else None,
        )


def same_work(other: Record, record: Record) -> bool:
    """Return whether two runs do the same: all that changes results but the seed and the length."""
    mine, theirs = (
        {key: value for key, value in each.target.params.items() if key not in WHATEVER}
        for each in (record, other)
    )
    return mine == theirs and configuration(other) == configuration(record) and unit(other) == unit(record)


def unlike_settings(record: Record, best: Record) -> Iterable[str]:
    """Yield variants, threads and the load that differ from the best run."""
    mine, theirs = ({**each.target.variant, **each.target.keys} for each in (record, best))
    for key in {**mine, **theirs}:
        if key not in QUIET and mine.get(key) != theirs.get(key):
            yield f"{key}={mine.get(key)} here, {theirs.get(key)} in the best"
    if record.target.impl != best.target.impl:
        yield f"impl {record.target.impl} here, {best.target.impl} in the best"
    load, quiet = record.machine.get("load") or 0.0, best.machine.get("load") or 0.0
    if load > quiet + 1:
        yield f"a load of {load:.1f} before the run, {quiet:.1f} in the best"
    if record.code["commit"] != best.code["commit"]:
        yield f"commit {record.code['commit'][:12]} here, {best.code['commit'][:12]} in the best"


def memory(record: Record, copy_bytes_per_s: float | None) -> Memory | None:
    """Return what writing the observations takes at least; None if the bytes or the rate are not known."""
    size, steps = record.target.observation_bytes, record.work.env_steps
    rows = [row for row in Case(record).rows if "observ" in row.name.lower() and row.is_leaf]
    if not size or not copy_bytes_per_s or not rows or not steps:
        return None
    total = next(phase.total_ns for phase in record.phases if phase.path == rows[0].path)
    return Memory(
        bytes_per_env_step=float(size),
        bytes_per_s=copy_bytes_per_s,
        phase=rows[0].name,
        phase_ns=total / steps,
    )


HIDDEN = 0.5  # Of a delay that must cost nothing for a part to be called hidden
UNTOLD = "cannot tell yet"

FASTER = 2.0  # How many times as fast a part is taken to be made


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One turn with a delay in a part, and the turn without one beside it; all of one update."""

    part: str
    own_ns: float  # What the part takes without a delay, in whichever threads it runs
    base_ns: float
    delayed_ns: float
    inserted_ns: float  # Of delay, as it was measured

    @property
    def slope(self) -> float:
        return (self.delayed_ns - self.base_ns) / self.inserted_ns

    @property
    def share(self) -> float:
        return self.own_ns / self.base_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class Causal:
    """One part: what it should be worth by its share, and what it was seen to be worth."""

    part: str
    trials: int
    share: float  # Of the wall; of several threads, of theirs together
    predicted: float  # Times as fast in all by Amdahl's law, were the part twice as fast
    predicted_interval: Interval | None
    slope: float
    slope_interval: Interval | None
    seen: float  # Times as fast in all by the slope
    seen_interval: Interval | None
    said: str  # How the two stand to each other
    # Turns that could tell, by how far the interval reaches now; None if these could, or none would.
    enough: int | None = None


def causal(trials: Sequence[Trial]) -> tuple[Causal, ...]:
    """Return all parts, the one that is worth most first."""
    parts = dict.fromkeys(trial.part for trial in trials)
    rarely = ONE_MISS_IN * max(len(parts), 1)  # so that all intervals hold together
    found = [of_part([trial for trial in trials if trial.part == part], rarely) for part in parts]
    return tuple(sorted(found, key=lambda each: -each.seen))


def of_part(trials: Sequence[Trial], one_miss_in: int = ONE_MISS_IN) -> Causal:
    """Return the slope of a part, by the median over its turns, with its exact interval."""
    shares, slopes = [trial.share for trial in trials], [trial.slope for trial in trials]
    share, slope = median(shares), median(slopes)
    share_ends, slope_ends = sign_interval(shares, one_miss_in), sign_interval(slopes, one_miss_in)
    predicted_ends = seen_ends = None
    if share_ends and slope_ends:
        predicted_ends = worth(share_ends[0], 1.0), worth(share_ends[1], 1.0)
        seen_ends = worth(share_ends[0], slope_ends[0]), worth(share_ends[1], slope_ends[1])
    return Causal(
        part=trials[0].part,
        trials=len(trials),
        share=share,
        predicted=worth(share, 1.0),
        predicted_interval=predicted_ends,
        slope=slope,
        slope_interval=slope_ends,
        seen=worth(share, slope),
        seen_interval=seen_ends,
        said=compared(slope_ends),
        enough=enough(len(trials), slope, slope_ends),
    )


def enough(turns: int, slope: float, ends: Interval | None) -> int | None:
    """Turns after which an interval would end short of the line: four times as many make it half as wide."""
    distance = abs(slope - HIDDEN)
    if ends is None or compared(ends) != UNTOLD or not distance:
        return None
    reach = slope - ends[0] if slope > HIDDEN else ends[1] - slope
    return ceil(turns * (reach / distance) ** 2)


def worth(share: float, slope: float) -> float:
    """Times as fast in all, were a part twice as fast of whose time so much counts."""
    return speed_up(max(0.0, min(share * slope, 1.0)), FASTER)


def compared(slope: Interval | None) -> str:
    """Return what the interval of a slope says about overlap."""
    if slope is None:
        return "too few turns"
    low, high = slope
    if high < HIDDEN:
        return "hidden" if low <= HIDDEN / 2 else "partly hidden"
    if low > HIDDEN:
        return "as predicted" if low <= 1 / HIDDEN else "worth more than that"
    return UNTOLD
