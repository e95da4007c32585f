"""How single step calls varied, and the slowest of them: tables for the terminal and for a page."""

from collections.abc import Iterator, Sequence
from html import escape

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.core.record import WALL, Again, Record, Slow, SlowStep, Spread
from hotloop.report.facts import code_line, machine_line
from hotloop.report.terminal import fact_table, plain_table
from hotloop.report.units import count, percent

SMALLEST = 0.01
"""Of the wall time; a phase below it has no line."""
SHOWN, SHOWN_APART = 5, 3
"""Slow steps at a terminal, and of those that are kept apart; a page has all."""
SPREAD_HEADINGS = ("phase", "p50", "p95", "p99", "max")
SLOW_HEADINGS = ("#", "step", "env", "took", "times usual", "resets", "garbage", "most of it in")
LEFT = ("phase", "#", "where", "most of it in")
"""Headings of columns that are flush left."""

Row = tuple[str, ...]


def draw_slow(record: Record) -> RenderableType:
    """Both tables, where there is anything to show."""
    slow = record.slow
    if slow is None or not slow.calls:
        return Group()
    spreads = filled(SPREAD_HEADINGS, spread_rows(record))
    parts: list[RenderableType] = ["", heading(spread_title(record)), spreads]
    for title, steps, usual in kinds(slow):
        if steps:
            shown = SHOWN if steps is slow.steps else SHOWN_APART
            rows = [slow_row(step, usual) for step in steps[:shown]]
            parts += [heading(title), filled(SLOW_HEADINGS, rows)]
    about = fact_table()
    for name, line in facts(slow):
        about.add_row(name, line)
    return Group(*parts, about)


def sections(record: Record) -> dict[str, list[str]]:
    """The same as parts of a Markdown page."""
    slow = record.slow
    if slow is None or not slow.calls:
        return {}
    calls = [*markdown_table(SPREAD_HEADINGS, spread_rows(record)), "", f"{spread_title(record)}."]
    lines: list[str] = []
    for title, steps, usual in kinds(slow):
        if steps:
            rows = [slow_row(step, usual) for step in steps]
            lines += [f"**{title}**", "", *markdown_table(SLOW_HEADINGS, rows), ""]
    lines += [f"- {name}: {line}" for name, line in facts(slow)]
    return {"Single Calls": calls, "Slowest Steps": lines}


def page_parts(record: Record) -> Iterator[str]:
    """The same as parts of an HTML page."""
    slow = record.slow
    if slow is None or not slow.calls:
        return
    yield f"<h2>Single Calls</h2>{html_table(SPREAD_HEADINGS, spread_rows(record))}"
    yield f"<p>{escape(spread_title(record))}.</p><h2>Slowest Steps</h2>"
    for title, steps, usual in kinds(slow):
        if steps:
            yield f"<h3>{title}</h3>{html_table(SLOW_HEADINGS, [slow_row(step, usual) for step in steps])}"


def spread_title(record: Record) -> str:
    slow = record.slow
    assert slow is not None
    return (
        f"µs of single calls, {count(slow.calls, 'call')} of {count(num_envs(record), 'env')}; "
        f"off by at most {percent(slow.relative_error)}; - where the calls are too few to say"
    )


def spread_rows(record: Record) -> list[Row]:
    """Calls without a reset by phase, then the whole of those with one."""
    slow = record.slow
    assert slow is not None
    envs = num_envs(record) if any(phase.path == "wall/step" for phase in record.phases) else 1
    rows = [
        spread_row(name_of(phase.path), (phase.p50_ns, phase.p95_ns, phase.p99_ns, phase.max_ns), envs)
        for phase in record.phases
        if phase.share >= SMALLEST and phase.max_ns is not None
    ]
    whole = [spread for spread in slow.reset_spreads if spread.path == WALL]
    return rows + [spread_row("wall, where an episode began", points(spread), 1) for spread in whole]


def points(spread: Spread) -> tuple[float | None, ...]:
    return spread.p50_ns, spread.p95_ns, spread.p99_ns, spread.max_ns


def spread_row(name: str, ns: Sequence[float | None], envs: int) -> Row:
    return (name, *("-" if value is None else micros(value * envs) for value in ns))


def kinds(slow: Slow) -> Iterator[tuple[str, Sequence[SlowStep], float | None]]:
    """The slowest by kind, each with what is usual for it."""
    yield "Slowest steps", slow.steps, slow.typical_ns
    yield "Slowest steps in which an episode began", slow.resets, slow.typical_reset_ns or slow.typical_ns
    yield "Slowest steps of the warm-up", slow.warmup, slow.typical_ns


def slow_row(step: SlowStep, usual_ns: float | None) -> Row:
    return (
        str(step.rank),
        f"{step.step:,}",
        "-" if step.env is None else str(step.env),
        took(step.wall_ns),
        times(step.wall_ns / usual_ns) if usual_ns else "-",
        str(step.resets) if len(step.phases) > 1 else "-",
        f"{took(step.gc_ns)} in {step.collections}" if step.collections else "",
        blamed(step.phases, step.wall_ns),
    )


def blamed(phases: dict[str, int], wall_ns: int) -> str:
    """The innermost phase that has half of a step or more, else the largest; with its share.

    One that holds others which have less is itself to blame: what it does beside them, or waits for.
    """
    inner = {path: ns for path, ns in phases.items() if path != WALL}
    if not inner:
        return "-"
    heavy = [path for path, ns in inner.items() if ns >= wall_ns / 2]
    path = max(heavy, key=lambda each: each.count("/")) if heavy else max(inner, key=inner.__getitem__)
    below = sum(ns for each, ns in inner.items() if each.rpartition("/")[0] == path)
    itself = " itself" if below and below < inner[path] / 2 else ""
    return f"{name_of(path)}{itself} {percent((inner[path] - below * bool(itself)) / wall_ns)}"


def name_of(path: str) -> str:
    """A phase by its own name; what is beside the step by the name a breakdown has for it."""
    return {"wall/python": "Python and binding"}.get(path, path.rpartition("/")[2])


def facts(slow: Slow) -> Iterator[tuple[str, str]]:
    pauses = slow.pauses
    if pauses.collections:
        share = f"{took(pauses.total_ns)} in all, {took(pauses.longest_ns)} the longest"
        yield "garbage", f"collected {count(pauses.collections, 'time')} in the instrumented passes: {share}"
    if slow.missed:
        yield "log", f"had no room for {slow.missed:,} spans and marks, which are in no percentile"
    for step in slow.steps[:1]:
        yield "seed", f"{step.seed}, of all of them"
    yield "again", "hotloop profile --replay-slow RECORD.json # runs one of them again"


def draw_again(record: Record) -> RenderableType:
    """What came of running a slow step again."""
    again = record.again
    assert again is not None, "a replay says what came of it"
    table = fact_table()
    for name, line in again_facts(record, again):
        table.add_row(name, line)
    title = Text.assemble((record.target.name, "bold"), f"  slow step #{again.slow.rank} of {again.run_id}")
    return Group(title, filled(("where", "then", "now"), phase_rows(again)), table)


def phase_rows(again: Again) -> list[Row]:
    """Phases of the step, then and now."""
    then, now = again.slow.phases, again.phases
    longest = {path: max(then.get(path, 0), now.get(path, 0)) for path in {**then, **now}}
    return [
        (
            "  " * path.count("/") + name_of(path),
            *(took(part[path]) if path in part else "-" for part in (then, now)),
        )
        for path, ns in longest.items()
        if ns >= SMALLEST * again.slow.wall_ns
    ]


def again_facts(record: Record, again: Again) -> Iterator[tuple[str, str]]:
    step = again.slow
    env = "" if step.env is None else f", env {step.env}"
    yield "step", f"{step.step:,}{env}, seed {step.seed}"
    yield "then", f"{took(step.wall_ns)}, where a usual one took {took(again.typical_then_ns)}"
    times = ", ".join(took(ns) for ns in again.wall_ns) or "never reached"
    yield "now", f"{times}, where those before it took {took(again.typical_ns)} ({again.how})"
    if step.gc_ns or any(again.gc_ns):
        yield "garbage", f"{took(step.gc_ns)} of it then, {took(max(again.gc_ns, default=0))} now at most"
    yield (
        "run",
        {
            True: "came to the same state as then",
            False: "came to another state than then: the target or the policy is not decided by its seed",
            None: "was not followed to where the state could be compared",
        }[again.same_way],
    )
    for difference in again.unlike:
        yield "unlike", difference
    yield "outcome", again.outcome
    yield "machine", machine_line(record.machine)
    yield "commit", code_line(record.code)


def times(ratio: float) -> str:
    return f"{ratio:,.{0 if ratio >= 100 else 1}f}"


def took(ns: float) -> str:
    """A duration as people read it."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.{1 if ns >= 100 * size else 2}f} {unit}"
    return f"{ns:.0f} ns"


def micros(ns: float) -> str:
    return f"{ns / 1e3:,.2f}"


def num_envs(record: Record) -> int:
    return int(record.target.variant.get("num_envs", 1))


def heading(title: str) -> Text:
    return Text(title, "bold")


def filled(headings: Sequence[str], rows: Sequence[Row]) -> Table:
    table = plain_table()
    for name in headings:
        table.add_column(name, justify="left" if name in LEFT else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def html_table(headings: Sequence[str], rows: Sequence[Row]) -> str:
    """A table whose numbers are flush right."""

    def cells(tag: str, row: Sequence[str]) -> str:
        numbers = [name not in LEFT for name in headings]
        return "".join(
            f'<{tag} class="{"number" if number else ""}">{escape(cell)}</{tag}>'
            for number, cell in zip(numbers, row, strict=True)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{cells("th", headings)}</tr>{body}</table></div>'


def markdown_table(headings: Sequence[str], rows: Sequence[Row]) -> list[str]:
    cells = ([cell.replace("|", "\\|") for cell in row] for row in (headings, ["---"] * len(headings), *rows))
    return [f"| {' | '.join(row)} |" for row in cells]
