"""A profile: at a glance for a terminal, and in full for a page."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hotloop.core.record import Metric, Record
from hotloop.core.record.profile import Table as Found
from hotloop.report.facts import (
    Rows,
    code_line,
    cost_line,
    is_alone,
    machine_line,
    measured,
    method_line,
    path_line,
    play_words,
    size_line,
    spread,
    takes_no_actions,
    title,
)
from hotloop.report.kinds import sim, slow
from hotloop.report.kinds.compare import previous, previous_line
from hotloop.report.kinds.findings import Pictures, chapters, drawn, findings, listed, resources
from hotloop.report.kinds.times import breakdown, shifts
from hotloop.report.section import (
    Chapter,
    Facts,
    Lines,
    Note,
    Page,
    Sections,
    Span,
    Table,
    Words,
    facts,
)
from hotloop.report.units import percent, plain, speed, speed_interval
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
    calls = slow.slow(record) if slow_steps else ()
    asked = [found for found in record.findings if found.probe != SAMPLES]
    return *calls, *timed, *findings(asked)


def glance(record: Record) -> Sections:
    """Return what it rests on, then where the time went and the speed, the last to leave a small screen."""
    about = facts(*measured([record]), *(("previous", previous_line(each)) for each in record.comparisons))
    return title(record), about, breakdown(record), *hot(record), *games(record), clean(record)


def games(record: Record) -> Iterator[Facts]:
    """Who won the games that were profiled, and how fast they were."""
    if not sim.has_games(record):
        return
    used = (
        [row for row in resources(record.resources, record) if row[0] == "Peak memory"]
        if record.resources
        else []
    )
    yield facts(
        ("games", metric_line(record, "games_per_s", "games/s")),
        *sim.wins(record),
        *((name.lower(), text) for name, text in used),
    )


def hot(record: Record) -> Iterator[Table]:
    """Yield the functions below the rows of the tree, where they were looked at."""
    timed = {phase.path.rpartition("/")[2]: phase.share for phase in record.phases}
    for found in record.findings:
        for each in found.tables if found.probe == SAMPLES else ():
            if each.rows:
                rows = [with_one_share(each, row, timed) for row in each.rows[:MOST_HOT]]
                yield drawn(each, rows, first=each.title)


def with_one_share(found: Found, row: tuple[Any, ...], timed: Mapping[str, float]) -> tuple[Any, ...]:
    """Return a function's row with the share of the tree above if it has a row there, which was timed."""
    told = dict(zip(found.columns, row, strict=True))
    share, total = timed.get(str(row[0]).partition(" (")[0]), told.get("total_share")
    if share is None or not total:
        return row
    told |= {"own_share": told["own_share"] * share / total, "total_share": share}
    told |= dict.fromkeys({"own_interval", "total_interval"} & {*told}, "")  # it is timed, not sampled
    return tuple(told.values())


def clean(record: Record) -> Facts:
    """Throughput and the instrument's cost, both from the pairs, and the slowest step in a line."""
    metric = record.metrics.get("agent_steps_per_s")
    words: Words = ""
    if metric:
        unit = "env-steps/s" if is_alone(record) else "agent-steps/s"
        pace = f"{speed(metric.median)} {unit} {speed_interval(metric.ci95)}, "
        words = (pace, spread(record), " (clean passes)")
    return facts(("speed", words), ("instrument", cost_line(record)), ("slowest", slow.in_a_line(record)))


def page(record: Record, pictures: Pictures | None = None, most: int | None = None) -> Page:
    """Return all that is known, in its order; what a run has not is left out.

    Tables of probes have at most `most` rows, unless they are lines of code.
    """
    parts = (sim.times(record),) if sim.has_games(record) else ()
    timed = [
        Chapter(title="Results", sections=(facts(*results(record)),), summary=True),
        Chapter(title="Time Breakdown", sections=(*parts, breakdown(record, is_page=True))),
    ]
    told = (
        Chapter(title="Configuration", sections=(facts(*configuration(record)),), summary=True),
        *(timed if record.method.rounds else ()),
        *slow.chapters(record),
        *used(record),
        *chapters(record, pictures or {}, most),
        *before(record),
        Chapter(title="Notes", sections=(Lines(lines=tuple(notes(record))),)),
    )
    when = f"{record.created[:16].replace('T', ' ')} UTC"
    if sim.has_games(record):
        return Page(title=f"Profile: {when}", when="", chapters=told)
    return Page(title=f"Profile of {record.target.name}", when=when, chapters=told)


def used(record: Record) -> Iterator[Chapter]:
    if record.resources:
        rows = resources(record.resources, record)
        yield Chapter(title="Resources", sections=(facts(*rows),), summary=True)


def before(record: Record) -> Iterator[Chapter]:
    if record.comparisons:
        rows = previous(record.comparisons[-1])
        yield Chapter(title="Previous Profile", sections=(facts(*rows),), summary=True)


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


def keys(values: Mapping[str, object]) -> Words:
    return listed([Span(f"{key}={value}", code=True) for key, value in values.items()])


def results(record: Record) -> Rows:
    """Throughput is that of the clean passes only; a game is an episode that ended in them."""
    games, steps = record.work.resets, record.work.env_steps
    by_games = "games_per_s" in record.metrics
    yield (
        "Throughput",
        games_line(record) if by_games else metric_line(record, "env_steps_per_s", "steps/sec"),
    )
    if sim.has_games(record):
        yield from sim.wins(record)
        lengths = record.values["episode_length"]
        yield "Avg steps/game", plain(sum(lengths) / len(lengths)) if lengths else "no game ended"
    else:
        yield "Avg steps/game", plain(steps / games) if games else "no game ended"
    for name, metric in (("Steps/sec", "env_steps_per_s"), ("Agent-steps/sec", "agent_steps_per_s")):
        yield name, speed(record.metrics[metric].median) if metric in record.metrics else ""
    yield "Total games", f"{games:,}"
    clean_ns = sum(record.values.get("clean_wall_ns", ()))
    yield "Wall time", f"{clean_ns / 1e9:.2f} s clean" if clean_ns else ""
    yield "Instrument", cost_line(record)
    yield "Unaccounted", unaccounted(record)
    yield "Path", path_line(record)


def games_line(record: Record) -> str:
    """Return games per second with two decimals, as owners' scripts read them, with interval and spread."""
    metric = record.metrics["games_per_s"]
    around = "[{:.2f}, {:.2f}]".format(*metric.ci95) if metric.ci95 else "no interval"
    return f"{metric.median:.2f} games/sec {around}, {spread_words(metric)}"


def metric_line(record: Record, name: str, unit: str) -> str:
    """Return a speed with its interval and spread."""
    metric = record.metrics.get(name)
    if metric is None:
        return ""
    return f"{speed(metric.median)} {unit} {speed_interval(metric.ci95)}, {spread_words(metric)}"


def spread_words(metric: Metric) -> str:
    """Return how much a metric varied between rounds."""
    return "spread unknown" if metric.cv is None else f"spread {percent(metric.cv)} {label(metric.cv)}"


def unaccounted(record: Record) -> str:
    """Return what is in no phase, as a share of all."""
    wall_ns = next((phase.total_ns for phase in record.phases if "/" not in phase.path), 0)
    return percent((record.unaccounted_ns or 0) / wall_ns) if wall_ns else ""


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
