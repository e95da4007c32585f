"""Soaks: how everything went on over time, and what rises."""

from collections.abc import Iterator
from math import expm1

from hotloop.core.record import Record
from hotloop.core.record.experiments import (
    GPU_BYTES,
    HEAP_BYTES,
    OPEN_FILES,
    PRINTED,
    RSS_BYTES,
    RUNNING,
    SLOWER,
    SLOWER_IN,
    SPEED,
    Soak,
    Trend,
)
from hotloop.report.charts import Curve, Panel
from hotloop.report.facts import origin
from hotloop.report.section import (
    Heading,
    Lines,
    Note,
    Section,
    Sections,
    Span,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import SIZES, count, plain, scaled, sparkline, speed

NAMES = {
    SLOWER: "a step against a new instance's",
    SPEED: "env-steps/s, as they were",
    RSS_BYTES: "resident memory",
    HEAP_BYTES: "native heap",
    GPU_BYTES: "GPU memory",
    OPEN_FILES: "open files",
    RUNNING: "threads",
}

FAR = 1e299  # What has no bound


def soak(record: Record) -> Sections:
    """Return the verdict in a line, a row a curve, and what it rests on."""
    found = record.soak
    assert found is not None
    columns = (*text_columns("what"), *number_columns("a minute", "99.99% interval", "in all"))
    return (
        Heading(words=Span(record.target.words, strong=True)),
        Note(words=headline(record)),
        table((*columns, *text_columns("over time", whole=True)), [row(each) for each in found.trends]),
        *left_behind(found),
        facts(*origin(record), ("method", method(record))),
    )


def left_behind(found: Soak) -> Iterator[Section]:
    """Yield what new instances leave, which the soak made to compare with: no leak of the run, but theirs."""
    told = tuple(
        f"{name_of(each)} {amount(each, each.growth)}: left by {count(found.fresh, 'new instance')}, "
        "made and closed to compare with, and not by steps"
        for each in found.trends
        if each.by_new
    )
    if told:
        yield Lines(lines=tuple(Span(each, "warn") for each in told))


def headline(record: Record) -> Words:
    """Return what rises, or that nothing does."""
    found = record.soak
    assert found is not None
    if not found.enough:
        rest = f": {found.ended}" if found.ended else "; soak it for longer"
        return Span(f"cannot tell: {count(found.looks, 'look')} cannot be judged{rest}", "warn")
    if not found.alarms:
        return Span("nothing grows", "good", strong=True)
    told = "; ".join(f"{name_of(each)} {change(each)}" for each in found.alarms)
    return Span(f"it does not stay as it was: {told}", "bad", strong=True)


def change(each: Trend) -> str:
    return f"{amount(each, each.slope)} a minute {interval(each)}"


def row(each: Trend) -> tuple[Words, ...]:
    name = Span(name_of(each), "bad", strong=True) if each.alarm else name_of(each)
    values = [value for _, value in each.curve]
    line = sparkline(values[:: -(-len(values) // 40)])
    return name, amount(each, each.slope), interval(each), amount(each, each.growth), line


def interval(each: Trend) -> str:
    low, high = ("no bound" if abs(end) > FAR else amount(each, end) for end in (each.low, each.high))
    return f"[{low}, {high}]"


def name_of(each: Trend) -> str:
    if each.name.startswith(SLOWER_IN):
        return f"{each.name.removeprefix(SLOWER_IN)}, the same"
    return NAMES.get(each.name) or each.name.removeprefix(PRINTED)


def unit_of(each: Trend) -> str:
    """Return what its curve is in, where the name does not say it."""
    if each.name.endswith("_bytes"):
        return ", bytes"
    return ", log of the ratio" if each.name == SLOWER or each.name.startswith(SLOWER_IN) else ""


def amount(each: Trend, value: float) -> str:
    """Return a rise in the unit of its curve."""
    sign = "+" if value > 0 else ""
    if each.name == SLOWER or each.name.startswith(SLOWER_IN):
        return f"{expm1(min(value, 100.0)):+.2%}"
    if each.name.endswith("_bytes"):
        return sign + scaled(value, SIZES)
    if each.name == SPEED:
        return f"{'+' if value >= 0 else '-'}{speed(abs(value))}"
    return f"{sign}{plain(value)}"


def method(record: Record) -> str:
    """Return how long, how often, against what."""
    found = record.soak
    assert found is not None
    ended = f"; ended early: {found.ended}" if found.ended else ""
    steps = f", {found.env_steps:,} env-steps" if found.env_steps else ""
    fresh = f", in turns with {count(found.fresh, 'new instance')}" if found.fresh else ""
    return (
        f"{found.seconds:,.0f} s{steps}, {count(found.looks, 'look')}, the first {found.cut} not judged"
        f"{fresh}{ended}"
    )


def panels(record: Record) -> tuple[Panel, ...]:
    """Return every curve in a panel of its own."""
    assert record.soak is not None
    return tuple(
        Panel(
            title=f"{name_of(each)}{unit_of(each)}",
            across="seconds",
            powers=False,
            curves=(Curve(name=change(each), points=each.curve, joined=True),),
        )
        for each in record.soak.trends
        if len(each.curve) > 1
    )
