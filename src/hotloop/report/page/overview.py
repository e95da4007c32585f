"""The overview: every target's latest speed, how it stands, and what needs a look."""

from collections.abc import Mapping, Sequence
from html import escape

from hotloop.core.errors import ExitCode
from hotloop.core.record.record import Record
from hotloop.judge.history import Series
from hotloop.report import html
from hotloop.report.facts import commit_words
from hotloop.report.kinds.notices import left_out
from hotloop.report.page.trend import unit
from hotloop.report.units import count, speed, speed_interval

LINE_WIDTH, LINE_HEIGHT = 120, 26

# Exit codes as a reader in a hurry sees them.
STATES: dict[int, tuple[str, str]] = {
    ExitCode.FINE: ("good", "fine"),
    ExitCode.UNSTABLE: ("warn", "unstable"),
    ExitCode.MISMATCH: ("bad", "mismatch"),
    ExitCode.REGRESSION: ("bad", "slower"),
    ExitCode.CANNOT_TELL: ("warn", "cannot tell"),
}


def draw(series: Sequence[Series], numbers: Mapping[str, int], records: Sequence[Record]) -> str:
    """The latest of every series in a row; `numbers` are what a click on a run opens."""
    if not records:
        return "<p>No record yet: <code>hotloop bench TARGET</code> makes one.</p>"
    by_id = {record.run_id: record for record in records}
    rows = "".join(row(place, each, numbers, by_id) for place, each in enumerate(series))
    heads = ("target", "speed", "95% interval", "level", "", "latest run", "made", "commit", "machine")
    table = html.framed("".join(f"<th>{head}</th>" for head in heads), rows) if rows else ""
    return f"<p>{escape(counted(series, records))}</p>{table}"


def counted(series: Sequence[Series], records: Sequence[Record]) -> str:
    machines = {record.machine["fingerprint"] for record in records}
    told = ", ".join(
        (
            count(len(records), "record"),
            f"{count(len(series), 'speed')} followed",
            count(len(machines), "machine"),
        )
    )
    changed = sum(bool(each.changes) for each in series)
    more = f"; {changed:,} changed {'its' if changed == 1 else 'their'} level" if changed else ""
    return f"{told}{more}; the latest of {when(records[-1])} UTC"


def when(record: Record) -> str:
    return record.created[:16].replace("T", " ")


def row(place: int, series: Series, numbers: Mapping[str, int], records: Mapping[str, Record]) -> str:
    """One speed; a click opens its latest run, one on its line the plot at that place of the trend."""
    latest = series.points[-1]
    record = records[latest.run_ids[-1]]
    metric = record.metrics[series.identity.metric]
    tone, word = state(record)
    cells = (
        f'{escape(series.identity.target)} <small class="dim">{escape(series.identity.kind)}</small>',
        f"<b>{speed(metric.median)}</b> {escape(unit(series.identity.metric))}",
        speed_interval(metric.ci95),
        level(series),
        f'<a href="#trend/{place}">{sparkline([point.median for point in series.points[-60:]])}</a>',
        f'<span class="{tone}">{word}</span>',
        when(record),
        escape(commit_words(latest.commit[:8], dirty=latest.dirty)),
        escape(series.identity.fingerprint),
    )
    opens = numbers[record.run_id]
    return f'<tr data-record="{opens}" tabindex="0">{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def level(series: Series) -> str:
    """The last change of level, for better or worse; that there is none; or how little history there is."""
    if series.changes:
        change = series.changes[-1]
        tone = "bad" if change.ratio < 1 else "good"
        since = escape(series.points[change.index].commit[:8])
        return f'<span class="{tone}">{change.ratio - 1:+.1%} since {since}</span>'
    told = f"{count(series.missing, 'commit')} more to tell" if series.missing else "no change seen"
    return f'<span class="dim">{told}</span>'


def state(record: Record) -> tuple[str, str]:
    """How it ended: the tone and the word."""
    return ("warn", "interrupted") if record.partial else STATES.get(record.exit_code, ("bad", "broken off"))


def sparkline(values: Sequence[float]) -> str:
    """A line without axes; the plot is a tab away."""
    if len(values) < 2:
        return ""
    low, high = min(values), max(values)
    up = (LINE_HEIGHT - 6) / (high - low) if high > low else 0.0
    across = LINE_WIDTH / (len(values) - 1)
    points = " ".join(
        f"{k * across:.1f},{LINE_HEIGHT - 3 - (value - low) * up:.1f}" for k, value in enumerate(values)
    )
    size = f'viewBox="0 0 {LINE_WIDTH} {LINE_HEIGHT}" style="width:{LINE_WIDTH}px;height:{LINE_HEIGHT}px"'
    return f'<svg class="curve" {size}><polyline points="{points}"/></svg>'


def omitted(reasons: Sequence[str]) -> str:
    """What is no record, and why."""
    if not reasons:
        return ""
    told = html.draw(left_out(reasons))
    return f"<details><summary>{count(len(reasons), 'file')} left out</summary>{told}</details>"
