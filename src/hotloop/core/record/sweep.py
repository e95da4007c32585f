"""What a sweep over sizes found: values at every point, the laws they follow, and where that changes."""

from dataclasses import dataclass
from typing import Literal

from hotloop.core.record.plain import Amount, Count

Law = Literal["constant", "log", "linear", "n log n", "quadratic", "power", "unknown"]
"""By which a cost grows with a size; a power has an exponent of its own, unknown says that none is known."""

STEP_NS = "ns_per_env_step"
"""The cost of an env-step: of a point its median in each repeat."""

RUN_NS = "ns_per_run"
"""Of a whole run of so many steps from its reset on, where steps are the axis."""

RSS = "rss_bytes"
"""What making it and playing it added to the memory of the process."""

PHASE = "phase."
"""Before the name of a phase: its ns of an env-step."""

TIMED_NS = "timed_ns_per_env_step"
"""The cost of an env-step in the passes that time functions of the user's code: their shares are of it."""

ELSE = "everything else"
"""The phase of all that no named function takes of a step."""

CPU_NS = "cpu_ns_per_env_step"

AGENT_SPEED = "agent_steps_per_s"

THREADS = "threads"
"""The axis whose efficiency is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place on the axes."""

    at: dict[str, str]
    """Axis to value, as typed."""
    values: dict[str, tuple[float, ...]]
    """Metric to one value a repeat."""
    env_steps: Count
    """That were measured in every repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The law by which something grows along an axis."""

    axis: str
    at: dict[str, str]
    """The other axes' values."""
    metric: str
    law: Law
    exponent: float
    low: float
    high: float
    """The exponent's 95% interval."""
    constant: float
    factor: float
    also: tuple[Law, ...] = ()
    """Laws that the same values allow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """Where one phase overtakes another."""

    axis: str
    at: dict[str, str]
    riser: str
    """The phase that costs more from there on."""
    fallen: str
    size: Amount
    low: Amount
    high: Amount
    """The two sizes that were measured, between which it is."""


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
    work: Amount
    """CPU time of an env-step over that with one thread: what shared memory and waiting awake cost."""
    idle: Amount
    """Share of the threads' time in which they had nothing to do."""
    serial: float
    """The part that would have to be serial for this speed-up (Karp and Flatt)."""
    bound: str
    """What keeps it from being faster, in words."""


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
    points: tuple[Point, ...]
    growths: tuple[Growth, ...] = ()
    crossings: tuple[Crossing, ...] = ()
    knees: tuple[Knee, ...] = ()
    efficiencies: tuple[Efficiency, ...] = ()
    refused: tuple[Refused, ...] = ()
