"""A profile's record as a Markdown page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hotloop.core.record import Comparison, Finding, Record, Resources
from hotloop.report import slow
from hotloop.report.breakdown import break_down
from hotloop.report.cells import CODE, SIZES, cell, facts_of, heading, scaled
from hotloop.report.comparisons import outcome_words, ratio_words
from hotloop.report.facts import code_line, machine_line, method_line, path_line, size_line
from hotloop.report.tree import branches, is_tree
from hotloop.report.units import count, percent, plain, ratio_interval, speed, speed_interval
from hotloop.stats.summary import label

PLAYERS = ("hero", "villain")
"""Parameters of worlds in which two play against each other."""
PREVIOUS = "Previous Profile"
MOST_ROWS = 10
NARROW = "\N{NO-BREAK SPACE}"
ELSEWHERE = ("resources",)
"""Findings that have a section of their own form."""

Section = Iterable[str]


def draw_profile(record: Record) -> str:
    """The whole page."""
    lines = [f"# Profile of {record.target.name}, {record.created[:16].replace('T', ' ')} UTC"]
    for title, body in sections(record).items():
        lines += ["", f"## {title}", "", *body]
    return "\n".join(lines) + "\n"


def sections(record: Record) -> dict[str, Section]:
    """What the page says, in its order; what a run has not is left out."""
    timed = {
        "Results": bullets(results(record)),
        "Time Breakdown": breakdown(record),
    }
    return {
        "Configuration": bullets(configuration(record)),
        **(timed if record.method.rounds else {}),
        **slow.sections(record),
        **({"Resources": bullets(resources(record.resources, record))} if record.resources else {}),
        **{found.probe: probed(found) for found in record.findings if found.probe not in ELSEWHERE},
        **({PREVIOUS: bullets(previous(record.comparisons[-1]))} if record.comparisons else {}),
        "Notes": [f"- {note}" for note in notes(record)],
    }


def bullets(facts: Iterable[tuple[str, str]]) -> list[str]:
    return [f"- **{name}**: {value}" for name, value in facts if value]


def configuration(record: Record) -> Iterator[tuple[str, str]]:
    target, method = record.target, record.method
    known = {**target.params, **target.variant}
    if all(player in known for player in PLAYERS):
        yield from ((player.capitalize(), str(known[player])) for player in PLAYERS)
    yield "Policy", method.policy
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


def keys(values: Mapping[str, object]) -> str:
    return ", ".join(f"`{key}={value}`" for key, value in values.items())


def results(record: Record) -> Iterator[tuple[str, str]]:
    """Throughput is that of the clean passes only; a game is an episode that ended in them."""
    games, steps = record.work.resets, record.work.env_steps
    by_games = "games_per_s" in record.metrics
    yield (
        "Throughput",
        metric_line(record, "games_per_s", "games/sec")
        if by_games
        else metric_line(record, "env_steps_per_s", "steps/sec"),
    )
    yield "Avg steps/game", plain(steps / games) if games else "no game ended"
    for name, metric in (("Steps/sec", "env_steps_per_s"), ("Agent-steps/sec", "agent_steps_per_s")):
        yield name, speed(record.metrics[metric].median) if metric in record.metrics else ""
    yield "Total games", f"{games:,}"
    clean_ns = sum(record.values.get("clean_wall_ns", ()))
    yield "Wall time", f"{clean_ns / 1e9:.2f} s clean" if clean_ns else ""
    if record.overhead:
        cost = ratio_interval(record.overhead.ratio, record.overhead.ci95)
        yield "Instrument", f"takes {cost} times as long as the clean passes"
    yield "Unaccounted", unaccounted(record)
    yield "Path", path_line(record)


def metric_line(record: Record, name: str, unit: str) -> str:
    """A speed with its interval and spread."""
    metric = record.metrics.get(name)
    if metric is None:
        return ""
    spread = f"{percent(metric.cv)} {label(metric.cv)}" if metric.cv is not None else "unknown"
    return f"{speed(metric.median)} {unit} {speed_interval(metric.ci95)}, spread {spread}"


def unaccounted(record: Record) -> str:
    """What is in no phase, as a share of all."""
    wall_ns = next((phase.total_ns for phase in record.phases if "/" not in phase.path), 0)
    return percent((record.unaccounted_ns or 0) / wall_ns) if wall_ns else ""


Row = tuple[str, int, str, float, bool]
"""Component, depth, average time, share of the total, and whether it adds up others."""


def time_rows(record: Record) -> Iterator[Row]:
    """Where the time went: the phases of a step, or the tree of a loop."""
    if is_tree(record):
        for branch in branches(record):
            time = f"{branch.us_per_env_step:.3f} µs"
            yield branch.name, branch.depth, time, branch.of_wall, branch.is_whole
        return
    parts = break_down(record)
    for line in parts.lines if parts else ():
        yield line.name, 0, f"{line.us_per_env_step:.3f} µs", line.of_wall, line.is_sum


def breakdown(record: Record) -> Sequence[str]:
    """The table of components; of a loop, its indent shows what is part of what."""
    rows = [
        ("&nbsp;" * 4 * depth + (f"**{name}**" if is_sum else name), time, percent(share))
        for name, depth, time, share, is_sum in time_rows(record)
    ]
    return (
        table(("Component", "Avg Time", "% of Total"), rows) if rows else ["No pair of passes was finished."]
    )


def resources(used: Resources, record: Record) -> Iterator[tuple[str, str]]:
    """What a pass of its own used, children of the process among it."""
    peak = used.rss_peak_bytes
    yield "Peak memory", scaled(peak, SIZES) if peak is not None else "unknown"
    cores = record.machine.get("usable_cores") or record.machine["cores"]
    cpu = used.cpu_share
    yield "CPU", f"{percent(cpu)} of one core, of {cores}" if cpu is not None else "unknown"
    devices = (used.gpu or {}).get("devices", ())
    told = (f"{percent(each['busy_share'])} busy, {scaled(each['peak_bytes'], SIZES)}" for each in devices)
    yield "GPU", "; ".join(told) or "none"
    for found in record.findings:
        if found.probe in ELSEWHERE and found.facts:
            yield from sampled(found)


def sampled(found: Finding) -> Iterator[tuple[str, str]]:
    """What the samples of resources have beyond the record's own fields."""
    facts = {name: cell(name, value) for name, value in found.facts.items() if not isinstance(value, dict)}
    for table in found.tables:
        busy = ", ".join(percent(row[1]) for row in table.rows)
        yield "Cores", f"{busy} busy, with whatever else ran on them"
    yield "I/O", f"{facts['read_bytes']} read, {facts['written_bytes']} written"
    yield "Threads", f"{facts['threads']} in {count(found.facts['processes'], 'process')}"


def probed(found: Finding) -> Iterator[str]:
    """The facts of a finding, the first rows of its tables, and its files."""
    yield from bullets(facts_of(found.facts).items())
    yield from bullets([("Files", ", ".join(f"`.{name}`" for name in found.files))])
    for each in found.tables:
        is_code = "code" in each.columns
        rows = each.rows if is_code else each.rows[:MOST_ROWS]
        cells = ([quoted(*pair) for pair in zip(each.columns, row, strict=True)] for row in rows)
        yield from ("", f"### {each.title}", "")
        yield from table([heading(column) for column in each.columns], cells) if rows else ["None."]


def quoted(column: str, value: object) -> str:
    """A cell; what is part of a program as Markdown shows such, since `<built-in ...>` would be lost."""
    text = cell(column, value)
    indent = NARROW * (len(text) - len(text.lstrip()))  # plain spaces at the beginning would be dropped
    return f"`{indent}{text.lstrip()}`" if text.strip() and column in CODE else text


def previous(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """How this run stands to the one before it, which was not measured in turns with it."""
    yield "Compared with", str(comparison.a.run_id)
    ratio = comparison.ratio
    yield "Times as fast", ratio_words(ratio)
    if ratio is not None:
        yield "Difference", "within noise" if ratio.low <= 1 <= ratio.high else "beyond noise"
    yield "Outcome", f"{outcome_words(comparison)}: {comparison.why}"
    yield "Unlike", "; ".join(comparison.unlike)


def notes(record: Record) -> Iterator[str]:
    if record.method.rounds:
        yield "Avg Time is the mean of one env-step in the instrumented passes; the total is their wall time."
        yield "Throughput is that of clean passes, in turns with the instrumented ones over the same actions."
    if record.findings:
        yield "Each probe looked at a pass of its own, after those; its times include what it cost."
    for notice in record.notices:
        yield f"{notice.text}: {notice.remedy}." if notice.remedy else notice.text


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table whose cells may hold anything but a line break."""
    cells = ([text.replace("|", "\\|") for text in row] for row in (headings, ["---"] * len(headings), *rows))
    return [f"| {' | '.join(row)} |" for row in cells]
