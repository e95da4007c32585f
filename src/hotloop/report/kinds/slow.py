"""How single step calls varied, the slowest of them, and what came of running one again."""

from collections.abc import Iterator, Sequence

from hotloop.core.record import Record
from hotloop.core.record.profile import PYTHON, STEP, WALL, RerunResult, Slow, SlowStep, Spread
from hotloop.report.facts import Rows, origin
from hotloop.report.section import (
    Branch,
    Chapter,
    Column,
    Heading,
    Note,
    Section,
    Sections,
    Span,
    Table,
    Tree,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import count, percent, times, took

SMALLEST = 0.01  # Of the wall time; a phase below it has no line
SHOWN, SHOWN_APART = 5, 3  # Slow steps at a glance, and of those that are kept apart; a page has all
STEP_COLUMNS: tuple[Column, ...] = (
    *text_columns("#", whole=True),
    *number_columns("step"),
    *number_columns("env", wide=True),
    *number_columns("took", "times usual"),
    *number_columns("resets", "garbage", wide=True),
    *text_columns("most of it in", whole=True),
)
SAME_WAY = {
    True: "came to the same state as then",
    False: "came to another state than then: the target or the policy is not decided by its seed",
    None: "was not followed to where the state could be compared",
}


def slow(record: Record) -> Sections:
    """Return the percentiles and the slowest few, where there is anything to show."""
    found = record.slow
    if found is None or not found.calls:
        return ()
    title = Heading(words=Span(spread_line(record, found), strong=True), apart=True)
    return title, spreads(record, found), *slowest(found, SHOWN, SHOWN_APART), facts(*about(found))


def in_a_line(record: Record) -> str:
    """Return the slowest step, and how to see more of them; empty if none was looked at."""
    found = record.slow
    if found is None or not found.steps or not found.typical_ns:
        return ""
    step = found.steps[0]
    often = times(step.wall_ns / found.typical_ns)
    usual = f"{often} times the usual {took(found.typical_ns)}{put_off_words(step)}"
    return f"{took(step.wall_ns)}, {usual}; --slow shows more"


def chapters(record: Record) -> tuple[Chapter, ...]:
    """Return all of it, as parts of a page."""
    found = record.slow
    if found is None or not found.calls:
        return ()
    calls = spreads(record, found), Note(words=f"{spread_line(record, found)}.")
    return (
        Chapter(title="Single Calls", sections=calls),
        Chapter(title="Slowest Steps", sections=(*slowest(found), facts(*about(found)))),
    )


def slowest(found: Slow, most: int | None = None, most_apart: int | None = None) -> Iterator[Section]:
    """Yield the slowest by kind, each with what is usual for it."""
    usual, usual_reset = found.typical_ns, found.typical_reset_ns or found.typical_ns
    yield from of_kind("Slowest steps", found.steps[:most], usual)
    yield from of_kind("Slowest steps in which an episode began", found.resets[:most_apart], usual_reset)
    yield from of_kind("Slowest steps of the warm-up", found.warmup[:most_apart], usual)


def of_kind(title: str, steps: Sequence[SlowStep], usual_ns: float | None) -> Iterator[Section]:
    if steps:
        yield Heading(words=Span(title, strong=True))
        yield table(STEP_COLUMNS, [slow_row(step, usual_ns) for step in steps])


def spread_line(record: Record, found: Slow) -> str:
    """Return what the percentiles are of, and how far they may be off."""
    return (
        f"µs of single calls, {count(found.calls, 'call')} of {count(num_envs(record), 'env')}; "
        f"off by at most {percent(found.relative_error)}; - where the calls are too few to say"
    )


def spreads(record: Record, found: Slow) -> Table:
    """Calls without a reset by phase, then the whole of those with one."""
    envs = num_envs(record) if any(phase.path == STEP for phase in record.phases) else 1
    rows = [
        spread_row(name_of(phase.path), (phase.p50_ns, phase.p95_ns, phase.p99_ns, phase.max_ns), envs)
        for phase in record.phases
        if phase.share >= SMALLEST and phase.max_ns is not None
    ]
    whole = [spread for spread in found.reset_spreads if spread.path == WALL]
    rows += [spread_row("wall, where an episode began", points(spread), 1) for spread in whole]
    return table((*text_columns("phase", whole=True), *number_columns("p50", "p95", "p99", "max")), rows)


def points(spread: Spread) -> tuple[float | None, ...]:
    return spread.p50_ns, spread.p95_ns, spread.p99_ns, spread.max_ns


def spread_row(name: str, ns: Sequence[float | None], envs: int) -> tuple[Words, ...]:
    return (name, *("-" if value is None else f"{value * envs / 1e3:,.2f}" for value in ns))


def slow_row(step: SlowStep, usual_ns: float | None) -> tuple[Words, ...]:
    return (
        str(step.rank),
        f"{step.step:,}",
        "-" if step.env is None else str(step.env),
        took(step.wall_ns),
        times(step.wall_ns / usual_ns) if usual_ns else "-",
        str(step.resets) if len(step.phases) > 1 else "-",
        f"{took(step.gc_ns)} in {step.collections}" if step.collections else "",
        slow_env(step.phases, step.wall_ns) + put_off_words(step),
    )


def put_off_words(step: SlowStep) -> str:
    """Say that the system gave its core to somebody else, for which no code is to blame."""
    return f", put off its core {count(step.put_off, 'time')}" if step.put_off else ""


def slow_env(phases: dict[str, int], wall_ns: int) -> str:
    """Return the innermost phase that has half of a step or more, else the largest; with its share.

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
    """Return a phase by its own name; what is beside the step by the name a breakdown has for it."""
    return {PYTHON: "Python and binding"}.get(path, path.rpartition("/")[2])


def about(found: Slow) -> Rows:
    """Garbage, what was missed, the seed, and how to see one of them again."""
    pauses = found.pauses
    if pauses.collections:
        share = f"{took(pauses.total_ns)} in all, {took(pauses.longest_ns)} the longest"
        yield "garbage", f"collected {count(pauses.collections, 'time')} in the instrumented passes: {share}"
    lost = sum(bool(step.put_off) for step in found.steps)
    if lost:
        which = f"{lost} of the {len(found.steps)} slowest steps were put off their core for somebody else"
        yield "scheduler", f"{which}: that is the machine's doing and not the code's"
    if found.missed:
        yield "log", f"had no room for {found.missed:,} spans and marks, which are in no percentile"
    for step in found.steps[:1]:
        yield "seed", f"{step.seed}, of all of them"
    yield "again", "hotloop profile --replay-slow RECORD.json # runs one of them again"


def again(record: Record) -> Sections:
    """Return what came of running a slow step again."""
    found = record.again
    assert found is not None, "a replay says what came of it"
    name = Span(record.target.name, strong=True)
    title = Heading(words=(name, f"  slow step #{found.slow.rank} of {found.run_id}"))
    return title, then_and_now(found), facts(*again_facts(record, found))


def then_and_now(found: RerunResult) -> Tree:
    """Phases of the step, then and now."""
    then, now = found.slow.phases, found.phases
    longest = {path: max(then.get(path, 0), now.get(path, 0)) for path in {**then, **now}}
    lines = [
        Branch(
            name=name_of(path),
            depth=path.count("/"),
            values=tuple(took(part[path]) if path in part else "-" for part in (then, now)),
        )
        for path, ns in longest.items()
        if ns >= SMALLEST * found.slow.wall_ns
    ]
    return Tree(title="where", columns=("then", "now"), branches=tuple(lines))


def again_facts(record: Record, found: RerunResult) -> Rows:
    step = found.slow
    env = "" if step.env is None else f", env {step.env}"
    yield "step", f"{step.step:,}{env}, seed {step.seed}"
    yield "then", f"{took(step.wall_ns)}, where a usual one took {took(found.typical_then_ns)}"
    each_time = ", ".join(took(ns) for ns in found.wall_ns) or "never reached"
    yield "now", f"{each_time}, where those before it took {took(found.typical_ns)} ({found.how})"
    if step.gc_ns or any(found.gc_ns):
        yield "garbage", f"{took(step.gc_ns)} of it then, {took(max(found.gc_ns, default=0))} now at most"
    yield "run", SAME_WAY[found.same_way]
    for difference in found.unlike:
        yield "unlike", difference
    yield "outcome", found.outcome
    yield from origin(record)


def num_envs(record: Record) -> int:
    return int(record.target.variant.get("num_envs", 1))
