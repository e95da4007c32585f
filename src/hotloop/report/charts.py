"""Charts as SVG or PNG, of values over steps or points with their laws; and films of a run."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import MissingError
from hotloop.core.machine import install_line
from hotloop.report.section import plain

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WIDTH, PANEL, GAP = 900, 250, 46
LEFT, RIGHT, TOP, BOTTOM = 70, 160, 44, 44  # Around the panels; names stand at the right of their curves
AXIS_NAME = 16  # Pixels more below each panel that names its own axis
COLOURS = ("#334155", "#0072b2", "#e69f00", "#cc79a7", "#009e73", "#d55e00")  # For color-blind eyes, too
GRID, INK = "#e2e8f0", "#475569"
TICKS = 5  # Parts of a plain axis, about
LINE = 16  # Pixels between two names
CHARACTER = 7  # Pixels of a letter, about, at most
DOT = 3.0  # Half the side of a point's mark, in pixels
SMOOTH = 60  # Corners of a fitted line
ROOM = 0.05  # Of a value that never changes, above and below it
PNG_SCALE = 2  # Pixels of a PNG for one of the SVG, so that it is sharp where it is shown large


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPanel:
    """Curves over the same steps: a value of each after each step."""

    title: str
    curves: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelCurve:
    """Points of one thing, and the law through them if there is one."""

    name: str
    points: tuple[tuple[float, float], ...]
    law: Callable[[float], float] | None = None
    joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Curves that share their axes."""

    title: str
    across: str  # What the horizontal axis is
    curves: tuple[PanelCurve, ...]
    powers: bool = True  # Whether both axes are of powers of ten


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points joined in their order."""

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Words that begin, end or are centered at a point."""

    x: float
    y: float
    words: str
    anchor: str = "start"
    colour: str = INK


Mark = Line | Text
Panels = Sequence["StepPanel | Panel"]


def height(panels: Panels) -> int:
    """Return the height in pixels of a chart with such panels."""
    below = AXIS_NAME if panels and isinstance(panels[0], Panel) else 0
    return TOP + len(panels) * PANEL + (len(panels) - 1) * (GAP + below) + BOTTOM + below


def marks(title: str, panels: Panels) -> Iterator[Mark]:
    """Yield everything that is drawn."""
    yield Text(x=LEFT, y=20, words=title, colour="#0f172a")
    for k, panel in enumerate(panels):
        if isinstance(panel, Panel):
            yield from panel_marks(panel, TOP + k * (PANEL + GAP + AXIS_NAME))
        else:
            yield from step_marks(panel, TOP + k * (PANEL + GAP))
    if panels and isinstance(panels[0], StepPanel):
        yield Text(x=(LEFT + WIDTH - RIGHT) / 2, y=height(panels) - 8, words="step", anchor="middle")


def step_marks(panel: StepPanel, top: float) -> Iterator[Mark]:
    """Yield the axes and curves of one panel over steps."""
    bottom, right = top + PANEL, WIDTH - RIGHT
    rows = round_ticks(max(max(values) for values in panel.curves.values()))
    highest = rows[-1]
    yield Text(x=LEFT, y=top - 6, words=panel.title)
    for tick in rows:
        y = bottom - PANEL * tick / highest
        yield Line(points=((LEFT, y), (right, y)), colour=GRID)
        yield Text(x=LEFT - 8, y=y + 4, words=plain(tick), anchor="end")
    steps = len(next(iter(panel.curves.values())))
    for tick in round_ticks(steps):
        if tick <= steps:
            x = LEFT + (right - LEFT) * tick / steps
            yield Text(x=x, y=bottom + 16, words=plain(tick), anchor="middle")
    ends = [bottom - PANEL * values[-1] / highest for values in panel.curves.values()]
    names = spread(ends, lowest=bottom)
    for (name, values), y, colour in zip(panel.curves.items(), names, COLOURS, strict=False):
        # No more corners than there are pixels.
        every = max(1, len(values) // (right - LEFT))
        points = tuple(
            (
                round(LEFT + (right - LEFT) * (k + 1) / len(values), 1),
                round(top + PANEL * (1 - values[k] / highest), 1),
            )
            for k in (*range(0, len(values) - 1, every), len(values) - 1)
        )
        yield Line(points=points, colour=colour, width=1.6)
        yield Text(x=right + 8, y=y + 4, words=f"{name} {plain(values[-1])}", colour=colour)


def round_ticks(highest: float) -> list[float]:
    """Return round numbers from 0 to the first that is not below the highest value."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / TICKS
    unit = 10 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return [step * k for k in range(ceil(highest / step - 1e-9) + 1)]


def spread(places: Sequence[float], *, lowest: float) -> list[float]:
    """Return the places, moved until names at them do not touch, and none below the lowest."""
    order = sorted(range(len(places)), key=lambda k: places[k])
    moved = list(places)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + LINE)
    for after in reversed(order):
        moved[after] = min(moved[after], lowest)
        lowest = moved[after] - LINE
    return moved


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
    """Return an axis that has room for all values, from one round number or power to another."""
    if powers:
        low, high = floor(log10(min(values)) + 1e-9), ceil(log10(max(values)) - 1e-9)
        return Axis(low=low, high=max(high, low + 1), begin=begin, end=end, powers=True)
    slack = room * (abs(max(values)) or 1.0) if max(values) == min(values) else 0.0
    least, most = min(values) - slack, max(values) + slack
    # 1, 2 or 5 of a power of ten: of the finest, few enough make the length.
    length = (most - least) or 1.0
    power = 10.0 ** floor(log10(length / TICKS))
    step = next(k * power for k in (1, 2, 5, 10) if length <= TICKS * k * power * (1 + 1e-9))
    ends = {"low": step * floor(least / step), "high": step * ceil(most / step)}
    return Axis(**ends, begin=begin, end=end, powers=False, step=step)


def panel_marks(panel: Panel, top: float) -> Iterator[Mark]:
    """Yield the axes, points and laws of one panel."""
    bottom, right = top + PANEL, WIDTH - RIGHT
    across = axis_of([x for each in panel.curves for x, _ in each.points], LEFT, right, powers=panel.powers)
    heights = [y for each in panel.curves for _, y in each.points]
    up = axis_of(heights, bottom, top, powers=panel.powers, room=ROOM)
    yield Text(x=LEFT, y=top - 6, words=panel.title)
    for tick in up.ticks():
        yield Line(points=((across.begin, up.at(tick)), (across.end, up.at(tick))), colour=GRID)
        yield Text(x=across.begin - 8, y=up.at(tick) + 4, words=f"{tick:.4g}", anchor="end")
    for tick in across.ticks():
        yield Line(points=((across.at(tick), top), (across.at(tick), bottom)), colour=GRID)
        yield Text(x=across.at(tick), y=bottom + 16, words=f"{tick:.4g}", anchor="middle")
    yield Text(x=(LEFT + right) / 2, y=bottom + 32, words=panel.across, anchor="middle")
    ends = spread([up.at(curve.points[-1][1]) for curve in panel.curves], lowest=bottom)
    for k, (curve, y) in enumerate(zip(panel.curves, ends, strict=True)):
        colour = COLOURS[k % len(COLOURS)]
        yield from curve_marks(curve, across, up, colour)
        yield Text(x=right + 8, y=y + 4, words=curve.name, colour=colour)


def curve_marks(curve: PanelCurve, across: Axis, up: Axis, colour: str) -> Iterator[Mark]:
    """Yield a joined curve; or a mark for each point, and the law from the first size to the last."""
    placed = [(round(across.at(x), 1), round(up.at(y), 1)) for x, y in curve.points]
    if curve.joined and len(placed) > 1:
        yield Line(points=tuple(placed), colour=colour, width=1.4)
        return
    for x, y in placed:
        yield Line(points=((x - DOT, y), (x + DOT, y)), colour=colour, width=2 * DOT)
    if curve.law is None:
        return
    first, last, corners = curve.points[0][0], curve.points[-1][0], list[tuple[float, float]]()
    for k in range(SMOOTH + 1):
        size = first * (last / first) ** (k / SMOOTH) if up.powers else first + (last - first) * k / SMOOTH
        value = curve.law(size)
        if not up.powers or value > 0:  # an axis of powers has no place for others
            corners.append((round(across.at(size), 1), round(min(max(up.at(value), up.end), up.begin), 1)))
    yield Line(points=tuple(corners), colour=colour, width=1.2)


def breadth(drawn: Sequence[Mark]) -> int:
    """Return the usual width, or what the longest words need."""
    texts = (mark for mark in drawn if isinstance(mark, Text) and mark.anchor == "start")
    return max(WIDTH, ceil(max((text.x + CHARACTER * len(text.words) for text in texts), default=0)))


def svg(title: str, panels: Panels) -> bytes:
    """Return the chart as text that every browser draws."""
    drawn, tall = list(marks(title, panels)), height(panels)
    wide, body = breadth(drawn), list[str]()
    for mark in drawn:
        if isinstance(mark, Text):
            place = f'x="{mark.x:.1f}" y="{mark.y:.1f}" text-anchor="{mark.anchor}" fill="{mark.colour}"'
            body.append(f"<text {place}>{escape(mark.words)}</text>")
        else:
            joined = " ".join(f"{x},{y}" for x, y in mark.points)
            stroke = f'stroke="{mark.colour}" stroke-width="{mark.width}"'
            body.append(f'<polyline points="{joined}" fill="none" {stroke}/>')
    size = f'viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return "\n".join((head, ground, *body, "</svg>\n")).encode()


def png(title: str, panels: Panels) -> bytes:
    """Return the same chart as pixels; the font that comes with Pillow has no small two."""
    image_module = pillow()
    from PIL import ImageDraw, ImageFont

    drawn, tall = list(marks(title, panels)), height(panels)
    image = image_module.new("RGB", (breadth(drawn) * PNG_SCALE, tall * PNG_SCALE), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(12 * PNG_SCALE)
    anchors = {"start": "ls", "middle": "ms", "end": "rs"}
    for mark in drawn:
        if isinstance(mark, Text):
            at, words = (mark.x * PNG_SCALE, mark.y * PNG_SCALE), mark.words.replace("²", "^2")
            draw.text(at, words, fill=mark.colour, font=font, anchor=anchors[mark.anchor])
        else:
            corners = [(x * PNG_SCALE, y * PNG_SCALE) for x, y in mark.points]
            draw.line(corners, fill=mark.colour, width=round(mark.width * PNG_SCALE), joint="curve")
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()


MOMENTS = 3  # Of a strip: the beginning, the end, and what lies between at even distances
STRIP_GAP = 8  # Pixels between two moments


def pillow() -> Any:
    """Return the library that writes pictures."""
    try:
        from PIL import Image
    except ImportError:
        raise MissingError(f"pictures need Pillow: {install_line('PIL')}") from None
    return Image


class Film:
    """Frames in the order they were taken."""

    def __init__(self) -> None:
        self._pillow = pillow()
        self._frames: list[Any] = []

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, image: "NDArray[np.uint8]") -> None:
        """Keep a copy of [height, width, 3], a byte a pixel."""
        adaptive = self._pillow.Palette.ADAPTIVE
        self._frames.append(self._pillow.fromarray(image).convert("P", palette=adaptive))

    def gif(self, fps: float) -> bytes:
        """Return all frames, over and over."""
        first, *others = self._frames
        file = io.BytesIO()
        first.save(
            file,
            "GIF",
            save_all=True,
            append_images=others,
            duration=round(1_000 / fps),
            loop=0,
            optimize=True,
        )
        return file.getvalue()

    def strip(self) -> bytes:
        """Return a few moments from left to right, as PNG."""
        count = min(MOMENTS, len(self._frames))
        chosen = [self._frames[k * (len(self._frames) - 1) // max(count - 1, 1)] for k in range(count)]
        width, height = chosen[0].size
        strip = self._pillow.new("RGB", (count * (width + STRIP_GAP) - STRIP_GAP, height), "white")
        for k, frame in enumerate(chosen):
            strip.paste(frame.convert("RGB"), (k * (width + STRIP_GAP), 0))
        file = io.BytesIO()
        strip.save(file, "PNG", optimize=True)
        return file.getvalue()
