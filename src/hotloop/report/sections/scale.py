"""Sweeps: what every size costs, by which laws that grows, and where it changes."""

from collections.abc import Callable, Iterator, Mapping
from statistics import median

from hotloop.core.record import (
    AGENT_SPEED,
    PHASE,
    RSS,
    RUN_NS,
    STEP_NS,
    Efficiency,
    Growth,
    Point,
    Record,
    Sweep,
)
from hotloop.judge.scale import Line, lines_of, phases_of, share
from hotloop.report.pictures.curves import Curve, Panel
from hotloop.report.sections.facts import origin
from hotloop.report.sections.plot import Series, plot
from hotloop.report.sections.section import (
    Heading,
    Lines,
    Section,
    Sections,
    Span,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import SIZES, count, percent, scaled, speed, took
from hotloop.stats.fit import Fitted

NAMES = {STEP_NS: "an env-step", RUN_NS: "a whole run", RSS: "memory"}

LAWS: Mapping[str, str] = {
    "constant": "constant",
    "log": "a + b log n",
    "linear": "a + b n",
    "n log n": "a + b n log n",
    "quadratic": "a + b n²",
}


def scale(record: Record) -> Sections:
    """The points, the laws, what changes along the axes, and a plot of each."""
    swept = record.sweep
    assert swept is not None
    return (
        Heading(words=Span(record.target.words, strong=True)),
        points(swept),
        *laws(swept),
        *changes(swept),
        *threads(swept),
        *plots(swept),
        facts(*origin(record), ("method", method(record))),
    )


def method(record: Record) -> str:
    """How often what was measured."""
    assert record.sweep is not None
    cells = f"{count(len(record.sweep.points), 'place')}, {count(record.sweep.repeats, 'repeat')} shuffled"
    return f"{cells}, {record.method.policy} play; time that others had the core is left out"


def points(swept: Sweep) -> Section:
    """One row a place."""
    phases = any(name.startswith(PHASE) for point in swept.points for name in point.values)
    runs = any(RUN_NS in point.values for point in swept.points)
    columns = (
        *text_columns(*swept.axes, whole=True),
        *number_columns("a run" if runs else "an env-step", "agent-steps/s", "memory"),
        *(text_columns("most of it") if phases else ()),
    )
    return table(columns, [row(point, swept, runs=runs) for point in swept.points])


def row(point: Point, swept: Sweep, *, runs: bool) -> tuple[Words, ...]:
    cost, pace, memory = (
        median(point.values[name]) if point.values.get(name) else None
        for name in (RUN_NS if runs else STEP_NS, AGENT_SPEED, RSS)
    )
    return (
        *(point.at[axis] for axis in swept.axes),
        Span(took(cost), strong=True) if cost else "",
        speed(pace) if pace else "",
        scaled(memory, SIZES) if memory else "",
        largest(point),
    )


def largest(point: Point) -> str:
    """The phase that takes most, and its share."""
    names = [name for name in point.values if name.startswith(PHASE)]
    if not names:
        return ""
    most = max(names, key=lambda name: share(point, name))
    return f"{most.removeprefix(PHASE)} {percent(share(point, most))}"


def laws(swept: Sweep) -> Iterator[Section]:
    """What grows by which law."""
    if not swept.growths:
        return
    columns = (*text_columns("of", "along"), *text_columns("grows as", "exponent", whole=True))
    yield Heading(words="Laws", apart=True)
    yield table((*columns, *text_columns("or as well")), [law_row(each) for each in swept.growths])


def law_row(growth: Growth) -> tuple[Words, ...]:
    also = ", ".join(LAWS[law] for law in growth.also)
    exponent = f"{growth.exponent:.2f} [{growth.low:.2f}, {growth.high:.2f}]"
    return name_of(growth.metric), along(growth), Span(law_words(growth), strong=True), exponent, also


def along(growth: Growth) -> str:
    others = " ".join(f"{axis}={value}" for axis, value in growth.at.items())
    return f"{growth.axis} at {others}" if others else growth.axis


def law_words(growth: Growth) -> str:
    return LAWS.get(growth.law) or f"a + b n^{growth.exponent:.2f}"


def name_of(metric: str) -> str:
    return NAMES.get(metric) or metric.removeprefix(PHASE)


def changes(swept: Sweep) -> Iterator[Section]:
    """Where phases overtake each other, how their shares move, and where more brings little."""
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
    """How the largest phase's share of all phases moves from the least size to the greatest."""
    first, last = line[min(line)], line[max(line)]
    most = max(phases_of(line), key=lambda name: share(last, name))
    ends = f"{percent(share(first, most))} at {axis}={min(line):g} to {percent(share(last, most))}"
    return f"{most.removeprefix(PHASE)}: from {ends} of all phases at {max(line):g}{where(others)}"


def where(at: Mapping[str, str]) -> str:
    return f" at {' '.join(f'{axis}={value}' for axis, value in at.items())}" if at else ""


def threads(swept: Sweep) -> Iterator[Section]:
    """What threads bring, and what bounds them."""
    if not swept.efficiencies:
        return
    columns = number_columns("threads", "times as fast", "efficiency", "CPU time of a step", "idle", "serial")
    yield Heading(words="Threads", apart=True)
    yield table((*columns, *text_columns("bound by")), [thread_row(each) for each in swept.efficiencies])


def thread_row(each: Efficiency) -> tuple[Words, ...]:
    return (
        str(each.threads),
        f"{each.speedup:.2f}",
        percent(each.speedup / each.threads),
        f"{each.work:.2f} times",
        percent(each.idle),
        percent(each.serial),
        each.bound + where(each.at),
    )


def plots(swept: Sweep) -> Iterator[Section]:
    """A plot of every line: the step, and the phases that are worth a law."""
    for line in lines_of(swept):
        axis, others, _ = line
        drawn = {name_of(metric): pairs for metric, pairs in costs(line).items()}
        if drawn:
            yield Heading(words=f"{axis}{where(others)}", apart=True)
            yield plot(drawn, axis, "ns")


def costs(line: Line) -> Series:
    """The medians of the step or the run, and of the phases, by size."""
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
    """The same for pictures, with the laws as lines."""
    swept = record.sweep
    assert swept is not None
    return tuple(panel(swept, line) for line in lines_of(swept) if any(costs(line).values()))


def panel(swept: Sweep, line: Line) -> Panel:
    axis, others, _ = line
    found = {each.metric: each for each in swept.growths if (each.axis, each.at) == (axis, others)}
    curves = (
        Curve(name=curve_name(metric, found.get(metric)), points=tuple(pairs), law=law_of(found.get(metric)))
        for metric, pairs in costs(line).items()
        if pairs
    )
    return Panel(title=f"ns, {axis}{where(others)}", across=axis, curves=tuple(curves))


def curve_name(metric: str, growth: Growth | None) -> str:
    return name_of(metric) + (f": {law_words(growth)}" if growth else "")


def law_of(growth: Growth | None) -> Callable[[float], float] | None:
    """The law as a function of the size."""
    if growth is None:
        return None
    return Fitted(
        law=growth.law,
        exponent=growth.exponent,
        low=growth.low,
        high=growth.high,
        constant=growth.constant,
        factor=growth.factor,
    ).at
