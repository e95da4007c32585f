"""Comparisons drawn for a terminal."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from hotloop.core.record import Comparison, Outcome, Ratio
from hotloop.report.terminal import plain_table

STYLES: dict[Outcome, str] = {
    "faster": "bold green",
    "slower": "bold red",
    "cannot tell": "yellow",
    "same": "",
}


def draw_comparisons(comparisons: Sequence[Comparison]) -> RenderableType:
    """One row a baseline: how many times as fast this is, what that comes to, and why."""
    table = plain_table("baseline")
    table.add_column("times as fast", justify="right", no_wrap=True)
    table.add_column("outcome", no_wrap=True)
    table.add_column("why")
    for comparison in comparisons:
        cells = (ratio_words(comparison.ratio), outcome_words(comparison), reason(comparison))
        table.add_row(comparison.a.name, *cells)
    return table


def ratio_words(ratio: Ratio | None) -> str:
    """The ratio with its interval, never without."""
    if ratio is None:
        return "no interval"
    return f"{digits(ratio.estimate)} [{digits(ratio.low)}, {digits(ratio.high)}]"


def digits(times: float) -> str:
    """Three places around one; three digits of what is far from it."""
    return f"{times:.3f}" if 0.1 <= times < 100 else f"{times:.3g}"


def outcome_words(comparison: Comparison) -> Text:
    """The outcome, and with it that the sides are unlike where that was allowed."""
    return Text(comparison.outcome + (", unlike" if comparison.unlike else ""), STYLES[comparison.outcome])


def reason(comparison: Comparison) -> str:
    """Why, and what is unlike."""
    return "; ".join([comparison.why, *(f"unlike {what}" for what in comparison.unlike)])
