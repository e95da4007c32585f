"""A profile: at a glance for a terminal, in full for a page; single slow steps; and profiles of programs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotloop.core.record import Metric, Record
from hotloop.core.record.profile import PYTHON, STEP, WALL, Phase, Slow, SlowStep, Spread, read_times
from hotloop.core.record.profile import Table as Found
from hotloop.judge.case import timed_functions
from hotloop.report.kinds import sim
from hotloop.report.kinds.compare import ratio_words, with_unlike
from hotloop.report.kinds.times import (
    Cell,
    Pictures,
    breakdown,
    calls_of,
    draw_times,
    finding_chapters,
    finding_table,
    findings,
    keys,
    of_wall,
    resource_chapters,
    resources,
    shifts,
)
from hotloop.report.section import (
    CPU,
    SIZES,
    Branch,
    Chapter,
    Column,
    Facts,
    Heading,
    Lines,
    Note,
    Page,
    Rows,
    Section,
    Sections,
    Span,
    Table,
    Tree,
    Words,
    code_line,
    cost_line,
    count,
    facts,
    is_alone,
    machine_line,
    measured,
    method_line,
    number_columns,
    on_core,
    origin,
    path_line,
    percent,
    plain,
    play_words,
    scaled,
    size_line,
    speed,
    speed_interval,
    spread,
    table,
    takes_no_actions,
    text_columns,
    times,
    title,
    took,
)
from hotloop.stats.summary import label

SAMPLES = "samples"  # The probe whose functions stand below the tree
MOST_HOT = 10  # Functions at a glance; a page has all


def profiles(records: Sequence[Record], *, slow_steps: bool = False) -> Sections:
    """Return one after another, then how the shares move from one to the next."""
    each = (section for record in records for section in profile(record, slow_steps=slow_steps))
    moved = shifts(records)
    return (*each, *([Note(words=moved)] if moved else []))


def profile(record: Record, *, slow_steps: bool = False) -> Sections:
    """Return where the time goes, what probes found, and how it stands to the previous one.

    The percentiles and the slowest steps take up a screen of their own: they come where they are asked for.
    """
    timed = glance(record) if record.method.rounds else (*hot(record),)
    return *(slow(record) if slow_steps else ()), *timed, *beside_samples(record)


def beside_samples(record: Record) -> Sections:
    return findings([found for found in record.findings if found.probe != SAMPLES])


def glance(record: Record) -> Sections:
    """Return what it rests on, then where the time went and the speed, the last to leave a small screen."""
    about = list(measured([record]))
    for each in record.comparisons:
        ratio = "" if each.ratio is None else f"{ratio_words(each.ratio)} times as fast: "
        about.append(("previous", (ratio, with_unlike(each), f", {each.why} ({each.a.run_id})")))
    games: Sections = ()
    if sim.has_games(record):  # who won, and how fast they were
        used = resources(record.resources, record) if record.resources else ()
        peak = ((name.lower(), text) for name, text in used if name == "Peak memory")
        speeds = ("games", metric_line(record, "games_per_s", "games/s"))
        games = (facts(speeds, *sim.wins(record), *peak),)
    # Throughput and the instrument's cost are both from the pairs of passes.
    metric, words = record.metrics.get("agent_steps_per_s"), tuple[str | Span, ...]()
    if metric:
        unit = "env-steps/s" if is_alone(record) else "agent-steps/s"
        pace = f"{speed(metric.median)} {unit} {speed_interval(metric.ci95)}, "
        words = (pace, spread(record), " (clean passes)")
    clean = facts(("speed", words), ("instrument", cost_line(record)), ("slowest", in_a_line(record)))
    return title(record), facts(*about), breakdown(record), *hot(record), *games, clean


def hot(record: Record) -> Iterator[Table]:
    """Yield the functions below the rows of the tree, where they were looked at."""
    for found in record.findings:
        for each in found.tables if found.probe == SAMPLES else ():
            if each.rows:
                names = [str(row[0]).partition(" (")[0] for row in each.rows]
                timed = {name: one.share for name, one in timed_functions(record.phases, names).items()}
                rows = [with_one_share(each, row, timed) for row in each.rows[:MOST_HOT]]
                yield finding_table(each, rows, first=each.title)


def with_one_share(found: Found, row: tuple[Any, ...], timed: Mapping[str, float]) -> tuple[Any, ...]:
    """Return a function's row with the share of the tree above if it has a row there, which was timed."""
    told = dict(zip(found.columns, row, strict=True))
    share, total = timed.get(str(row[0]).partition(" (")[0]), told.get("total_share")
    if share is None or not total:
        return row
    told |= {"own_share": told["own_share"] * share / total, "total_share": share}
    told |= dict.fromkeys({"own_interval", "total_interval"} & {*told}, "")  # it is timed, not sampled
    return tuple(told.values())


def page(record: Record, pictures: Pictures | None = None, most: int | None = None) -> Page:
    """Return all that is known of a profile, in its order; what a run has not is left out.

    Tables of probes have at most `most` rows, unless they are lines of code.
    """
    is_program, has_games = bool(record.work.runs), sim.has_games(record)
    about = program_facts(record) if is_program else configuration(record)
    told = [Chapter(title="Configuration", sections=(facts(*about),), summary=True)]
    if is_program:
        told.append(Chapter(title="Runs", sections=(facts(*ran(record)),), summary=True))
        if record.phases:
            told.append(Chapter(title="Time Breakdown", sections=(spans(record),)))
    elif record.method.rounds:
        parts = (sim.times(record),) if has_games else ()
        told.append(Chapter(title="Results", sections=(facts(*results(record)),), summary=True))
        told.append(Chapter(title="Time Breakdown", sections=(*parts, breakdown(record, is_page=True))))
    if not is_program:
        told += slow_chapters(record)
    told += (*resource_chapters(record), *finding_chapters(record, pictures or {}, most))
    if record.comparisons and not is_program:
        rows = facts(*previous(record))
        told.append(Chapter(title="Previous Profile", sections=(rows,), summary=True))
    told.append(Chapter(title="Notes", sections=(Lines(lines=tuple(notes(record))),)))
    when = f"{record.created[:16].replace('T', ' ')} UTC"
    if has_games and not is_program:
        return Page(title=f"Profile: {when}", when="", chapters=tuple(told))
    return Page(title=f"Profile of {record.target.name}", when=when, chapters=tuple(told))


def previous(record: Record) -> Rows:
    """Yield how a profile stands to the one before it, which was not measured in turns with it."""
    comparison = record.comparisons[-1]
    ratio = comparison.ratio
    yield "Compared with", str(comparison.a.run_id)
    yield "Times as fast", ratio_words(ratio)
    if ratio is not None:
        yield "Difference", "within noise" if ratio.low <= 1 <= ratio.high else "beyond noise"
    yield "Outcome", f"{with_unlike(comparison).text}: {comparison.why}"
    yield "Unlike", "; ".join(comparison.unlike)


def configuration(record: Record) -> Rows:
    target, method = record.target, record.method
    if sim.has_games(record):
        hero, _, villain = method.policy.partition(" against ")
        yield "Hero", hero
        yield "Villain", villain
        yield "Games", f"{len(record.values['episode_length']):,}"
    else:
        yield "Policy", play_words(record) if takes_no_actions(record) else method.policy
    yield "Steps", f"{record.work.env_steps:,}" if method.rounds else ""
    yield "Threads", str(method.threads)
    size = f", {size_line(record)}" if method.rounds else ""
    yield "Target", f"{target.name} ({target.impl}{size})"
    yield "Parameters", keys(target.params)
    yield "Variant", keys(target.variant)
    yield "Machine", machine_line(record.machine)
    yield "Commit", code_line(record.code)
    yield "Method", method_line(record) if method.rounds else ""
    yield "Run", record.run_id


def results(record: Record) -> Rows:
    """Yield the speed of the clean passes alone; a game is an episode that ended in them."""
    games, steps = record.work.resets, record.work.env_steps
    metric = record.metrics.get("games_per_s")
    if metric is None:
        yield "Throughput", metric_line(record, "env_steps_per_s", "steps/sec")
    else:  # with two decimals, as owners' scripts read them
        around = "[{:.2f}, {:.2f}]".format(*metric.ci95) if metric.ci95 else "no interval"
        yield "Throughput", f"{metric.median:.2f} games/sec {around}, {spread_words(metric)}"
    if sim.has_games(record):
        yield from sim.wins(record)
        lengths = record.values["episode_length"]
        yield "Avg steps/game", plain(sum(lengths) / len(lengths)) if lengths else "no game ended"
    else:
        yield "Avg steps/game", plain(steps / games) if games else "no game ended"
    for name, of in (("Steps/sec", "env_steps_per_s"), ("Agent-steps/sec", "agent_steps_per_s")):
        yield name, speed(record.metrics[of].median) if of in record.metrics else ""
    yield "Total games", f"{games:,}"
    clean_ns = sum(record.values.get("clean_wall_ns", ()))
    yield "Wall time", f"{clean_ns / 1e9:.2f} s clean" if clean_ns else ""
    yield "Instrument", cost_line(record)
    wall_ns = next((phase.total_ns for phase in record.phases if "/" not in phase.path), 0)
    yield "Unaccounted", percent((record.unaccounted_ns or 0) / wall_ns) if wall_ns else ""
    yield "Path", path_line(record)


def metric_line(record: Record, name: str, unit: str) -> str:
    """Return a speed with its interval and spread; empty if it was not measured."""
    metric = record.metrics.get(name)
    if metric is None:
        return ""
    return f"{speed(metric.median)} {unit} {speed_interval(metric.ci95)}, {spread_words(metric)}"


def spread_words(metric: Metric) -> str:
    """Return how much a metric varied between rounds."""
    return "spread unknown" if metric.cv is None else f"spread {percent(metric.cv)} {label(metric.cv)}"


def notes(record: Record) -> Iterator[str]:
    if record.method.rounds:
        yield "Avg Time is the mean of one env-step in the instrumented passes; the total is their wall time."
        yield "Throughput is that of clean passes, in turns with the instrumented ones over the same actions."
    if sim.has_games(record):
        yield "In the first table encoding has a row of its own; in the tree below it is within env.step."
        yield (
            "Games/s is all env-steps of the clean passes per second over the steps of a game: games that "
            "were cut off at the end count by their steps. Wins and lengths are of whole games alone."
        )
    if record.findings:
        yield "Each probe looked at a pass of its own, after those; its times include what it cost."
    for notice in record.notices:
        yield f"{notice.text}: {notice.remedy}." if notice.remedy else notice.text


def program_profile(record: Record) -> Sections:
    """Return where the time of a program goes, at a glance."""
    about = facts(("program", Span(record.target.name, strong=True)), *origin(record))
    tree = (spans(record),) if record.phases else ()
    return about, *tree, *hot(record), facts(*ran(record)), *beside_samples(record)


def program_facts(record: Record) -> Rows:
    yield "Program", Span(record.target.name, code=True)
    yield from origin(record)
    yield "Run", record.run_id


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
    for which, name in (("", "clean run"), ("watched.", "watched")):
        wall, cpu, rss = (
            record.values.get(f"{which}{each}") for each in ("wall_ns", "cpu_ns", "rss_peak_bytes")
        )
        if wall and cpu and rss:
            share = percent(cpu[0] / wall[0])
            memory = scaled(rss[0], SIZES)
            yield name, f"{took(wall[0])}, CPU {took(cpu[0])} ({share} of one core), peak memory {memory}"


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
    head = Heading(words=Span(calls_line(record, found), strong=True), apart=True)
    few = slowest(found, SHOWN, SHOWN_APART)
    return head, percentiles(record, found), *few, facts(*slow_facts(found))


def in_a_line(record: Record) -> str:
    """Return the slowest step, and how to see more of them; empty if none was looked at."""
    found = record.slow
    if found is None or not found.steps or not found.typical_ns:
        return ""
    step = found.steps[0]
    often = times(step.wall_ns / found.typical_ns)
    usual = f"{often} times the usual {took(found.typical_ns)}{put_off_words(step)}"
    return f"{took(step.wall_ns)}, {usual}; --slow shows more"


def slow_chapters(record: Record) -> tuple[Chapter, ...]:
    """Return all of it, as parts of a page."""
    found = record.slow
    if found is None or not found.calls:
        return ()
    calls = percentiles(record, found), Note(words=f"{calls_line(record, found)}.")
    return (
        Chapter(title="Single Calls", sections=calls),
        Chapter(title="Slowest Steps", sections=(*slowest(found), facts(*slow_facts(found)))),
    )


def slowest(found: Slow, most: int | None = None, most_apart: int | None = None) -> Iterator[Section]:
    """Yield the slowest by kind, each with what is usual for it."""
    usual, usual_reset = found.typical_ns, found.typical_reset_ns or found.typical_ns
    for name, steps, usual_ns in (
        ("Slowest steps", found.steps[:most], usual),
        ("Slowest steps in which an episode began", found.resets[:most_apart], usual_reset),
        ("Slowest steps of the warm-up", found.warmup[:most_apart], usual),
    ):
        if steps:
            yield Heading(words=Span(name, strong=True))
            yield table(STEP_COLUMNS, [slow_row(step, usual_ns) for step in steps])


def calls_line(record: Record, found: Slow) -> str:
    """Return what the percentiles are of, and how far they may be off."""
    return (
        f"µs of single calls, {count(found.calls, 'call')} of {count(num_envs(record), 'env')}; "
        f"off by at most {percent(found.relative_error)}; - where the calls are too few to say"
    )


def num_envs(record: Record) -> int:
    return int(record.target.variant.get("num_envs", 1))


def percentiles(record: Record, found: Slow) -> Table:
    """Return calls without a reset by phase, then the whole of those with one, in µs."""
    envs = num_envs(record) if any(phase.path == STEP for phase in record.phases) else 1
    timed: list[tuple[str, Phase | Spread, int]] = [
        (phase_name(phase.path), phase, envs)
        for phase in record.phases
        if phase.share >= SMALLEST and phase.max_ns is not None
    ]
    whole = (spread for spread in found.reset_spreads if spread.path == WALL)
    timed += [("wall, where an episode began", spread, 1) for spread in whole]
    rows = []
    for name, each, factor in timed:
        points = (each.p50_ns, each.p95_ns, each.p99_ns, each.max_ns)
        rows.append((name, *("-" if ns is None else f"{ns * factor / 1e3:,.2f}" for ns in points)))
    return table((*text_columns("phase", whole=True), *number_columns("p50", "p95", "p99", "max")), rows)


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
    """Say that the thread was preempted, so the code is not the cause."""
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
    return f"{phase_name(path)}{itself} {percent((inner[path] - below * bool(itself)) / wall_ns)}"


def phase_name(path: str) -> str:
    """Return a phase by its own name; what is beside the step by the name a breakdown has for it."""
    return {PYTHON: "Python and binding"}.get(path, path.rpartition("/")[2])


def slow_facts(found: Slow) -> Rows:
    """Yield garbage, what was missed, the seed, and how to see one of them again."""
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
    """Return what came of running a slow step again: its phases then and now, and what else is known."""
    found = record.again
    assert found is not None, "a replay says what came of it"
    then, now = found.slow.phases, found.phases
    longest = {path: max(then.get(path, 0), now.get(path, 0)) for path in {**then, **now}}
    lines = tuple(
        Branch(
            name=phase_name(path),
            depth=path.count("/"),
            values=tuple(took(part[path]) if path in part else "-" for part in (then, now)),
        )
        for path, ns in longest.items()
        if ns >= SMALLEST * found.slow.wall_ns
    )
    name = Span(record.target.name, strong=True)
    head = Heading(words=(name, f"  slow step #{found.slow.rank} of {found.run_id}"))
    return head, Tree(title="where", columns=("then", "now"), branches=lines), again_facts(record)


def again_facts(record: Record) -> Facts:
    """Return how long the step took then and now, and whether it came to the same state."""
    found = record.again
    assert found is not None
    step = found.slow
    env = "" if step.env is None else f", env {step.env}"
    each_time = ", ".join(took(ns) for ns in found.wall_ns) or "never reached"
    garbage = ""
    if step.gc_ns or any(found.gc_ns):
        garbage = f"{took(step.gc_ns)} of it then, {took(max(found.gc_ns, default=0))} now at most"
    return facts(
        ("step", f"{step.step:,}{env}, seed {step.seed}"),
        ("then", f"{took(step.wall_ns)}, where a usual one took {took(found.typical_then_ns)}"),
        ("now", f"{each_time}, where those before it took {took(found.typical_ns)} ({found.how})"),
        ("garbage", garbage),
        ("run", SAME_WAY[found.same_way]),
        *(("unlike", difference) for difference in found.unlike),
        ("outcome", found.outcome),
        *origin(record),
    )
