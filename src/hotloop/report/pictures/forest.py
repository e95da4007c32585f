"""A forest plot: one ratio a line, with its interval, around the line of no change."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import log

from hotloop.report.units import digits

WIDTH, ROW, TOP, BOTTOM = 1000, 26, 12, 34
LEFT, RIGHT = 460, 190  # For the days and names, and for the numbers

TICKS = (
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.5,
    0.8,
    0.9,
    0.95,
    1.0,
    1.05,
    1.1,
    1.25,
    2.0,
    5.0,
    10.0,
    20.0,
    50.0,
    100.0,
)

CLOSEST = 55  # Pixels between two ticks, at least
LONGEST = 54  # Characters of a name that there is room for
Place = Callable[[float], float]  # From a ratio to pixels


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """One line."""

    name: str
    made: str  # The day
    about: str  # What was measured, and on which machine, for who points at it
    estimate: float
    low: float
    high: float
    outcome: str
    record: int  # What a click on it opens


def draw(effects: Sequence[Effect]) -> str:
    """An SVG whose colours the page decides; above 1 is faster."""
    shown = [each for each in effects if min(each.low, each.estimate, each.high) > 0]
    if not shown:
        return ""
    low = min(0.95, *(each.low for each in shown)) / 1.02
    high = max(1.05, *(each.high for each in shown)) * 1.02
    tall = TOP + ROW * len(shown) + BOTTOM

    def place(ratio: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * log(ratio / low) / log(high / low)

    rows = (row(each, TOP + ROW * index + ROW / 2, place) for index, each in enumerate(shown))
    body = "".join([*axis(low, high, tall, place), *rows])
    return f'<svg class="shape forest" viewBox="0 0 {WIDTH} {tall}" font-size="13">{body}</svg>'


def axis(low: float, high: float, tall: float, place: Place) -> Iterator[str]:
    """Lines at round ratios that are not too close to each other, and the one of no change."""
    bottom, last = tall - BOTTOM, -1000.0
    for tick in TICKS:
        x = place(tick)
        if not low <= tick <= high or (tick != 1 and (x - last < CLOSEST or abs(x - place(1.0)) < CLOSEST)):
            continue
        last = x
        kind = ' class="one"' if tick == 1 else ""
        yield f'<line{kind} x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        yield f'<text class="soft" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g}</text>'
    middle = (LEFT + WIDTH - RIGHT) / 2
    told = "times as fast as A"
    yield f'<text class="soft" x="{middle}" y="{tall - 2}" text-anchor="middle" font-size="12">{told}</text>'


def row(effect: Effect, y: float, place: Place) -> str:
    name = effect.name if len(effect.name) <= LONGEST else effect.name[: LONGEST - 1] + "…"
    numbers = f"{digits(effect.estimate)} [{digits(effect.low)}, {digits(effect.high)}]"
    outcome = effect.outcome.replace(" ", "-")
    return (
        f'<g class="opens" data-record="{effect.record}" tabindex="0"><title>{escape(effect.name)}: '
        f"{escape(effect.outcome)}; {escape(effect.about)}</title>"
        f'<text class="soft" x="0" y="{y + 4:.1f}" font-size="12">{escape(effect.made)}</text>'
        f'<text x="{LEFT - 12}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>'
        f'<line class="whisker" x1="{place(effect.low):.1f}" x2="{place(effect.high):.1f}" '
        f'y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<rect class="{escape(outcome)}" x="{place(effect.estimate) - 5:.1f}" y="{y - 5:.1f}" width="10" '
        f'height="10"/><text class="soft" x="{WIDTH - RIGHT + 12}" y="{y + 4:.1f}">{numbers}</text></g>'
    )
