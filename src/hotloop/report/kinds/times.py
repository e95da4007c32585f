"""Where time went, as a tree of a loop or the phases of a step, and what probes found."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from hotloop.core.record import Record, Resources
from hotloop.core.record.profile import OWN_STEP, PYTHON, STEP, WALL, Finding, read_times
from hotloop.core.record.profile import Table as Found
from hotloop.core.time_tree import HOW, LARGEST, REST, WHOLE, How, TimeTree, caption
from hotloop.report.section import (
    SIZES,
    TIMES,
    Branch,
    Chapter,
    Column,
    Heading,
    Kind,
    Note,
    Picture,
    Rows,
    Section,
    Sections,
    Span,
    Table,
    Tree,
    Words,
    count,
    facts,
    percent,
    plain_float,
    scaled,
    sparkline,
    table,
)

FOLD_BELOW = 0.01  # Of the step; smaller phases share one line
SELF = "self"  # What a row has beyond its children
SMALLEST = 0.0005  # Of the whole; a smaller rest is not worth a line
MOST_MOVING = 4  # Phases named, those that move the most first

# What a column shows of a row, of which the second is its share of the whole.
Cell = Callable[[TimeTree, float], str]


def of_wall(_: TimeTree, share: float) -> str:
    return percent(share)


def calls_of(row: TimeTree, _: float) -> str:
    return f"{row.calls:,}" if row.calls else ""


def draw_times(
    title: str,
    tree: TimeTree,
    columns: Mapping[str, Cell],
    *,
    whole: str = WHOLE,
    largest: str | None = None,
) -> Tree:
    """Draw a tree, the whole first, with a bar for the share of each row; `largest` is the path to mark."""

    def branch(row: TimeTree) -> Branch:
        share = row.total_ns / max(tree.total_ns, 1)
        return Branch(
            name=row.name or whole,
            depth=row.depth,
            values=tuple(cell(row, share) for cell in columns.values()),
            share=share if row.path else None,
            strong=not row.path,
            mark=Span(LARGEST, "warn", strong=True) if row.path == largest else "",
        )

    return Tree(title=title, columns=tuple(columns), branches=tuple(map(branch, tree.walk())))


def draw_account(title: str, tree: TimeTree, columns: Mapping[str, Cell]) -> tuple[Section, ...]:
    """Draw a tree with what is in no part, and below it how it was timed."""
    largest, drawn = tree.largest, tree.with_rests(SMALLEST * tree.total_ns)
    rows = draw_times(title, drawn, columns, largest=largest.path if largest else None)
    return rows, Note(words=Span(caption(tree), "dim"))


def account_of(record: Record) -> TimeTree | None:
    """Return the tree that a run or a training keeps; None if nothing was timed."""
    last: dict[str, How] = {how: how for how in HOW}
    return read_times(record.phases, last.get(record.method.clock.rpartition(" ")[2], "sync"))


def breakdown(record: Record, *, is_page: bool = False) -> Tree | Note:
    """Draw where the time of a profile went: the tree of a loop, or the phases of a step.

    A page shows of each line the time of an env-step, and its share of the whole.
    """
    if is_tree(record):
        return loop_tree(record, is_page=is_page)
    lines = step_lines(record)
    if not lines:
        return Note(words=f"{'No' if is_page else 'no'} pair of passes was finished{'.' * is_page}")
    wall_ns, step_ns = lines[-1].ns, next(line.ns for line in lines if line.is_sum)
    env_steps = next(phase.calls for phase in record.phases if phase.path == WALL)
    agents = record.work.agent_steps / record.work.env_steps
    columns: dict[str, Callable[[StepLine], str]]
    if is_page:
        columns = {"Avg Time": lambda line: f"{line.ns / env_steps / 1e3:.3f} µs"}
    else:
        columns = {
            "µs/env-step": lambda line: f"{line.ns / env_steps / 1e3:.3f}",
            "ns/agent-step": lambda line: f"{line.ns / (env_steps * agents):.1f}",
            "of step": lambda line: percent(line.ns / step_ns) if line.in_step else "",
        }
    branches = tuple(
        Branch(
            name=line.name,
            values=(*(cell(line) for cell in columns.values()), percent(line.ns / wall_ns)),
            share=None if line.is_sum else line.ns / wall_ns,
            strong=line.is_sum,
            end=line.is_sum,
        )
        for line in lines
    )
    share = "% of Total" if is_page else "of wall"
    return Tree(title="Component" if is_page else "phase", columns=(*columns, share), branches=branches)


def loop_tree(record: Record, *, is_page: bool = False) -> Tree:
    """Draw where the time of a loop went; phases of an engine by its own clock, too."""
    tree = loop_rows(record)
    env_steps = record.work.env_steps
    if record.kind == "bench":  # its work is that of the clean rounds, the tree of the instrumented passes
        env_steps = tree.calls * int(record.target.variant.get("num_envs", 1))
    each_us = 1 / max(env_steps, 1) / 1e3
    own_ns = {
        row.path: step.total_ns
        for step in tree.walk()
        if step.name == OWN_STEP and step.total_ns
        for row in step.walk()
    }
    columns: dict[str, Cell]
    if is_page:
        columns = {
            "Avg Time": lambda row, _: f"{row.total_ns * each_us:.3f} µs",
            "% of Total": of_wall,
        }
        return draw_times("Component", tree, columns, whole=WALL)
    columns = {"calls": calls_of, "µs/env-step": lambda row, _: f"{row.total_ns * each_us:.3f}"}
    if own_ns:
        columns["of its step"] = lambda row, _: (
            percent(row.total_ns / own_ns[row.path]) if row.path in own_ns else ""
        )
    return draw_times("where", tree, {**columns, "of wall": of_wall}, whole=WALL)


def loop_rows(record: Record) -> TimeTree:
    """Return a profile's tree, the largest rows first, with what rows have themselves and what is in none."""
    tree = read_times(record.phases)
    assert tree is not None, "a loop has a wall"

    def arranged(row: TimeTree) -> TimeTree:
        rows = tuple(map(arranged, sorted(row.children, key=lambda each: -each.total_ns)))
        if row.path and rows and abs(row.self_ns) > SMALLEST * tree.total_ns:
            rows += (TimeTree(path=f"{row.path}/{SELF}", total_ns=row.self_ns),)
        return replace(row, children=rows)

    rest = TimeTree(path=REST, total_ns=record.unaccounted_ns or 0)
    return replace(tree, children=(*arranged(tree).children, rest))


class StepLine(NamedTuple):
    """One line of a step's phases, and of what the wall has beyond the step."""

    name: str
    ns: int
    in_step: bool = True
    is_sum: bool = False


def step_lines(record: Record) -> tuple[StepLine, ...]:
    """Return phases and unaccounted, which add up to the step; then what adds up to the wall with it.

    The phases come largest first, and small ones share a line. Nothing if nothing was timed.
    """
    tree = read_times(record.phases)
    if tree is None:
        return ()
    step = next(row for row in tree.children if f"{WALL}/{row.path}" == STEP)
    phases = sorted(step.children, key=lambda row: -row.total_ns)
    large = [row for row in phases if row.total_ns >= FOLD_BELOW * step.total_ns]
    small = phases[len(large) :]
    lines = [StepLine(row.name, row.total_ns) for row in large]
    if small:
        name = f"{count(len(small), 'phase')} under {FOLD_BELOW:.0%}"
        lines.append(StepLine(name, sum(row.total_ns for row in small)))
    lines.append(StepLine(REST, record.unaccounted_ns or 0))
    lines.append(StepLine(f"{record.target.impl} step", step.total_ns, is_sum=True))
    for row in sorted(tree.children, key=lambda row: f"{WALL}/{row.path}" == PYTHON):
        if row is not step:
            name = "Python and binding" if f"{WALL}/{row.path}" == PYTHON else row.name
            lines.append(StepLine(name, row.total_ns, in_step=False))
    lines.append(StepLine(WALL, tree.total_ns, in_step=False, is_sum=True))
    return tuple(lines)


def is_tree(record: Record) -> bool:
    """Return whether a profile is of a loop, rather than of the phases of a batch's step."""
    paths = [phase.path for phase in record.phases]
    return WALL in paths and STEP not in paths


def step_shares(record: Record) -> dict[str, float]:
    """Return the share of the step that each phase has; nothing if a record has no step."""
    totals = {phase.path: phase.total_ns for phase in record.phases}
    step_ns = totals.get(STEP, 0)
    inside = [path for path in totals if path.startswith(STEP + "/")] if step_ns else []
    return {path.removeprefix(STEP + "/"): totals[path] / step_ns for path in inside}


def shifts(records: Sequence[Record]) -> str:
    """Return targets, then each phase's share in all of them; empty for fewer than two."""
    tables = [step_shares(record) for record in records if record.phases]
    if len(tables) < 2:
        return ""
    spans = {name: [table.get(name, 0.0) for table in tables] for name in tables[0]}
    moving = sorted(spans, key=lambda name: min(spans[name]) - max(spans[name]))[:MOST_MOVING]
    named = ", ".join(f"{name} {' → '.join(map(percent, spans[name]))}" for name in moving)
    return f"{' → '.join(record.target.name for record in records if record.phases)}: {named}"


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
    sections: list[Section] = []
    for each in found:
        if each.probe == RESOURCES:
            continue
        told = ", ".join(f"{name} {value}" for name, value in facts_of(each.facts).items())
        sections.append(Heading(words=(Span(each.probe, strong=True), f"  {told}"), apart=True))
        for part in each.tables:
            if part.rows and is_code(part):
                sections.append(Note(words=part.title))
                sections.append(finding_table(part, [row for row in part.rows if row[1] is not None]))
            elif part.rows:
                sections.append(finding_table(part, part.rows[:MOST_ROWS], first=part.title))
    return tuple(sections)


def finding_chapters(record: Record, pictures: Pictures, most: int | None) -> Iterator[Chapter]:
    """Yield all of it, one chapter a probe; `most` rows of tables that are not lines of code."""
    for found in record.findings:
        if found.probe == RESOURCES:
            continue
        files = join_spans([Span(f".{name}", code=True) for name in found.files])
        sections: list[Section] = [facts(*facts_of(found.facts).items(), ("Files", files))]
        if picture := pictures.get(found.probe):
            sections.append(Picture(svg=picture))
        for each in found.tables:
            rows = each.rows if is_code(each) else each.rows[:most]
            sections += (Heading(words=each.title), finding_table(each, rows))
        yield Chapter(title=found.probe, sections=tuple(sections))


def join_spans(spans: Sequence[Span]) -> Words:
    """Return spans with commas between them."""
    return tuple(part for span in spans for part in (", ", span))[1:]


def keys(values: Mapping[str, object]) -> Words:
    return join_spans([Span(f"{key}={value}", code=True) for key, value in values.items()])


def is_code(found: Found) -> bool:
    """Return whether it is the lines of a function, which are read in their order."""
    return "code" in found.columns


def finding_table(found: Found, rows: Sequence[tuple[Any, ...]], first: str | None = None) -> Table:
    """Return rows as people read them; `first` is the title of the first column if it has another one."""
    columns = []
    for index, name in enumerate(found.columns):
        number = is_number(name, found.rows, index)
        kind: Kind = "code" if name in CODE else "number" if number else "text"
        title = first if index == 0 else None
        width = CODE_WIDTH if name == "code" and title is None else None
        words = column_words(name) if title is None else title
        columns.append(Column(name=words, kind=kind, whole=number or is_code(found), width=width))
    cells = [tuple(value_words(*pair) for pair in zip(found.columns, row, strict=True)) for row in rows]
    return table(columns, cells)


def column_words(column: str) -> str:
    """Return a column's name in words, without the unit that its cells show."""
    words = column.split("_")
    shown = [SHOWN.get(word, word) for word in words] if len(words) > 1 else words
    return " ".join(filter(None, shown)).replace("env step", "env-step")


def value_words(column: str, value: Any) -> str:
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
        column_words(name): value_words(name, value)
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
        if found.probe != RESOURCES or not found.facts:
            continue
        for each in found.tables:
            busy = ", ".join(percent(row[1]) for row in each.rows)
            yield "Cores", f"{busy} busy, with whatever else ran on them"
        read, written, threads = (
            value_words(name, found.facts[name]) for name in ("read_bytes", "written_bytes", "threads")
        )
        yield "I/O", f"{read} read, {written} written"
        yield "Threads", f"{threads} in {count(found.facts['processes'], 'process')}"


def resource_chapters(record: Record) -> Iterator[Chapter]:
    if record.resources:
        rows = resources(record.resources, record)
        yield Chapter(title="Resources", sections=(facts(*rows),), summary=True)


def gpus(used: Resources) -> str:
    """Return how busy each GPU was and its most memory; empty if not measured, or there is none."""
    devices = (used.gpu or {}).get("devices", ())
    return "; ".join(
        f"{percent(each['busy_share'])} busy, {scaled(each['peak_bytes'], SIZES)}" for each in devices
    )
