"""Searches for settings: every combination, a map of two axes, the winner, and what to paste."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import fmean

from hotloop.core.record import ENV_STEPS_PER_S, RUNS_PER_S, Record
from hotloop.core.record.experiments import ELSE, Learning, LearningCheck, Tried, Tuning
from hotloop.report.charts import Curve, Panel
from hotloop.report.facts import origin
from hotloop.report.kinds.compare import comparisons, ratio_words
from hotloop.report.section import (
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
from hotloop.report.shapes import HeatMap, draw_heat
from hotloop.report.units import SIZES, count, scaled, speed, speed_interval, took

SHADES = " ░▒▓█"

MOST_PARTS = 2  # Named functions that have a column
APART = 2  # Axes that have columns of their own
TONES: Mapping[Learning, Tone] = {"worse": "bad", "cannot tell": "warn"}

JOIN = " / "  # Between the values of axes that share one


def tune(record: Record) -> Sections:
    """Return the table, the map, the confirmation, what is learnt, and the line."""
    found = record.tuning
    assert found is not None
    skipped = tuple(Span(f"skipped {words(each.at)}: {each.why}", "dim") for each in found.skipped)
    return (
        Heading(words=Span(record.target.words, strong=True)),
        *gain(record, found),
        *combinations(found, unit_of(record)),
        *heat(found, unit_of(record)),
        *comparisons(record.comparisons),
        facts(*result(record, found), *origin(record)),
        *((Lines(lines=skipped),) if skipped else ()),
    )


def unit_of(record: Record) -> str:
    """What the combinations are judged by: env-steps, or what a program prints or how often it runs."""
    judged = record.method.headline
    return {ENV_STEPS_PER_S: "env-steps/s", RUNS_PER_S: "runs/s"}.get(judged, judged)


def gain(record: Record, found: Tuning) -> Iterator[Section]:
    """Yield the answer in a sentence: the winner, and how many times as fast it was in turns."""
    if record.comparisons:
        [compared] = record.comparisons
        faster = f", {ratio_words(compared.ratio)} times as fast as the present settings"
        if compared.ratio is None:
            faster = " if it is faster than the present settings"
        tone: Tone = "good" if compared.outcome == "faster" and not found.kept else "warn"
        yield Note(words=(Span(words(found.winner), strong=True), ": ", Span(compared.outcome, tone), faster))


def combinations(found: Tuning, unit: str) -> Iterator[Section]:
    """One row a combination, the fastest first; more axes than fit beside the figures share a column."""
    apart = len(found.axes) <= APART
    if not apart:
        yield Note(words=f"settings: {JOIN.join(found.axes)}")
    # The functions that the user named, the first few, have columns.
    parts = [*dict.fromkeys(name for each in found.tried for name in each.parts if name != ELSE)][:MOST_PARTS]
    columns = (
        *text_columns(*(found.axes if apart else ("settings",)), whole=True),
        *number_columns(unit, "95% interval", "memory", "latency", *parts, "rungs"),
        *text_columns(""),
    )
    ordered = sorted(found.tried, key=lambda each: (-each.rungs, -each.median))
    yield table(columns, [row(each, found, parts) for each in ordered])


def row(each: Tried, found: Tuning, parts: Sequence[str]) -> tuple[Words, ...]:
    won, values = each.at == found.winner, [each.at[axis] for axis in found.axes]
    around = (each.low, each.high) if each.low is not None and each.high is not None else None
    marks = [*(["winner"] if won else []), *(["Pareto"] if each.best else [])]
    return (
        *(values if len(values) <= APART else (JOIN.join(values),)),
        Span(speed(each.median), strong=won),
        speed_interval(around),
        scaled(each.rss_bytes, SIZES),
        took(each.latency_ns),
        *(took(each.parts[name]) if name in each.parts else "" for name in parts),
        str(each.rungs),
        ", ".join(marks),
    )


def heat(found: Tuning, unit: str) -> Iterator[Section]:
    """Yield the best speed of every pair of values of the first two axes, the darker the faster."""
    if len(found.axes) < 2:
        return
    (down, rows), (across, columns), *_ = found.axes.items()
    values: dict[tuple[str, str], float] = {}
    for each in found.tried:
        pair = each.at[down], each.at[across]
        values[pair] = max(each.median, values.get(pair, each.median))
    if not values:
        return
    drawn = HeatMap(
        down=down,
        rows=tuple(rows),
        across=across,
        columns=tuple(columns),
        values=values,
        best=(found.winner[down], found.winner[across]),
    )
    yield Heading(words=f"{unit}, {down} down, {across} across; the darker, the faster", apart=True)
    yield Picture(svg=draw_heat(drawn), instead=(shaded(drawn),))


def shaded(drawn: HeatMap) -> Section:
    """Return the map in letters."""
    best = max(drawn.values.values())
    shades = {pair: SHADES[round(value / best * (len(SHADES) - 1))] for pair, value in drawn.values.items()}
    cells = {pair: f"{speed(value)} {shades[pair] * 2}" for pair, value in drawn.values.items()}
    rows = [(row, *(cells.get((row, column), "") for column in drawn.columns)) for row in drawn.rows]
    return table((*text_columns(drawn.down, whole=True), *number_columns(*drawn.columns)), rows)


def result(record: Record, found: Tuning) -> Iterator[tuple[str, Words]]:
    """Yield what to use, what it may be relied on for, and whether it still learns."""
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
        yield "floor", f"{speed(found.floor)} {unit_of(record)} here{keeps}"
    if found.learnt is not None:
        yield "learning", learning(found.learnt)


def learning(learnt: LearningCheck) -> Span:
    """Say how much less the winner learns, and how much less would be no loss."""
    change = f"{learnt.difference:+.3g} [{learnt.low:+.3g}, {learnt.high:+.3g}]"
    # A program trains for as long as it does.
    after = f" of return after {learnt.env_steps:,} env-steps" if learnt.env_steps else ""
    seeds = count(len(learnt.present), "seed")
    gained = f" ({learnt.learned:.3g} beyond an untrained policy)" if learnt.untrained else ""
    allowed = f"a loss up to {learnt.margin:.3g}, {learnt.band:.0%} of what they learn{gained}, is none"
    if learnt.learned <= 0:
        allowed = "in so few the present settings learn nothing that could be lost: give more --learn-steps"
    words = f"{change} to the present settings' {fmean(learnt.present):.3g}{after}, {seeds}; {allowed}"
    tone = TONES.get(learnt.outcome, "plain")
    return Span(f"{learnt.outcome}: {words}", tone, strong=tone == "bad")


def words(at: dict[str, str]) -> str:
    return " ".join(f"{axis}={value}" for axis, value in at.items())


def panels(record: Record) -> tuple[Panel, ...]:
    """Speed against memory and against latency; those that nobody beats have a colour of their own."""
    found = record.tuning
    assert found is not None
    unit = unit_of(record)
    memory = panel(found, unit, "bytes", lambda each: each.rss_bytes)
    of_what = "ns of a call or an update" if unit == "env-steps/s" else "ns of a run"
    latency = panel(found, unit, of_what, lambda each: each.latency_ns)
    return tuple(each for each in (memory, latency) if each.curves)


def panel(found: Tuning, unit: str, across: str, cost: Callable[[Tried], float]) -> Panel:
    curves = []
    for best, name in ((True, "nobody beats"), (False, "the others")):
        chosen = [each for each in found.tried if each.best is best and cost(each) > 0]
        points = sorted((cost(each), each.median) for each in chosen)
        if points:
            curves.append(Curve(name=name, points=tuple(points)))
    return Panel(title=f"{unit} against {across}", across=across, curves=tuple(curves))
