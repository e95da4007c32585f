"""A profile's record as a Markdown page."""

from collections.abc import Iterable, Iterator, Sequence

from hotloop.core.record import Record
from hotloop.report import slow
from hotloop.report.breakdown import break_down
from hotloop.report.facts import code_line, machine_line, method_line, path_line, size_line
from hotloop.report.tree import branches, is_tree
from hotloop.report.units import percent, ratio_interval, speed, speed_interval
from hotloop.stats.summary import label


def draw_profile(record: Record) -> str:
    """The whole page."""
    sections = {
        "Configuration": table(("Setting", "Value"), configuration(record)),
        "Results": table(("Metric", "Value"), results(record)),
        "Time Breakdown": breakdown(record),
        **slow.sections(record),
        "Notes": [f"- {note}" for note in notes(record)],
    }
    lines = [f"# Profile of {record.target.name}, {record.created[:16].replace('T', ' ')} UTC"]
    for heading, body in sections.items():
        lines += ["", f"## {heading}", "", *body]
    return "\n".join(lines) + "\n"


def configuration(record: Record) -> Iterator[tuple[str, str]]:
    yield "Target", f"{record.target.name} ({record.target.impl}, {size_line(record)})"
    yield "Parameters", ", ".join(f"`{key}={value}`" for key, value in record.target.params.items())
    yield "Variant", ", ".join(f"`{key}={value}`" for key, value in record.target.variant.items())
    yield "Machine", machine_line(record.machine)
    yield "Commit", code_line(record.code)
    yield "Method", method_line(record)
    yield "Run", record.run_id


def results(record: Record) -> Iterator[tuple[str, str]]:
    """Throughput is that of the clean passes only."""
    for name, metric in record.metrics.items():
        if name.endswith("_per_s"):
            spread = f"{percent(metric.cv)} {label(metric.cv)}" if metric.cv is not None else "unknown"
            yield f"{name} (clean)", f"{speed(metric.median)} {speed_interval(metric.ci95)}, spread {spread}"
    if record.overhead:
        yield "Cost of the instrument", ratio_interval(record.overhead.ratio, record.overhead.ci95)
    yield "Path", path_line(record)


def breakdown(record: Record) -> Sequence[str]:
    if is_tree(record):
        return tree(record)
    parts = break_down(record)
    if parts is None:
        return ["No pair of passes was finished."]
    rows = (
        (
            f"**{line.name}**" if line.is_sum else line.name,
            f"{line.us_per_env_step:.3f} µs",
            percent(line.of_wall),
        )
        for line in parts.lines
    )
    return table(("Component", "Avg Time", "% of Total"), rows)


def tree(record: Record) -> Sequence[str]:
    """The table of a loop: its indent shows what is part of what."""
    rows = (
        (
            "&nbsp;" * 4 * branch.depth + branch.name,
            "" if branch.calls is None else f"{branch.calls:,}",
            f"{branch.us_per_env_step:.3f} µs",
            percent(branch.of_wall),
        )
        for branch in branches(record)
    )
    return table(("Component", "Calls", "Avg Time", "% of Total"), rows)


def notes(record: Record) -> Iterator[str]:
    yield "Avg Time is the mean of one env-step in the instrumented passes; the total is their wall time."
    yield "Throughput is that of clean passes, interleaved with the instrumented ones over the same actions."
    for notice in record.notices:
        yield f"{notice.text}: {notice.remedy}." if notice.remedy else notice.text


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table whose cells may hold anything but a line break."""
    cells = ([cell.replace("|", "\\|") for cell in row] for row in (headings, ["---"] * len(headings), *rows))
    return [f"| {' | '.join(row)} |" for row in cells]
