"""Heat maps: a number for every pair of two settings, the darker the more."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from hotloop.report.units import speed

LEFT, TOP, BOTTOM = 130, 34, 30
CELL_WIDTH, CELL_HEIGHT = 92, 34
CHARACTER = 7.5  # Pixels of a letter, about

# From the least to the most: one hue, so that only how dark it is has to be seen.
LIGHT, DARK = (222, 235, 247), (8, 48, 107)

TURN = 0.45  # Of the way from light to dark, from which on letters are white


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """Values by the values of two settings; a pair that has none is left blank."""

    down: str
    rows: tuple[str, ...]
    across: str
    columns: tuple[str, ...]
    values: Mapping[tuple[str, str], float]
    best: tuple[str, str] | None = None  # The pair that is framed


def draw(drawn: Map) -> str:
    """An SVG whose letters outside the cells have the page's colour."""
    left = max(LEFT, *(24 + len(name) * CHARACTER for name in (drawn.down, *drawn.rows)))
    wide, tall = left + CELL_WIDTH * len(drawn.columns) + 8, TOP + CELL_HEIGHT * len(drawn.rows) + BOTTOM
    middle = TOP + CELL_HEIGHT / 2 + 5
    names = (
        *(text(left - 10, middle + CELL_HEIGHT * k, name, "end") for k, name in enumerate(drawn.rows)),
        *(text(left + CELL_WIDTH * (k + 0.5), TOP - 10, name) for k, name in enumerate(drawn.columns)),
        text(left - 10, TOP - 10, drawn.down, "end"),
        text(left + CELL_WIDTH * len(drawn.columns) / 2, tall - 10, drawn.across),
    )
    cells = (
        cell(drawn, (row, column), left + CELL_WIDTH * x, TOP + CELL_HEIGHT * y)
        for y, row in enumerate(drawn.rows)
        for x, column in enumerate(drawn.columns)
    )
    size = f'viewBox="0 0 {wide:.0f} {tall}" width="{wide:.0f}" height="{tall}"'
    return f'<svg class="shape heat" {size} font-size="13">{"".join((*names, *cells))}</svg>'


def text(x: float, y: float, words: str, anchor: str = "middle", colour: str = "") -> str:
    fill = f' style="fill:{colour}"' if colour else ""
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{fill}>{escape(words)}</text>'


def cell(drawn: Map, at: tuple[str, str], x: float, y: float) -> str:
    value = drawn.values.get(at)
    if value is None:
        return ""
    warmth = share(value, list(drawn.values.values()))
    frame = ' stroke="#d55e00" stroke-width="3"' if at == drawn.best else ""
    box = f'x="{x + 2:.0f}" y="{y + 2:.0f}" width="{CELL_WIDTH - 4}" height="{CELL_HEIGHT - 4}" rx="3"'
    letters = "#ffffff" if warmth > TURN else "#1f2328"
    words = text(x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2 + 5, speed(value), colour=letters)
    title = f"<title>{escape(f'{drawn.down}={at[0]} {drawn.across}={at[1]}: {value:,.0f}')}</title>"
    return f'<g>{title}<rect {box} fill="{colour_of(warmth)}"{frame}/>{words}</g>'


def share(value: float, values: Sequence[float]) -> float:
    """Where a value lies between the least and the most."""
    low, high = min(values), max(values)
    return (value - low) / (high - low) if high > low else 1.0


def colour_of(warmth: float) -> str:
    mixed = (round(a + (b - a) * warmth) for a, b in zip(LIGHT, DARK, strict=True))
    return f"#{''.join(f'{part:02x}' for part in mixed)}"
