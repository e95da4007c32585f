"""Programs: what whole runs took, and which of several is faster."""

from hotloop.core.record import Metric, Record
from hotloop.core.record.comparison import A, Comparison
from hotloop.core.record.profile import read_times
from hotloop.report.facts import Rows, by_spread, origin
from hotloop.report.kinds.compare import comparisons, ratio_words, verdict_words
from hotloop.report.kinds.findings import Pictures, chapters, findings
from hotloop.report.kinds.profile import SAMPLES, hot, notes, used
from hotloop.report.kinds.times import Cell, calls_of, draw_times, of_wall
from hotloop.report.section import (
    Chapter,
    Lines,
    Note,
    Page,
    Section,
    Sections,
    Span,
    Table,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import CPU, SIZES, count, on_core, percent, plain_float, scaled, took
from hotloop.stats.ratio import outcome as outcome_of
from hotloop.stats.summary import label, summarise


def bench(record: Record) -> Sections:
    """Return the command, what it is judged by, and what a run took."""
    rows = [
        (heading(name), *cells(record, name, in_words))
        for name, in_words in measures(record)
        if name in record.metrics
    ]
    columns = (*text_columns("of a run"), *number_columns("median", "95% interval", "spread"))
    return (
        facts(("program", Span(record.target.name, strong=True))),
        table(columns, rows) if rows else facts(("runs", "no round was finished")),
        facts(*measured(record)),
        *comparisons(record.comparisons),
    )


def measures(record: Record) -> list[tuple[str, str]]:
    """Return each metric that is shown, and how its values are written; what is judged comes first."""
    judged = record.method.headline.removeprefix("1/")
    printed = [] if judged == "runs_per_s" else [(judged, "number")]
    return [*printed, ("wall_ns", "time"), ("cpu_ns", "time"), ("rss_peak_bytes", "size")]


def cells(record: Record, name: str, kind: str) -> tuple[Words, ...]:
    metric = record.metrics[name]
    low_high = (
        f"[{written(metric.ci95[0], kind)}, {written(metric.ci95[1], kind)}]"
        if metric.ci95
        else "no interval"
    )
    return Span(written(metric.median, kind), strong=True), low_high, spread(record.values[name])


def spread(values: tuple[float, ...]) -> Span:
    """Return how much the runs varied."""
    rounds = summarise(values)
    if rounds.cv is None:
        return Span("one run")
    word = label(rounds.cv)
    return by_spread(f"{percent(rounds.cv)} {word}", word)


def written(value: float, kind: str) -> str:
    return took(value) if kind == "time" else scaled(value, SIZES) if kind == "size" else plain_float(value)


def measured(record: Record) -> Rows:
    """Yield what the numbers rest on."""
    yield from origin(record)
    yield "method", method_line(record)
    for found in record.findings:
        if found.probe == "metric" and found.tables:
            yield "printed", printed_line(found.tables[0].rows)


def printed_line(rows: tuple[tuple[object, ...], ...]) -> str:
    """Return how often the metric was printed, and how much of that was warm-up."""
    values = sum(len(row[2]) for row in rows if isinstance(row[2], (list, tuple)))
    cut = sum(int(str(row[1])) for row in rows)
    return f"{count(values, 'value')} in {count(len(rows), 'run')}, {cut} of them cut as warm-up"


def method_line(record: Record) -> str:
    method = record.method
    each = "" if not record.comparisons or method.order == "single" else f" of each; {method.order}"
    return f"{count(method.rounds, 'run')} after {method.warmup} of warm-up{each}"


def compare(record: Record) -> Sections:
    """Return each side against A, the verdict first."""
    several = len(record.comparisons) > 1
    heads = (headline(each, chr(ord("B") + index)) for index, each in enumerate(record.comparisons))
    return (
        *heads,
        sides(record),
        *(
            facts(*evidence(record, each, chr(ord("B") + index), several=several))
            for index, each in enumerate(record.comparisons)
        ),
        facts(("method", method_line(record)), *origin(record)),
    )


def headline(comparison: Comparison, letter: str) -> Note:
    """Return the verdict of one side in a line."""
    words = verdict_words(comparison, letter)
    ratio = f": {ratio_words(comparison.ratio)} times as fast as A" if comparison.ratio else ""
    return Note(words=(*words, ratio))


def sides(record: Record) -> Table:
    shown = measures(record)
    columns = (*text_columns("side", "program"), *number_columns(*(heading(name) for name, _ in shown)))
    names = [record.comparisons[0].a.name, *(each.b.name for each in record.comparisons)]
    rows = list[tuple[Words, ...]]()
    for index, name in enumerate(names):
        letter = chr(ord(A) + index)
        found = [(record.metrics.get(f"{letter}.{metric}"), kind) for metric, kind in shown]
        rows.append((letter.upper(), name, *(middle(metric, kind) for metric, kind in found)))
    return table(columns, rows)


def heading(name: str) -> str:
    return {"wall_ns": "wall", "cpu_ns": "CPU", "rss_peak_bytes": "peak memory"}.get(name, name)


def middle(metric: Metric | None, kind: str) -> str:
    return written(metric.median, kind) if metric else "not run"


def evidence(record: Record, comparison: Comparison, letter: str, *, several: bool) -> Rows:
    """Yield why, how much noise there was, and what could have been seen."""
    who = f"{letter}: " if several else ""
    yield "because", who + comparison.why
    if comparison.noise:
        yield "noise", f"A against itself {ratio_words(comparison.noise)}"
    if comparison.cpu:
        said = outcome_of(comparison.cpu, comparison.band)
        yield "CPU time", f"by CPU time {ratio_words(comparison.cpu)} times as fast: {said}"
    if comparison.second:
        yield "second run", ratio_words(comparison.second)
    if comparison.visible is not None:
        yield "could see", f"a change of {percent(comparison.visible)} or more"
    if comparison.more_pairs:
        yield "to settle", f"about {count(comparison.more_pairs, 'more round')}, or a wider --band"


def profile(record: Record) -> Sections:
    """Return where the time of a program goes, at a glance."""
    shown = [found for found in record.findings if found.probe != SAMPLES]
    tree = (spans(record),) if record.phases else ()
    rows = (("program", Span(record.target.name, strong=True)), *origin(record))
    return (facts(*rows), *tree, *hot(record), facts(*ran(record)), *findings(shown))


def spans(record: Record) -> Section:
    """Return the program's own spans, and what is in none."""
    tree = read_times(record.phases)
    if tree is None:
        return Note(words="no time was accounted for")
    columns: dict[str, Cell] = {
        "calls": calls_of,
        "time": lambda row, _: took(row.total_ns),
        "of wall": of_wall,
    }
    if any(row.on_core is not None for row in tree.walk()):
        columns[CPU] = lambda row, _: on_core(row.on_core)
    return draw_times("where", tree, columns, whole="wall")


def ran(record: Record) -> Rows:
    """Yield what a run took, clean and watched."""
    for which, title in (("", "clean run"), ("watched.", "watched")):
        wall, cpu, rss = (
            record.values.get(f"{which}{name}") for name in ("wall_ns", "cpu_ns", "rss_peak_bytes")
        )
        if wall and cpu and rss:
            share = percent(cpu[0] / wall[0])
            memory = scaled(rss[0], SIZES)
            yield title, f"{took(wall[0])}, CPU {took(cpu[0])} ({share} of one core), peak memory {memory}"


def page(record: Record, pictures: Pictures | None = None, most: int | None = None) -> Page:
    """Return all that is known of a program's profile, in its order."""
    told = (
        Chapter(title="Configuration", sections=(facts(*configuration(record)),), summary=True),
        Chapter(title="Runs", sections=(facts(*ran(record)),), summary=True),
        *([Chapter(title="Time Breakdown", sections=(spans(record),))] if record.phases else []),
        *used(record),
        *chapters(record, pictures or {}, most),
        Chapter(title="Notes", sections=(Lines(lines=tuple(notes(record))),)),
    )
    when = f"{record.created[:16].replace('T', ' ')} UTC"
    return Page(title=f"Profile of {record.target.name}", when=when, chapters=told)


def configuration(record: Record) -> Rows:
    yield "Program", Span(record.target.name, code=True)
    yield from origin(record)
    yield "Run", record.run_id
