"""Draws a benchmark's values as SVG, readable on light and on dark pages."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 60, 20, 36, 50
"""Margins in pixels: room for labels."""

STYLE = """<style>
text { font: 12px system-ui, sans-serif; fill: #57606a }
.title { font-weight: 600; fill: #1f2328 }
.grid { stroke: #d0d7de }
.line { stroke: #0969da; stroke-width: 2; fill: none }
.range { stroke: #0969da; stroke-width: 1.5; opacity: .6 }
.dot { fill: #0969da }
@media (prefers-color-scheme: dark) {
  text { fill: #9198a1 }
  .title { fill: #f0f6fc }
  .grid { stroke: #3d444d }
  .line, .range { stroke: #4493f8 }
  .dot { fill: #4493f8 }
}
</style>"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place on the chart: a median, and the extremes over the rounds."""

    x: float
    median: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Axes:
    """From values to pixels; x is logarithmic, y begins at zero."""

    first: float
    last: float
    top: float

    def x(self, value: float) -> float:
        along = math.log(value / self.first) / math.log(self.last / self.first)
        return LEFT + 20 + along * (WIDTH - LEFT - RIGHT - 40)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM)


def draw_scaling(facts: Mapping[str, Any]) -> str:
    """Draw the cost of an agent-step against the agents of a world."""
    points = [
        Point(
            x=int(agents),
            median=1e9 / side["agent_steps_per_s"]["median"],
            low=min(side["ns_per_agent_step"]),
            high=max(side["ns_per_agent_step"]),
        )
        for agents, side in facts["sides"].items()
    ]
    title = "Cost of an agent-step in ns, median and range over the rounds"
    where = f"{facts['machine']['cpu']}, commit {facts['code']['commit'][:12]}"
    return draw(points, title=title, x_label=f"agents a world, at one agent in fifty cells ({where})")


def draw(points: Sequence[Point], *, title: str, x_label: str) -> str:
    step = tick(max(point.high for point in points) / 4)
    top = step * math.ceil(max(point.high for point in points) / step)
    axes = Axes(first=points[0].x, last=points[-1].x, top=top)
    ticks = [step * k for k in range(round(top / step) + 1)]
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{title}">',
        STYLE,
        text(LEFT, 20, title, "start", "title"),
        text(WIDTH / 2, HEIGHT - 8, x_label, "middle"),
        *scale(axes, ticks),
        *marks(axes, points),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def tick(rough: float) -> float:
    """Round up to 1, 2 or 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(rough))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)


def scale(axes: Axes, ticks: Sequence[float]) -> Iterator[str]:
    for value in ticks:
        y = axes.y(value)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield text(LEFT - 8, y + 4, f"{value:g}", "end")


def marks(axes: Axes, points: Sequence[Point]) -> Iterator[str]:
    corners = " ".join(f"{axes.x(point.x):.1f},{axes.y(point.median):.1f}" for point in points)
    yield f'<polyline class="line" points="{corners}"/>'
    for point in points:
        x, y = axes.x(point.x), axes.y(point.median)
        ends = f'y1="{axes.y(point.low):.1f}" y2="{axes.y(point.high):.1f}"'
        yield f'<line class="range" x1="{x:.1f}" x2="{x:.1f}" {ends}/>'
        yield f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        yield text(x, HEIGHT - BOTTOM + 18, f"{point.x:g}", "middle")


def text(x: float, y: float, words: str, anchor: str, style: str = "") -> str:
    name = f' class="{style}"' if style else ""
    safe = words.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text{name} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe}</text>'
