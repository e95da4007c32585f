"""All records of a folder as one table, each against the first."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from hotloop.core.errors import InputError
from hotloop.core.notices import Code, notice
from hotloop.core.record import Record
from hotloop.judge.compare import versus
from hotloop.report.comparisons import STYLES, ratio_words
from hotloop.report.shifts import shares
from hotloop.report.terminal import draw_notice, plain_table
from hotloop.report.units import percent, speed, speed_interval

OBSERVATIONS = "observations"


def draw_overview(records: Sequence[Record]) -> RenderableType:
    """One row a record, in the order they were made, then what could not be told and why."""
    table = plain_table("label")
    for heading in ("agent-steps/s", "against the first", "outcome", "observations", "commit"):
        table.add_column(heading, justify="left" if heading == "outcome" else "right", no_wrap=True)
    reasons = dict[str, str]()
    for record in records:
        ratio, outcome, why = against(records[0], record)
        reasons.setdefault(why, title(record))
        table.add_row(title(record), pace(record), ratio, outcome, observations(record), commit(record))
    return Group(table, *(Text(f"{who}: {why}", "dim") for why, who in reasons.items() if why))


def draw_left_out(reasons: Sequence[str]) -> RenderableType:
    """One notice a file that is no record."""
    return Group(*(draw_notice(notice(Code.LEFT_OUT, why=why)) for why in reasons))


def title(record: Record) -> str:
    return record.label or record.run_id


def pace(record: Record) -> str:
    metric = record.metrics.get("agent_steps_per_s")
    return f"{speed(metric.median)} {speed_interval(metric.ci95)}" if metric else "no rounds"


def against(first: Record, record: Record) -> tuple[str, Text, str]:
    """The ratio to the first record, the outcome, and the reason where there is no clear one."""
    if record is first:
        return "", Text("first"), ""
    try:
        comparison = versus(first, record)
    except InputError as error:
        return "", Text("not compared", "yellow"), str(error)
    why = comparison.why if comparison.outcome == "cannot tell" else ""
    return ratio_words(comparison.ratio), Text(comparison.outcome, STYLES[comparison.outcome]), why


def observations(record: Record) -> str:
    """The share of the step that writing observations took; empty where no phases are known."""
    share = shares(record).get(OBSERVATIONS) if record.phases else None
    return "" if share is None else percent(share)


def commit(record: Record) -> str:
    return f"{record.code['commit'][:12]}{' (dirty)' if record.code['dirty'] else ''}"
