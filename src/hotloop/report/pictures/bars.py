"""Stacked bars: what parts of a whole each took, one bar a target."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hotloop.report.units import percent

WIDTH, ROW, BAR = 1000, 34, 22
LEFT = 300
LEGEND = 22
SMALLEST = 0.004  # Of the whole; a thinner part is not drawn
CHARACTER = 7.5  # Pixels

# Told apart by colour-blind eyes; parts that never stand in one bar may share one.
COLOURS = (
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6bb1", "#b2df8a",
)  # fmt: skip

REST, REST_COLOUR = "the rest", "#999999"  # What is in no part


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One target."""

    name: str
    shares: Mapping[str, float]  # Part to its share of the whole, in the order they are drawn
    record: int  # What a click on it opens


def draw(bars: Sequence[Bar]) -> str:
    """An SVG with a legend; the same part has the same colour everywhere."""
    if not bars:
        return ""
    colours = colours_of(bars)
    lines = list(legend(colours))
    top = 8 + LEGEND * (1 + max((line for line, _ in lines), default=0))
    tall = top + ROW * len(bars)
    body = "".join(
        [text for _, text in lines] + [row(bar, top + ROW * k, colours) for k, bar in enumerate(bars)]
    )
    return f'<svg class="shape stacks" viewBox="0 0 {WIDTH} {tall}" font-size="13">{body}</svg>'


def colours_of(bars: Sequence[Bar]) -> dict[str, str]:
    """A colour for every part, in the order they come; none twice in one bar while there are enough."""
    chosen = {REST: REST_COLOUR}
    for name in (name for bar in bars for name in bar.shares if name != REST):
        beside = {other for bar in bars if name in bar.shares for other in bar.shares}
        taken = {chosen[other] for other in beside if other in chosen}
        free = [colour for colour in COLOURS if colour not in taken] or COLOURS
        chosen.setdefault(name, free[0])
    shown = dict.fromkeys(name for bar in bars for name in bar.shares)
    return {name: chosen[name] for name in shown}


def legend(colours: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """The line that each name stands in, and its drawing."""
    x, line = 8.0, 0
    for name, colour in colours.items():
        width = 26 + len(name) * CHARACTER
        if x + width > WIDTH:
            x, line = 8.0, line + 1
        y = 4 + line * LEGEND
        yield (
            line,
            (
                f'<rect x="{x:.0f}" y="{y}" width="11" height="11" fill="{colour}"/>'
                f'<text x="{x + 16:.0f}" y="{y + 10}">{escape(name)}</text>'
            ),
        )
        x += width


def row(bar: Bar, y: float, colours: Mapping[str, str]) -> str:
    parts = "".join(pieces(bar, y, colours))
    name = bar.name if len(bar.name) <= 38 else bar.name[:37] + "…"
    return (
        f'<g class="opens" data-record="{bar.record}" tabindex="0">'
        f'<text x="{LEFT - 12}" y="{y + BAR / 2 + 5:.1f}" text-anchor="end">{escape(name)}</text>{parts}</g>'
    )


def pieces(bar: Bar, y: float, colours: Mapping[str, str]) -> Iterator[str]:
    x = float(LEFT)
    for name, share in bar.shares.items():
        width = max(share, 0.0) * (WIDTH - LEFT)
        if share >= SMALLEST:
            told = f"{name} {percent(share)}"
            yield (
                f'<rect x="{x:.1f}" y="{y}" width="{max(width - 1, 0.5):.1f}" height="{BAR}" '
                f'fill="{colours[name]}"><title>{escape(told)}</title></rect>{written(told, x, width, y)}'
            )
        x += width


def written(told: str, x: float, width: float, y: float) -> str:
    """What a part is, on the part itself where there is room."""
    if len(told) * CHARACTER + 12 > width:
        return ""
    return f'<text class="on" x="{x + 6:.1f}" y="{y + BAR / 2 + 5:.1f}">{escape(told)}</text>'
