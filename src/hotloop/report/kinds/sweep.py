"""Sweeps: how cost grows along an axis; searches for settings; and suites of many items."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from math import log10
from statistics import fmean, median

from hotloop.core.errors import ExitCode
from hotloop.core.record import ENV_STEPS_PER_S, RUNS_PER_S, Ran, Record, SuiteRan
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
    Learning,
    LearningCheck,
    Sweep,
    Tried,
    Tuning,
)
from hotloop.judge.sweep import Line, lines_of, phases_of, share
from hotloop.report.charts import Panel, PanelCurve
from hotloop.report.kinds.compare import comparisons, outcome_words, ratio_words
from hotloop.report.section import (
    SIZES,
    Drawing,
    Heading,
    Lines,
    Note,
    Picture,
    Section,
    Sections,
    Span,
    Tone,
    Words,
    count,
    facts,
    is_alone,
    number_columns,
    origin,
    percent,
    plain_float,
    play_words,
    scaled,
    speed,
    speed_interval,
    table,
    text_columns,
    took,
)
from hotloop.report.shapes import HeatMap, draw_heat
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

MOST_PARTS = 2  # Named functions that have a column of a table; the laws have all of them

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
    told = tuple(Span(each, strong=True) for each in answer_words(swept))
    cells = f"{count(len(swept.points), 'place')}, {count(swept.repeats, 'repeat')} shuffled"
    method = f"{cells}, {play_words(record)}; speeds are wall-clock time"
    plots = list[Section]()
    for line in lines_of(swept):
        axis, others, _ = line
        drawn = {name_of(metric): pairs for metric, pairs in costs(line).items()}
        if drawn:
            plots += (Heading(words=f"{axis}{where(others)}", apart=True), plot(drawn, axis, "ns"))
    return (
        Heading(words=Span(record.target.words, strong=True)),
        *((Lines(lines=told),) if told else ()),
        points(swept, "env-steps/s" if is_alone(record) else "agent-steps/s"),
        *laws(swept),
        *changes(swept),
        *threads(swept),
        *plots,
        facts(*origin(record), ("method", method)),
    )


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
    """Return one row a place; the first few functions that the user named and that ran have columns."""
    is_phased = any(name.startswith(PHASE) for point in swept.points for name in point.values)
    whole = RUN_NS if any(RUN_NS in point.values for point in swept.points) else STEP_NS
    timed = (point.values for point in swept.points if TIMED_NS in point.values)
    names = dict.fromkeys(name for values in timed for name in values if name.startswith(PHASE))
    parts = [name for name in names if name != f"{PHASE}{ELSE}"][:MOST_PARTS]
    columns = (
        *text_columns(*swept.axes, whole=True),
        *number_columns("a run" if whole == RUN_NS else "an env-step", unit, "memory"),
        *number_columns(*(name.rpartition(".")[2] for name in parts)),
        *(text_columns("most of it") if is_phased else ()),
    )
    rows = list[tuple[Words, ...]]()
    for point in swept.points:
        known = {name: median(values) for name, values in point.values.items() if values}
        cost, pace, memory = (known.get(name) for name in (whole, AGENT_SPEED, RSS))
        phases = [name for name in point.values if name.startswith(PHASE)]
        most = max(phases, key=lambda name: share(point, name), default="")
        cells: tuple[Words, ...] = (
            Span(took(cost), strong=True) if cost else "",
            speed(pace) if pace else "",
            scaled(memory, SIZES) if memory else "",
            *(took(known[name]) if name in known else "" for name in parts),
            f"{most.removeprefix(PHASE)} {percent(share(point, most))}" if most else "",
        )
        rows.append((*(point.at[axis] for axis in swept.axes), *cells))
    return table(columns, rows)


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
    for axis, others, line in lines_of(swept):
        first, last = line[min(line)], line[max(line)]
        most = max(phases_of(line), key=lambda name: share(last, name), default=None)
        if most is not None:  # how the largest phase's share of all moves from the least size to the greatest
            ends = f"{percent(share(first, most))} at {axis}={min(line):g} to {percent(share(last, most))}"
            of = "of the step" if TIMED_NS in last.values else "of all phases"
            told.append(f"{name_of(most)}: from {ends} {of} at {max(line):g}{where(others)}")
    told += [
        f"the knee: from {each.axis}={each.size:g} on the speed is within 10% of its best{where(each.at)}"
        for each in swept.knees
    ]
    if told:
        yield Lines(lines=tuple(told))


def where(at: Mapping[str, str]) -> str:
    return f" at {settings_words(at)}" if at else ""


def settings_words(at: Mapping[str, str]) -> str:
    return " ".join(f"{axis}={value}" for axis, value in at.items())


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


def costs(line: Line) -> Series:
    """Return the medians of the step or the run, and of the phases that are worth a law, by size."""
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
    swept, drawn = record.sweep, list[Panel]()
    assert swept is not None
    for line in lines_of(swept):
        axis, others, _ = line
        found = {each.metric: each for each in swept.growths if (each.axis, each.at) == (axis, others)}
        curves = list[PanelCurve]()
        for metric, pairs in costs(line).items():
            growth, name, law = found.get(metric), name_of(metric), None
            if growth is not None:
                name += f": {law_words(growth)}"
                fitted = Fitted(**{each.name: getattr(growth, each.name) for each in fields(Fitted)})
                law = None if growth.law == "unknown" else fitted.at
            if pairs:
                curves.append(PanelCurve(name=name, points=tuple(pairs), law=law))
        if curves:
            drawn.append(Panel(title=f"ns, {axis}{where(others)}", across=axis, curves=tuple(curves)))
    return tuple(drawn)


SHADES = " ░▒▓█"

APART = 2  # Axes that have columns of their own
TONES: Mapping[Learning, Tone] = {"worse": "bad", "cannot tell": "warn"}

JOIN = " / "  # Between the values of axes that share one


def tune(record: Record) -> Sections:
    """Return the table, the map, the confirmation, what is learnt, and the line."""
    found = record.tuning
    assert found is not None
    unit, answers = unit_of(record), list[Section]()
    for compared in record.comparisons:  # the winner, and how many times as fast it was in turns
        faster = f", {ratio_words(compared.ratio)} times as fast as the present settings"
        if compared.ratio is None:
            faster = " if it is faster than the present settings"
        tone: Tone = "good" if compared.outcome == "faster" and not found.kept else "warn"
        winner = Span(settings_words(found.winner), strong=True)
        answers.append(Note(words=(winner, ": ", Span(compared.outcome, tone), faster)))
    skipped = tuple(Span(f"skipped {settings_words(each.at)}: {each.why}", "dim") for each in found.skipped)
    return (
        Heading(words=Span(record.target.words, strong=True)),
        *answers,
        *combinations(found, unit),
        *heat(found, unit),
        *comparisons(record.comparisons),
        facts(*tuning_facts(record, found), *origin(record)),
        *((Lines(lines=skipped),) if skipped else ()),
    )


def unit_of(record: Record) -> str:
    """Return what combinations are judged by: env-steps, or what a program prints or how often it runs."""
    judged = record.method.headline
    return {ENV_STEPS_PER_S: "env-steps/s", RUNS_PER_S: "runs/s"}.get(judged, judged)


def combinations(found: Tuning, unit: str) -> Iterator[Section]:
    """Yield one row a combination, the fastest first; axes that do not fit share a column."""
    is_apart = len(found.axes) <= APART
    if not is_apart:
        yield Note(words=f"settings: {JOIN.join(found.axes)}")
    # The functions that the user named, the first few, have columns.
    parts = [*dict.fromkeys(name for each in found.tried for name in each.parts if name != ELSE)][:MOST_PARTS]
    columns = (
        *text_columns(*(found.axes if is_apart else ("settings",)), whole=True),
        *number_columns(unit, "95% interval", "memory", "latency", *parts, "rungs"),
        *text_columns(""),
    )
    rows = list[tuple[Words, ...]]()
    for each in sorted(found.tried, key=lambda each: (-each.rungs, -each.median)):
        won, values = each.at == found.winner, [each.at[axis] for axis in found.axes]
        around = (each.low, each.high) if each.low is not None and each.high is not None else None
        marks = [*(["winner"] if won else []), *(["Pareto"] if each.best else [])]
        rows.append(
            (
                *(values if is_apart else (JOIN.join(values),)),
                Span(speed(each.median), strong=won),
                speed_interval(around),
                scaled(each.rss_bytes, SIZES),
                took(each.latency_ns),
                *(took(each.parts[name]) if name in each.parts else "" for name in parts),
                str(each.rungs),
                ", ".join(marks),
            )
        )
    yield table(columns, rows)


def heat(found: Tuning, unit: str) -> Iterator[Section]:
    """Yield the best speed of every pair of values of the first two axes, the darker the faster."""
    if len(found.axes) < 2 or not found.tried:
        return
    (down, rows), (across, columns), *_ = found.axes.items()
    values: dict[tuple[str, str], float] = {}
    for each in found.tried:
        pair = each.at[down], each.at[across]
        values[pair] = max(each.median, values.get(pair, each.median))
    drawn = HeatMap(
        down=down,
        rows=tuple(rows),
        across=across,
        columns=tuple(columns),
        values=values,
        best=(found.winner[down], found.winner[across]),
    )
    # The map in letters, for formats without pictures.
    best, cells = max(values.values()), dict[tuple[str, str], str]()
    for pair, value in values.items():
        cells[pair] = f"{speed(value)} {SHADES[round(value / best * (len(SHADES) - 1))] * 2}"
    heads = (*text_columns(down, whole=True), *number_columns(*drawn.columns))
    shaded = table(heads, [(row, *(cells.get((row, column), "") for column in columns)) for row in rows])
    yield Heading(words=f"{unit}, {down} down, {across} across; the darker, the faster", apart=True)
    yield Picture(svg=draw_heat(drawn), instead=(shaded,))


def tuning_facts(record: Record, found: Tuning) -> Iterator[tuple[str, Words]]:
    """Yield what to use, what it may be relied on for, and whether it still learns."""
    yield "winner", f"{settings_words(found.winner)}, by the lower end of its interval"
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


def tuning_panels(record: Record) -> tuple[Panel, ...]:
    """Return speed against memory and against latency; undominated candidates have a color of their own."""
    found, unit, panels = record.tuning, unit_of(record), list[Panel]()
    assert found is not None
    of_what = "ns of a call or an update" if unit == "env-steps/s" else "ns of a run"
    costs: dict[str, Callable[[Tried], float]] = {
        "bytes": lambda each: each.rss_bytes,
        of_what: lambda each: each.latency_ns,
    }
    for across, cost in costs.items():
        curves = []
        for best, name in ((True, "nobody beats"), (False, "the others")):
            chosen = [each for each in found.tried if each.best is best and cost(each) > 0]
            if chosen:
                places = tuple(sorted((cost(each), each.median) for each in chosen))
                curves.append(PanelCurve(name=name, points=places))
        if curves:
            panels.append(Panel(title=f"{unit} against {across}", across=across, curves=tuple(curves)))
    return tuple(panels)


MEANINGS = {
    ExitCode.FINE: Span("fine", "good"),
    ExitCode.UNSTABLE: Span("unstable", "warn"),
    ExitCode.CANNOT_TELL: Span("cannot tell", "warn"),
    ExitCode.REGRESSION: Span("slower", "bad", strong=True),
    ExitCode.MISMATCH: Span("not equal", "bad", strong=True),
}


def suite(ran: SuiteRan) -> Sections:
    """Return the table of all items, then the failures and what is left to do."""
    rows, failures = list[tuple[Words, ...]](), list[Words]()
    for item in ran.items:
        failed = Span("failed", "bad", strong=True)
        verdict: Words = failed
        if item.record is None:
            failures.append((failed, f"  {item.target} ({item.do}): {item.refused}"))
        else:
            meaning = MEANINGS.get(item.code, Span(f"exit {int(item.code)}", "bad"))
            verdict = (meaning, " (kept)") if item.kept else meaning
        rows.append((item.target, item.do, result(item), verdict))
    columns = (
        *text_columns("target", "do", whole=True),
        *text_columns("result"),
        *text_columns("", whole=True),
    )
    left = ran.asked - len(ran.items)
    more = f", {left} left: go on with --resume" if left else ""
    head = Note(words=f"suite {ran.name}: {count(len(ran.items), 'item')}{more}")
    return head, table(columns, rows), *((Lines(lines=tuple(failures)),) if failures else ())


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
