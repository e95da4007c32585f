"""Plots of characters: points over a size, both axes of powers, for a terminal."""

from collections.abc import Mapping, Sequence
from math import log10

from hotloop.report.section import Drawing, Span, Words

WIDE, HIGH = 56, 12  # Characters of the field
MARKS = "ox+*#@%&"

Series = Mapping[str, Sequence[tuple[float, float]]]  # Name to its points (x, y), all positive


def plot(series: Series, across: str, unit: str) -> Drawing:
    """The points as letters in a field, with what each letter is."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    if not xs:
        return Drawing(lines=())
    field = [[" "] * WIDE for _ in range(HIGH)]
    for (_, points), mark in zip(series.items(), MARKS * len(series), strict=False):
        for x, y in points:
            column, row = place(x, xs, WIDE), HIGH - 1 - place(y, ys, HIGH)
            field[row][column] = mark
    labels = [f"{max(ys):.3g}", *[""] * (HIGH - 2), f"{min(ys):.3g}"]
    wide = max(map(len, labels))
    rows: list[Words] = [f"{label:>{wide}} │{''.join(row)}" for label, row in zip(labels, field, strict=True)]
    ends = f"{min(xs):g}{across:^{WIDE - len(f'{min(xs):g}') - len(f'{max(xs):g}')}}{max(xs):g}"
    legend = "  ".join(f"{mark} {name}" for name, mark in zip(series, MARKS * len(series), strict=False))
    below: list[Words] = [
        f"{'':{wide}} └{'─' * WIDE}",
        f"{'':{wide}}  {ends}",
        Span(f"{unit}: {legend}", "dim"),
    ]
    return Drawing(lines=(*rows, *below))


def place(value: float, values: Sequence[float], cells: int) -> int:
    """The cell of a value between the least and the greatest, by powers."""
    low, high = log10(min(values)), log10(max(values))
    share = (log10(value) - low) / (high - low) if high > low else 0.5
    return min(cells - 1, round(share * (cells - 1)))
