"""Charts: what went up and down over steps, one panel below another, as SVG or PNG."""

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10

from hotloop.report.pictures.film import pillow
from hotloop.report.units import plain

WIDTH, PANEL, GAP = 900, 250, 46
LEFT, RIGHT, TOP, BOTTOM = 70, 160, 44, 44  # Around the panels; names stand at the right of their curves
# Told apart by colour-blind eyes.
COLOURS = ("#334155", "#0072b2", "#e69f00", "#cc79a7", "#009e73", "#d55e00")
GRID, INK = "#e2e8f0", "#475569"
TICKS = 5
LINE = 16  # Pixels between two names
CHARACTER = 7  # Pixels of a letter, about, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Curves over the same steps: a value of each after each step."""

    title: str
    curves: Mapping[str, Sequence[float]]

    @property
    def top(self) -> float:
        """What its axis goes up to."""
        ticks = scale(max(max(values) for values in self.curves.values()))
        return ticks[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points joined in their order."""

    points: tuple[tuple[float, float], ...]
    colour: str
    width: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Words that begin, end or are centred at a point."""

    x: float
    y: float
    words: str
    anchor: str = "start"
    colour: str = INK


Mark = Line | Text


def scale(highest: float) -> list[float]:
    """Round numbers from 0 to the first that is not below the highest value."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / TICKS
    unit = 10 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return [step * k for k in range(ceil(highest / step - 1e-9) + 1)]


def height(panels: Sequence[Panel]) -> int:
    return TOP + len(panels) * PANEL + (len(panels) - 1) * GAP + BOTTOM


def marks(title: str, panels: Sequence[Panel]) -> Iterator[Mark]:
    """Everything that is drawn."""
    yield Text(x=LEFT, y=20, words=title, colour="#0f172a")
    for k, panel in enumerate(panels):
        yield from panel_marks(panel, TOP + k * (PANEL + GAP))
    yield Text(x=(LEFT + WIDTH - RIGHT) / 2, y=height(panels) - 8, words="step", anchor="middle")


def panel_marks(panel: Panel, top: float) -> Iterator[Mark]:
    bottom, right = top + PANEL, WIDTH - RIGHT
    yield Text(x=LEFT, y=top - 6, words=panel.title)
    for tick in scale(panel.top):
        y = bottom - PANEL * tick / panel.top
        yield Line(points=((LEFT, y), (right, y)), colour=GRID)
        yield Text(x=LEFT - 8, y=y + 4, words=plain(tick), anchor="end")
    steps = len(next(iter(panel.curves.values())))
    for tick in scale(steps):
        if tick <= steps:
            x = LEFT + (right - LEFT) * tick / steps
            yield Text(x=x, y=bottom + 16, words=plain(tick), anchor="middle")
    ends = [bottom - PANEL * values[-1] / panel.top for values in panel.curves.values()]
    names = spread(ends, lowest=bottom)
    for (name, values), y, colour in zip(panel.curves.items(), names, COLOURS, strict=False):
        yield Line(points=tuple(points(values, top, panel.top)), colour=colour, width=1.6)
        yield Text(x=right + 8, y=y + 4, words=f"{name} {plain(values[-1])}", colour=colour)


def points(values: Sequence[float], top: float, highest: float) -> Iterator[tuple[float, float]]:
    """The corners of a curve; no more than there are pixels."""
    across = WIDTH - RIGHT - LEFT
    every = max(1, len(values) // across)
    for k in (*range(0, len(values) - 1, every), len(values) - 1):
        x = LEFT + across * (k + 1) / len(values)
        yield round(x, 1), round(top + PANEL * (1 - values[k] / highest), 1)


def spread(places: Sequence[float], *, lowest: float) -> list[float]:
    """The same places, moved apart until names at them do not touch, and none below the lowest."""
    order = sorted(range(len(places)), key=lambda k: places[k])
    moved = list(places)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + LINE)
    for after in reversed(order):
        moved[after] = min(moved[after], lowest)
        lowest = moved[after] - LINE
    return moved


def svg(title: str, panels: Sequence[Panel]) -> bytes:
    """The chart as text that every browser draws."""
    return svg_of(marks(title, panels), height(panels))


def breadth(drawn: Sequence[Mark]) -> int:
    """The usual width, or what the longest words need."""
    ends = (
        mark.x + CHARACTER * len(mark.words)
        for mark in drawn
        if isinstance(mark, Text) and mark.anchor == "start"
    )
    return max(WIDTH, ceil(max(ends, default=0)))


def svg_of(drawn: Iterable[Mark], tall: int) -> bytes:
    """Marks as a drawing that has room for all of them."""
    drawn = list(drawn)
    wide = breadth(drawn)
    body = "\n".join(svg_mark(mark) for mark in drawn)
    size = f'viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    ground = '<rect width="100%" height="100%" fill="white"/>'
    return f"{head}\n{ground}\n{body}\n</svg>\n".encode()


def svg_mark(mark: Mark) -> str:
    if isinstance(mark, Text):
        place = f'x="{mark.x:.1f}" y="{mark.y:.1f}" text-anchor="{mark.anchor}" fill="{mark.colour}"'
        return f"<text {place}>{escape(mark.words)}</text>"
    joined = " ".join(f"{x},{y}" for x, y in mark.points)
    return f'<polyline points="{joined}" fill="none" stroke="{mark.colour}" stroke-width="{mark.width}"/>'


PNG_SCALE = 2  # Pixels of a PNG for one of the SVG, so that it is sharp where it is shown large


def png(title: str, panels: Sequence[Panel]) -> bytes:
    """The same chart as pixels."""
    return png_of(marks(title, panels), height(panels))


def png_of(drawn: Iterable[Mark], tall: int) -> bytes:
    """Marks as pixels; the font that comes with Pillow has no small two."""
    image_module = pillow()
    from PIL import ImageDraw, ImageFont

    drawn = list(drawn)
    image = image_module.new("RGB", (breadth(drawn) * PNG_SCALE, tall * PNG_SCALE), "white")
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(12 * PNG_SCALE)
    anchors = {"start": "ls", "middle": "ms", "end": "rs"}
    for mark in drawn:
        if isinstance(mark, Text):
            at = (mark.x * PNG_SCALE, mark.y * PNG_SCALE)
            draw.text(
                at, mark.words.replace("²", "^2"), fill=mark.colour, font=font, anchor=anchors[mark.anchor]
            )
        else:
            corners = [(x * PNG_SCALE, y * PNG_SCALE) for x, y in mark.points]
            draw.line(corners, fill=mark.colour, width=round(mark.width * PNG_SCALE), joint="curve")
    file = io.BytesIO()
    image.save(file, "PNG", optimize=True)
    return file.getvalue()
