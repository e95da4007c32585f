"""Expectations: what this machine has reached before, in records, and what its memory allows."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from hotloop.core.record import Record
from hotloop.judge.case import Case

HALF = 0.5
"""Of the best, below which a configuration is likely to be at fault."""

WHATEVER = ("seed", "total_timesteps", "train.seed", "train.total_timesteps", "autoreset")
"""Parameters that do not change how fast a step is."""

QUIET = ("profile", "render_mode")
"""Variants that say how it was looked at."""

AGENT_STEPS = "agent_steps_per_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What the records of one configuration came to."""

    configuration: str
    """`env only`, `PPO`, `supervised`, `own loop` or `program`."""
    device: str
    """CPU or GPU."""
    records: int
    unit: str
    best: float
    best_run: str
    typical: float
    """The median of their medians."""
    this: float | None
    """Of the record that is diagnosed, where it is one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What copying alone would take."""

    bytes_per_env_step: float
    bytes_per_s: float
    """Of a copy, measured on this machine."""
    phase: str
    phase_ns: float
    """What the phase that writes them takes for an env-step."""

    @property
    def least_ns(self) -> float:
        return self.bytes_per_env_step * 1e9 / self.bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectations:
    """What could be expected of a run."""

    refused: str | None = None
    """Why nothing is expected: the record is of another machine."""
    table: tuple[Reached, ...] = ()
    expected: float | None = None
    """The best of the same work on this machine."""
    reached: float | None = None
    best_run: str | None = None
    differing: tuple[str, ...] = ()
    """Settings that are not as in the best run."""
    memory: Memory | None = None

    @property
    def is_short(self) -> bool:
        """Whether less than half of what is expected was reached."""
        return bool(self.expected and self.reached and self.reached < HALF * self.expected)


def expect(
    record: Record, others: Sequence[Record], fingerprint: str, copy_bytes_per_s: float | None = None
) -> Expectations:
    """Hold a record against all of this machine; `fingerprint` is this machine's."""
    if record.machine["fingerprint"] != fingerprint:
        return Expectations(refused=f"the record is from another machine, {record.machine['fingerprint']}")
    mine = [each for each in others if usable(each, record)]
    mine = [each for each in mine if each.run_id != record.run_id] + [record]
    same = [each for each in mine if same_work(each, record) and speed(each)]
    best = max(same, key=lambda each: speed(each) or 0.0, default=None)
    return Expectations(
        table=tuple(reached(mine, record)),
        expected=speed(best) if best else None,
        reached=speed(record),
        best_run=best.run_id if best else None,
        differing=tuple(unlike_settings(record, best)) if best and best is not record else (),
        memory=memory(record, copy_bytes_per_s),
    )


def usable(other: Record, record: Record) -> bool:
    """Whether a record is of this target and machine, was run to its end, and has a speed."""
    return (
        other.machine["fingerprint"] == record.machine["fingerprint"]
        and other.target.name == record.target.name
        and not other.partial
        and other.kind in ("bench", "profile", "train", "run")
    )


def unit(record: Record) -> str:
    return AGENT_STEPS if AGENT_STEPS in record.metrics else record.method.headline


def speed(record: Record) -> float | None:
    metric = record.metrics.get(unit(record))
    return metric.median if metric and metric.median > 0 else None


def configuration(record: Record) -> tuple[str, str]:
    """What was run, and on what."""
    case = Case(record)
    device = "GPU" if case.on_gpu else "CPU"
    if record.kind == "train":
        supervised = int(case.setting("supervised_steps") or 0)
        return ("supervised" if supervised >= record.work.env_steps else "PPO"), device
    if record.kind == "run":
        return "own loop", device
    return ("program" if record.work.runs else "env only"), device


def reached(records: Iterable[Record], record: Record) -> Iterable[Reached]:
    """A row a configuration, in the order of their names."""
    groups: dict[tuple[str, str, str], list[tuple[float, Record]]] = {}
    for each in records:
        found = speed(each)
        if found is not None:
            groups.setdefault((*configuration(each), unit(each)), []).append((found, each))
    for (name, device, counted), members in sorted(groups.items()):
        best, holder = max(members, key=lambda member: member[0])
        here = [found for found, each in members if each.run_id == record.run_id]
        yield Reached(
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
    """Whether two runs do the same: all that changes results but the seed and the length."""
    mine, theirs = (
        {key: value for key, value in each.target.params.items() if key not in WHATEVER}
        for each in (record, other)
    )
    return mine == theirs and configuration(other) == configuration(record) and unit(other) == unit(record)


def unlike_settings(record: Record, best: Record) -> Iterable[str]:
    """Variants, threads and machine's load that differ from the best run."""
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
    """What writing the observations takes at least; None where the bytes or the rate are not known."""
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
