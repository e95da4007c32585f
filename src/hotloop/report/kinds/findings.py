"""What probes found: values drawn by the unit in the name of their column."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotloop.core.record import Record, Resources
from hotloop.core.record.profile import Finding
from hotloop.core.record.profile import Table as Found
from hotloop.report.facts import Rows
from hotloop.report.section import (
    Chapter,
    Column,
    Heading,
    Kind,
    Note,
    Picture,
    Section,
    Sections,
    Span,
    Table,
    Words,
    facts,
    table,
)
from hotloop.report.units import SIZES, TIMES, count, percent, plain_float, scaled, sparkline

MOST_ROWS = 10  # Of a table where there is little room; lines of code are shown whole
CODE_WIDTH = 72  # Characters of a line of code that are shown where there is little room
MEMORY_WIDTH = 120  # Points of memory over time
RESOURCES = "resources"  # The probe whose facts have a place of their own
CODE = ("code", "function", "operator", "site")  # Columns whose cells are names or lines of a program
# Units in a column's name, which its values are drawn by, and what is left of them in its heading.
SHOWN = {"ns": "", "bytes": "", "share": "%"}

Pictures = Mapping[str, str]  # Probe to an SVG of the stacks it saw


def findings(found: Sequence[Finding]) -> Sections:
    """Return one after another, each with its facts in a line and the beginnings of its tables."""
    return tuple(section for each in probed(found) for section in glance(each))


def probed(found: Sequence[Finding]) -> list[Finding]:
    """Return what has no place of its own."""
    return [each for each in found if each.probe != RESOURCES]


def glance(found: Finding) -> Iterator[Section]:
    told = ", ".join(f"{name} {value}" for name, value in facts_of(found.facts).items())
    yield Heading(words=(Span(found.probe, strong=True), f"  {told}"), apart=True)
    for each in found.tables:
        if each.rows and is_code(each):
            yield Note(words=each.title)
            yield drawn(each, [row for row in each.rows if row[1] is not None])
        elif each.rows:
            yield drawn(each, each.rows[:MOST_ROWS], first=each.title)


def chapters(record: Record, pictures: Pictures, most: int | None) -> Iterator[Chapter]:
    """Yield all of it, one chapter a probe; `most` rows of tables that are not lines of code."""
    for found in probed(record.findings):
        yield Chapter(title=found.probe, sections=tuple(in_full(found, pictures.get(found.probe), most)))


def in_full(found: Finding, picture: str | None, most: int | None) -> Iterator[Section]:
    files = [Span(f".{name}", code=True) for name in found.files]
    yield facts(*facts_of(found.facts).items(), ("Files", listed(files)))
    if picture:
        yield Picture(svg=picture)
    for each in found.tables:
        yield Heading(words=each.title)
        yield drawn(each, each.rows if is_code(each) else each.rows[:most])


def listed(spans: Sequence[Span]) -> Words:
    """Spans with commas between them."""
    return tuple(part for span in spans for part in (", ", span))[1:]


def is_code(found: Found) -> bool:
    """Return whether it is the lines of a function, which are read in their order."""
    return "code" in found.columns


def drawn(found: Found, rows: Sequence[tuple[Any, ...]], first: str | None = None) -> Table:
    """Rows as people read them; `first` is the heading of the first column, where that is its title."""
    columns = [column(found, index) for index in range(len(found.columns))]
    if first is not None:
        columns[0] = Column(name=first, kind=columns[0].kind, whole=columns[0].whole)
    cells = [tuple(cell(*pair) for pair in zip(found.columns, row, strict=True)) for row in rows]
    return table(columns, cells)


def column(found: Found, index: int) -> Column:
    name = found.columns[index]
    number = is_number(name, found.rows, index)
    kind: Kind = "code" if name in CODE else "number" if number else "text"
    width = CODE_WIDTH if name == "code" else None
    return Column(name=heading(name), kind=kind, whole=number or is_code(found), width=width)


def heading(column: str) -> str:
    """Return a column's name in words, without the unit that its cells show."""
    words = column.split("_")
    shown = [SHOWN.get(word, word) for word in words] if len(words) > 1 else words
    return " ".join(filter(None, shown)).replace("env step", "env-step")


def cell(column: str, value: Any) -> str:
    """Return one value, by its column's unit; nothing if there is none."""
    words = column.split("_")
    if value is None:
        return ""
    if isinstance(value, (str, bool)):
        return str(value)
    if "ns" in words:
        return scaled(value, TIMES)
    if "bytes" in words:
        return scaled(value, SIZES)
    if "share" in words:
        return percent(value)
    return f"{value:,}" if isinstance(value, int) else plain_float(value)


def is_number(column: str, rows: tuple[tuple[Any, ...], ...], index: int) -> bool:
    """Return whether a column is drawn flush right."""
    return column != "line" and all(not isinstance(row[index], str) for row in rows)


def facts_of(found: Mapping[str, Any]) -> dict[str, str]:
    """Return the single values of a finding, in words."""
    return {
        heading(name): cell(name, value)
        for name, value in found.items()
        if value is not None and not isinstance(value, (dict, list, tuple))
    }


def resources(used: Resources, record: Record) -> Rows:
    """Yield what a pass of its own used, children of the process among it."""
    peak = used.rss_peak_bytes
    yield "Peak memory", scaled(peak, SIZES) if peak is not None else "unknown"
    if used.rss_mean_bytes is not None:
        curve = sparkline([float(rss) for _, rss in used.rss_over_time], MEMORY_WIDTH)
        yield "Mean memory", f"{scaled(used.rss_mean_bytes, SIZES)}  {curve}"
    cores = record.machine.get("usable_cores") or record.machine["cores"]
    cpu = used.cpu_share
    yield "CPU", f"{percent(cpu)} of one core, of {cores}" if cpu is not None else "unknown"
    yield "GPU", gpus(used) or "none"
    for found in record.findings:
        if found.probe == RESOURCES and found.facts:
            yield from sampled(found)


def gpus(used: Resources) -> str:
    """How busy each GPU was and the most memory in use on it; empty where nobody looked, or there is none."""
    devices = (used.gpu or {}).get("devices", ())
    return "; ".join(
        f"{percent(each['busy_share'])} busy, {scaled(each['peak_bytes'], SIZES)}" for each in devices
    )


def sampled(found: Finding) -> Rows:
    """Yield what the samples of resources have beyond the record's own fields."""
    told = {
        name: cell(name, value) for name, value in found.facts.items() if isinstance(value, (int, float, str))
    }
    for each in found.tables:
        busy = ", ".join(percent(row[1]) for row in each.rows)
        yield "Cores", f"{busy} busy, with whatever else ran on them"
    yield "I/O", f"{told['read_bytes']} read, {told['written_bytes']} written"
    yield "Threads", f"{told['threads']} in {count(found.facts['processes'], 'process')}"
