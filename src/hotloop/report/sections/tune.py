"""Searches for settings: every combination, a map of two axes, the winner, and what to paste."""

from collections.abc import Callable, Iterator, Mapping
from statistics import fmean

from hotloop.core.record import Learnt, Record, Tried, Tuning
from hotloop.core.record.tuning import Learning
from hotloop.report.pictures.curves import Curve, Panel
from hotloop.report.pictures.heat import Map, draw
from hotloop.report.sections.compare import comparisons
from hotloop.report.sections.facts import origin
from hotloop.report.sections.section import (
    Heading,
    Lines,
    Note,
    Picture,
    Section,
    Sections,
    Span,
    Tone,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import SIZES, scaled, speed, speed_interval, took

SHADES = " ░▒▓█"

APART = 2
"""Axes that have columns of their own."""

TONES: Mapping[Learning, Tone] = {"worse": "bad", "cannot tell": "warn"}

JOIN = " / "
"""Between the values of axes that share one."""


def tune(record: Record) -> Sections:
    """The table, the map, the confirmation, what is learnt, and the line."""
    found = record.tuning
    assert found is not None
    return (
        Heading(words=Span(record.target.words, strong=True)),
        *combinations(found),
        *heat(found),
        *comparisons(record.comparisons),
        facts(*result(record, found), *origin(record)),
        *left_out(found),
    )


def combinations(found: Tuning) -> Iterator[Section]:
    """One row a combination, the fastest first; more axes than fit beside the figures share a column."""
    apart = len(found.axes) <= APART
    if not apart:
        yield Note(words=f"settings: {JOIN.join(found.axes)}")
    columns = (
        *text_columns(*(found.axes if apart else ("settings",)), whole=True),
        *number_columns("env-steps/s", "95% interval", "memory", "latency", "rungs"),
        *text_columns(""),
    )
    ordered = sorted(found.tried, key=lambda each: (-each.rungs, -each.median))
    yield table(columns, [row(each, found) for each in ordered])


def row(each: Tried, found: Tuning) -> tuple[Words, ...]:
    won, values = each.at == found.winner, [each.at[axis] for axis in found.axes]
    around = (each.low, each.high) if each.low is not None and each.high is not None else None
    marks = [*(["winner"] if won else []), *(["Pareto"] if each.best else [])]
    return (
        *(values if len(values) <= APART else (JOIN.join(values),)),
        Span(speed(each.median), strong=won),
        speed_interval(around),
        scaled(each.rss_bytes, SIZES),
        took(each.latency_ns),
        str(each.rungs),
        ", ".join(marks),
    )


def heat(found: Tuning) -> Iterator[Section]:
    """The best speed of every pair of values of the first two axes, the darker the faster."""
    if len(found.axes) < 2:
        return
    (down, rows), (across, columns), *_ = found.axes.items()
    pairs = {(row, column): fastest(found, {down: row, across: column}) for row in rows for column in columns}
    values = {pair: value for pair, value in pairs.items() if value is not None}
    if not values:
        return
    drawn = Map(
        down=down,
        rows=tuple(rows),
        across=across,
        columns=tuple(columns),
        values=values,
        best=(found.winner[down], found.winner[across]),
    )
    yield Heading(words=f"env-steps/s, {down} down, {across} across; the darker, the faster", apart=True)
    yield Picture(svg=draw(drawn), instead=(shaded(drawn),))


def fastest(found: Tuning, at: dict[str, str]) -> float | None:
    here = (each.median for each in found.tried if all(each.at[axis] == at[axis] for axis in at))
    return max(here, default=None)


def shaded(drawn: Map) -> Section:
    """The map in letters."""
    best = max(drawn.values.values())
    rows = [
        (row, *(shade(drawn.values.get((row, column)), best) for column in drawn.columns))
        for row in drawn.rows
    ]
    return table((*text_columns(drawn.down, whole=True), *number_columns(*drawn.columns)), rows)


def shade(value: float | None, best: float) -> str:
    if value is None:
        return ""
    return f"{speed(value)} {SHADES[round(value / best * (len(SHADES) - 1))] * 2}"


def result(record: Record, found: Tuning) -> Iterator[tuple[str, Words]]:
    """What to use, what it may be relied on for, and whether it still learns."""
    yield "winner", f"{words(found.winner)}, by the lower end of its interval"
    if found.kept:
        why = "the winner learns less" if found.learnt else "in turns the winner was slower"
        yield "result", Span(f"the present settings stay: {why}", "warn")
    elif not record.comparisons and not record.partial:
        yield "result", "the winner is the present settings: there is nothing to confirm"
    elif any(each.outcome == "cannot tell" for each in record.comparisons):
        yield "result", Span("not confirmed: whether the winner is faster could not be told in turns", "warn")
    yield "paste", Span(found.words, strong=True, code=True)
    if found.floor is not None:
        keeps = "" if found.is_training else ": --write-floor NAME keeps it as a budget"
        yield "floor", f"{speed(found.floor)} env-steps/s here{keeps}"
    if found.learnt is not None:
        yield "learning", learning(found.learnt)


def learning(learnt: Learnt) -> Span:
    change = f"{learnt.difference:+.3g} [{learnt.low:+.3g}, {learnt.high:+.3g}]"
    words = (
        f"{change} to the present settings' {fmean(learnt.present):.3g} of return after "
        f"{learnt.env_steps:,} env-steps, {len(learnt.present)} seeds"
    )
    tone = TONES.get(learnt.outcome, "plain")
    return Span(f"{learnt.outcome}: {words}; {allowed(learnt)}", tone, strong=tone == "bad")


def allowed(learnt: Learnt) -> str:
    """What may be lost, and of what."""
    if learnt.learned <= 0:
        return "in so few the present settings learn nothing that could be lost: give more --learn-steps"
    gained = f" ({learnt.learned:.3g} beyond an untrained policy)" if learnt.untrained else ""
    return f"a loss up to {learnt.margin:.3g}, {learnt.band:.0%} of what they learn{gained}, is none"


def left_out(found: Tuning) -> Iterator[Section]:
    if found.skipped:
        told = (f"skipped {words(each.at)}: {each.why}" for each in found.skipped)
        yield Lines(lines=tuple(Span(each, "dim") for each in told))


def words(at: dict[str, str]) -> str:
    return " ".join(f"{axis}={value}" for axis, value in at.items())


def panels(record: Record) -> tuple[Panel, ...]:
    """Speed against memory and against latency; those that nobody beats have a colour of their own."""
    found = record.tuning
    assert found is not None
    memory = panel(found, "bytes", lambda each: each.rss_bytes)
    latency = panel(found, "ns of a call or an update", lambda each: each.latency_ns)
    return tuple(each for each in (memory, latency) if each.curves)


def panel(found: Tuning, across: str, cost: Callable[[Tried], float]) -> Panel:
    curves = []
    for best, name in ((True, "nobody beats"), (False, "the others")):
        chosen = [each for each in found.tried if each.best is best and cost(each) > 0]
        points = sorted((cost(each), each.median) for each in chosen)
        if points:
            curves.append(Curve(name=name, points=tuple(points)))
    return Panel(title=f"env-steps/s against {across}", across=across, curves=tuple(curves))
