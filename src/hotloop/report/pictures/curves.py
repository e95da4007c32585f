"""Curves over a size or a time, as SVG or PNG: points and the law through them, axes of powers or plain."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from hotloop.report.pictures.chart import (
    COLOURS,
    GAP,
    GRID,
    LEFT,
    PANEL,
    RIGHT,
    TOP,
    WIDTH,
    Line,
    Mark,
    Text,
    png_of,
    spread,
    svg_of,
)

BOTTOM = 60
DOT = 3.0  # Half the side of a point's mark, in pixels
SMOOTH = 60  # Corners of a fitted line
TICKS = 5  # Parts of a plain axis, about
ROOM = 0.05  # Of a value that never changes, above and below it


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Points of one thing, and the law through them where there is one."""

    name: str
    points: tuple[tuple[float, float], ...]
    law: Callable[[float], float] | None = None
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Curves that share their axes."""

    title: str
    across: str  # What the horizontal axis is
    curves: tuple[Curve, ...]
    powers: bool = True  # Whether both axes are of powers of ten


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """From values to pixels."""

    low: float
    high: float
    begin: float
    end: float
    powers: bool
    step: float = 0.0  # Between two ticks of a plain axis

    def at(self, value: float) -> float:
        place = log10(value) if self.powers else value
        return self.begin + (self.end - self.begin) * (place - self.low) / ((self.high - self.low) or 1.0)

    def ticks(self) -> list[float]:
        if self.powers:
            return [10.0**k for k in range(ceil(self.low - 1e-9), floor(self.high + 1e-9) + 1)]
        return [k * self.step for k in range(round(self.low / self.step), round(self.high / self.step) + 1)]


def axis_of(values: Sequence[float], begin: float, end: float, *, powers: bool, room: float = 0.0) -> Axis:
    """An axis that has room for all of them, from one round number or power to another."""
    if powers:
        low, high = floor(log10(min(values)) + 1e-9), ceil(log10(max(values)) - 1e-9)
        return Axis(low=low, high=max(high, low + 1), begin=begin, end=end, powers=True)
    slack = room * (abs(max(values)) or 1.0) if max(values) == min(values) else 0.0
    least, most = min(values) - slack, max(values) + slack
    step = round_step((most - least) or 1.0)
    ends = {"low": step * floor(least / step), "high": step * ceil(most / step)}
    return Axis(**ends, begin=begin, end=end, powers=False, step=step)


def round_step(length: float) -> float:
    """1, 2 or 5 of a power of ten: of the finest, few enough make the length."""
    power = 10.0 ** floor(log10(length / TICKS))
    return next(k * power for k in (1, 2, 5, 10) if length <= TICKS * k * power * (1 + 1e-9))


def height(panels: Sequence[Panel]) -> int:
    return TOP + len(panels) * PANEL + (len(panels) - 1) * (GAP + 16) + BOTTOM


def svg(title: str, panels: Sequence[Panel]) -> bytes:
    return svg_of(marks(title, panels), height(panels))


def png(title: str, panels: Sequence[Panel]) -> bytes:
    return png_of(marks(title, panels), height(panels))


def marks(title: str, panels: Sequence[Panel]) -> Iterator[Mark]:
    """Everything that is drawn."""
    yield Text(x=LEFT, y=20, words=title, colour="#0f172a")
    for k, panel in enumerate(panels):
        yield from panel_marks(panel, TOP + k * (PANEL + GAP + 16))


def panel_marks(panel: Panel, top: float) -> Iterator[Mark]:
    bottom, right = top + PANEL, WIDTH - RIGHT
    xs = [x for curve in panel.curves for x, _ in curve.points]
    ys = [y for curve in panel.curves for _, y in curve.points]
    across = axis_of(xs, LEFT, right, powers=panel.powers)
    up = axis_of(ys, bottom, top, powers=panel.powers, room=ROOM)
    yield Text(x=LEFT, y=top - 6, words=panel.title)
    yield from ticks(across, up, top, bottom)
    yield Text(x=(LEFT + right) / 2, y=bottom + 32, words=panel.across, anchor="middle")
    ends = spread([up.at(curve.points[-1][1]) for curve in panel.curves], lowest=bottom)
    for k, (curve, y) in enumerate(zip(panel.curves, ends, strict=True)):
        colour = COLOURS[k % len(COLOURS)]
        yield from curve_marks(curve, across, up, colour)
        yield Text(x=right + 8, y=y + 4, words=curve.name, colour=colour)


def ticks(across: Axis, up: Axis, top: float, bottom: float) -> Iterator[Mark]:
    for tick in up.ticks():
        yield Line(points=((across.begin, up.at(tick)), (across.end, up.at(tick))), colour=GRID)
        yield Text(x=across.begin - 8, y=up.at(tick) + 4, words=f"{tick:.4g}", anchor="end")
    for tick in across.ticks():
        yield Line(points=((across.at(tick), top), (across.at(tick), bottom)), colour=GRID)
        yield Text(x=across.at(tick), y=bottom + 16, words=f"{tick:.4g}", anchor="middle")


def curve_marks(curve: Curve, across: Axis, up: Axis, colour: str) -> Iterator[Mark]:
    placed = [(round(across.at(x), 1), round(up.at(y), 1)) for x, y in curve.points]
    if curve.joined and len(placed) > 1:
        yield Line(points=tuple(placed), colour=colour, width=1.4)
        return
    for x, y in placed:
        yield Line(points=((x - DOT, y), (x + DOT, y)), colour=colour, width=2 * DOT)
    if curve.law is not None:
        yield Line(points=tuple(smooth(curve, across, up)), colour=colour, width=1.2)


def smooth(curve: Curve, across: Axis, up: Axis) -> Iterator[tuple[float, float]]:
    """The law from the first size to the last, where it has a place on the axis."""
    assert curve.law is not None
    first, last = curve.points[0][0], curve.points[-1][0]
    for k in range(SMOOTH + 1):
        size = first * (last / first) ** (k / SMOOTH) if up.powers else first + (last - first) * k / SMOOTH
        value = curve.law(size)
        if not up.powers or value > 0:
            yield round(across.at(size), 1), round(min(max(up.at(value), up.end), up.begin), 1)
