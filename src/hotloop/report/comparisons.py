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
        ratio = ratio_words(comparison.ratio)
        table.add_row(comparison.a.name, ratio, outcome_words(comparison), comparison.why)
    return table


def ratio_words(ratio: Ratio | None) -> str:
    """The ratio with its interval, never without."""
    return f"{ratio.estimate:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else "no interval"


def outcome_words(comparison: Comparison) -> Text:
    """The outcome, and beside it what is unlike where that was allowed."""
    unlike = f" (unlike: {'; '.join(comparison.unlike)})" if comparison.unlike else ""
    return Text(comparison.outcome + unlike, STYLES[comparison.outcome])
