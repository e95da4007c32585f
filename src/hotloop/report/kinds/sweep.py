"""Sweeps: how cost grows along an axis, plotted in characters, and suites of many items."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from math import log10
from statistics import median

from hotloop.core.errors import ExitCode
from hotloop.core.record import Ran, Record, SuiteRan
from hotloop.core.record.experiments import (
    AGENT_SPEED,
    ELSE,
    PHASE,
    RSS,
    RUN_NS,
    STEP_NS,
    THREADS,
    TIMED_NS,
    Growth,
    Point,
    Sweep,
)
from hotloop.judge.sweep import Line, lines_of, phases_of, share
from hotloop.report.charts import Curve, Panel
from hotloop.report.facts import is_alone, origin, play_words
from hotloop.report.kinds.compare import outcome_words, ratio_words
from hotloop.report.section import (
    Drawing,
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
from hotloop.report.units import SIZES, count, percent, plain_float, scaled, speed, speed_interval, took
from hotloop.stats.fit import Fitted

WIDE, HIGH = 56, 12  # Characters of the field
MARKS = "ox+*#@%&"

Series = Mapping[str, Sequence[tuple[float, float]]]  # Name to its points (x, y), all positive


def plot(series: Series, across: str, unit: str) -> Drawing:
    """Return the points as letters in a field, with what each letter is."""
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
    """Return the cell of a value between the least and the greatest, by powers."""
    low, high = log10(min(values)), log10(max(values))
    share = (log10(value) - low) / (high - low) if high > low else 0.5
    return min(cells - 1, round(share * (cells - 1)))


NAMES = {STEP_NS: "an env-step", RUN_NS: "a whole run", RSS: "memory"}

MOST_PARTS = 2  # Named functions that have a column of the points' table; the laws have all of them

LAWS: Mapping[str, str] = {
    "constant": "constant",
    "log": "a + b log n",
    "linear": "a + b n",
    "n log n": "a + b n log n",
    "quadratic": "a + b n²",
    "unknown": "cannot tell",
}


def scale(record: Record) -> Sections:
    """Return the points, the laws, what changes along the axes, and a plot of each."""
    swept = record.sweep
    assert swept is not None
    told = answer_words(swept)
    return (
        Heading(words=Span(record.target.words, strong=True)),
        *((Lines(lines=tuple(Span(each, strong=True) for each in told)),) if told else ()),
        points(swept, "env-steps/s" if is_alone(record) else "agent-steps/s"),
        *laws(swept),
        *changes(swept),
        *threads(swept),
        *plots(swept),
        facts(*origin(record), ("method", method(record))),
    )


def method(record: Record) -> str:
    """Return how often what was measured."""
    assert record.sweep is not None
    cells = f"{count(len(record.sweep.points), 'place')}, {count(record.sweep.repeats, 'repeat')} shuffled"
    return f"{cells}, {play_words(record)}; speeds are wall-clock time"


def answer_words(swept: Sweep) -> list[str]:
    """Return the answer of each axis: how the whole grows, and the part that takes most of it in the end."""
    told = (answer(swept, line) for line in lines_of(swept) if line[0] != THREADS)
    return [each for each in told if each]


def answer(swept: Sweep, line: Line) -> str:
    axis, others, places = line
    grown = {each.metric: each for each in swept.growths if (each.axis, each.at) == (axis, others)}
    whole = next((grown[metric] for metric in (RUN_NS, STEP_NS) if metric in grown), None)
    if whole is None:
        return ""
    words = f"{name_of(whole.metric)} {growth_words(whole)}{where(others)}"
    size, named = max(places), [name for name in phases_of(places) if name != f"{PHASE}{ELSE}"]
    if not named:
        return words
    most = max(named, key=lambda name: share(places[size], name))
    part = f"{name_of(most)} takes {percent(share(places[size], most))} of it at {axis}={size:g}"
    return f"{words}; {part}" + (f" and {growth_words(grown[most])}" if most in grown else "")


def growth_words(growth: Growth) -> str:
    """Return how something grows as the rest of a sentence: `grows as n^1.9 [1.7, 2.1] along agents`."""
    if growth.law == "unknown":
        return f"grows along {growth.axis} by a law that more sizes or repeats would tell"
    if growth.law == "constant" or growth.low <= 0 <= growth.high:
        return f"hardly changes along {growth.axis}"
    power = f"n^{growth.exponent:.2g} [{growth.low:.2g}, {growth.high:.2g}]"
    return f"grows as {LAWS.get(growth.law, power)} along {growth.axis}"


def points(swept: Sweep, unit: str = "agent-steps/s") -> Section:
    """Return one row a place."""
    phases = any(name.startswith(PHASE) for point in swept.points for name in point.values)
    runs = any(RUN_NS in point.values for point in swept.points)
    parts = named_parts(swept)
    columns = (
        *text_columns(*swept.axes, whole=True),
        *number_columns("a run" if runs else "an env-step", unit, "memory"),
        *number_columns(*(name.rpartition(".")[2] for name in parts)),
        *(text_columns("most of it") if phases else ()),
    )
    return table(columns, [row(point, swept, parts, runs=runs) for point in swept.points])


def named_parts(swept: Sweep) -> list[str]:
    """Return the functions that the user named and that were called, the first few: they have columns."""
    timed = (point.values for point in swept.points if TIMED_NS in point.values)
    names = dict.fromkeys(name for values in timed for name in values if name.startswith(PHASE))
    return [name for name in names if name != f"{PHASE}{ELSE}"][:MOST_PARTS]


def row(point: Point, swept: Sweep, parts: Sequence[str], *, runs: bool) -> tuple[Words, ...]:
    cost, pace, memory = (
        median(point.values[name]) if point.values.get(name) else None
        for name in (RUN_NS if runs else STEP_NS, AGENT_SPEED, RSS)
    )
    return (
        *(point.at[axis] for axis in swept.axes),
        Span(took(cost), strong=True) if cost else "",
        speed(pace) if pace else "",
        scaled(memory, SIZES) if memory else "",
        *(took(median(point.values[name])) if point.values.get(name) else "" for name in parts),
        largest(point),
    )


def largest(point: Point) -> str:
    """Return the phase that takes most, and its share."""
    names = [name for name in point.values if name.startswith(PHASE)]
    if not names:
        return ""
    most = max(names, key=lambda name: share(point, name))
    return f"{most.removeprefix(PHASE)} {percent(share(point, most))}"


def laws(swept: Sweep) -> Iterator[Section]:
    """Yield what grows by which law."""
    if not swept.growths:
        return
    columns = (*text_columns("of", "along"), *text_columns("grows as", "exponent", whole=True))
    rows = [
        (
            name_of(each.metric),
            each.axis + where(each.at),
            Span(law_words(each), strong=True),
            f"{each.exponent:.2f} [{each.low:.2f}, {each.high:.2f}]",
            ", ".join(LAWS[law] for law in each.also),
        )
        for each in swept.growths
    ]
    yield Heading(words="Laws", apart=True)
    yield table((*columns, *text_columns("or as well")), rows)


def law_words(growth: Growth) -> str:
    return LAWS.get(growth.law) or f"a + b n^{growth.exponent:.2f}"


def name_of(metric: str) -> str:
    return NAMES.get(metric) or metric.removeprefix(PHASE)


def changes(swept: Sweep) -> Iterator[Section]:
    """Yield where phases overtake each other, how their shares move, and where more brings little."""
    told: list[Words] = [
        f"{each.riser} costs more than {each.fallen} from about {each.axis}={each.size:.3g} on "
        f"(between {each.low:g} and {each.high:g}){where(each.at)}"
        for each in swept.crossings
    ]
    told += [share_words(*line) for line in lines_of(swept) if phases_of(line[2])]
    told += [
        f"the knee: from {each.axis}={each.size:g} on the speed is within 10% of its best{where(each.at)}"
        for each in swept.knees
    ]
    if told:
        yield Lines(lines=tuple(told))


def share_words(axis: str, others: dict[str, str], line: Mapping[float, Point]) -> str:
    """Return how the largest phase's share of all phases moves from the least size to the greatest."""
    first, last = line[min(line)], line[max(line)]
    most = max(phases_of(line), key=lambda name: share(last, name))
    ends = f"{percent(share(first, most))} at {axis}={min(line):g} to {percent(share(last, most))}"
    of = "of the step" if TIMED_NS in last.values else "of all phases"
    return f"{most.removeprefix(PHASE)}: from {ends} {of} at {max(line):g}{where(others)}"


def where(at: Mapping[str, str]) -> str:
    return f" at {' '.join(f'{axis}={value}' for axis, value in at.items())}" if at else ""


def threads(swept: Sweep) -> Iterator[Section]:
    """Yield what threads bring, and what bounds them."""
    if not swept.efficiencies:
        return
    columns = number_columns("threads", "times as fast", "efficiency", "CPU time of a step", "idle", "serial")
    rows = [
        (
            str(each.threads),
            f"{each.speedup:.2f}",
            percent(each.speedup / each.threads),
            f"{each.work:.2f} times",
            percent(each.idle),
            percent(each.serial),
            each.bound + where(each.at),
        )
        for each in swept.efficiencies
    ]
    yield Heading(words="Threads", apart=True)
    yield table((*columns, *text_columns("bound by")), rows)


def plots(swept: Sweep) -> Iterator[Section]:
    """Yield a plot of every line: the step, and the phases that are worth a law."""
    for line in lines_of(swept):
        axis, others, _ = line
        drawn = {name_of(metric): pairs for metric, pairs in costs(line).items()}
        if drawn:
            yield Heading(words=f"{axis}{where(others)}", apart=True)
            yield plot(drawn, axis, "ns")


def costs(line: Line) -> Series:
    """Return the medians of the step or the run, and of the phases, by size."""
    _, _, places = line
    whole = RUN_NS if any(RUN_NS in point.values for point in places.values()) else STEP_NS
    names = [whole] if whole == RUN_NS else [whole, *phases_of(places)]
    return {
        name: [
            (size, median(point.values[name]))
            for size, point in sorted(places.items())
            if point.values.get(name) and median(point.values[name]) > 0
        ]
        for name in names
    }


def panels(record: Record) -> tuple[Panel, ...]:
    """Return the same for pictures, with the laws as lines."""
    swept = record.sweep
    assert swept is not None
    return tuple(panel(swept, line) for line in lines_of(swept) if any(costs(line).values()))


def panel(swept: Sweep, line: Line) -> Panel:
    axis, others, _ = line
    found = {each.metric: each for each in swept.growths if (each.axis, each.at) == (axis, others)}
    curves = list[Curve]()
    for metric, pairs in costs(line).items():
        growth, name = found.get(metric), name_of(metric)
        law = None
        if growth is not None:
            name += f": {law_words(growth)}"
            fitted = Fitted(**{each.name: getattr(growth, each.name) for each in fields(Fitted)})
            law = None if growth.law == "unknown" else fitted.at
        if pairs:
            curves.append(Curve(name=name, points=tuple(pairs), law=law))
    return Panel(title=f"ns, {axis}{where(others)}", across=axis, curves=tuple(curves))


MEANINGS = {
    ExitCode.FINE: Span("fine", "good"),
    ExitCode.UNSTABLE: Span("unstable", "warn"),
    ExitCode.CANNOT_TELL: Span("cannot tell", "warn"),
    ExitCode.REGRESSION: Span("slower", "bad", strong=True),
    ExitCode.MISMATCH: Span("not equal", "bad", strong=True),
}


def suite(ran: SuiteRan) -> Sections:
    """Return the table of all items, then the failures and what is left to do."""
    rows = [(item.target, item.do, result(item), verdict(item)) for item in ran.items]
    columns = (
        *text_columns("target", "do", whole=True),
        *text_columns("result"),
        *text_columns("", whole=True),
    )
    left = ran.asked - len(ran.items)
    more = f", {left} left: go on with --resume" if left else ""
    head = f"suite {ran.name}: {count(len(ran.items), 'item')}{more}"
    failures = tuple(
        (Span("failed", "bad", strong=True), f"  {item.target} ({item.do}): {item.refused}")
        for item in ran.items
        if item.record is None
    )
    return Note(words=head), table(columns, rows), *((Lines(lines=failures),) if failures else ())


def result(item: Ran) -> Words:
    """Return what an item found, in one cell."""
    record = item.record
    if record is None:
        return "none"
    if record.comparisons:
        compared = record.comparisons[0]
        return outcome_words(compared.outcome, f", {ratio_words(compared.ratio)} of {item.against}")
    if record.sweep is not None:
        return "; ".join(answer_words(record.sweep)) or count(len(record.sweep.points), "place")
    if item.do == "profile":
        return largest_part(record)
    if record.instructions is not None:
        return f"{plain_float(record.instructions.per_env_step)} instructions/env-step"
    metric = record.metrics.get("agent_steps_per_s")
    pace = f"{speed(metric.median)} {speed_interval(metric.ci95)} agent-steps/s" if metric else ""
    return pace or "no rounds"


def largest_part(record: Record) -> str:
    """Return the part that takes most beside its own parts."""
    own = {phase.path: phase.share for phase in record.phases}
    whole = {path.rpartition("/")[0] for path in own}
    for phase in record.phases:
        above = phase.path.rpartition("/")[0]
        if above in own:
            own[above] -= phase.share
    if not own:
        return "no phases"
    most = max(own, key=lambda path: own[path])
    return f"{most}{' itself' if most in whole else ''} {percent(own[most])}"


def verdict(item: Ran) -> Words:
    again = " (kept)" if item.kept else ""
    if item.record is None:
        return Span("failed", "bad", strong=True)
    meaning = MEANINGS.get(item.code, Span(f"exit {int(item.code)}", "bad"))
    return (meaning, again) if again else meaning
