"""Budgets: how each stands since it was held last, and the lines that they draw in a trend."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hotloop.core.project import PROGRAM, Budget
from hotloop.core.record.record import Record
from hotloop.report import html
from hotloop.report.kinds import gate
from hotloop.report.page.plot import Level
from hotloop.report.section import Span, Words
from hotloop.report.units import count, speed

HEADS = ("budget", "of", "metric", "verdict", "now", "change", "limit", "against", "ask")

Speed = tuple[str, str]  # A target as it would be typed, and a metric of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A budget of the project's, or one that a record was held against."""

    name: str
    target: str  # As it would be typed, keys and all
    metric: str
    limit: float | None
    enforced: bool
    latest: Record | None  # What was held against it last
    written: Budget | None  # As the project has it now; None where it has it no more


def known(budgets: Sequence[Budget], records: Iterable[Record]) -> list[Known]:
    """Those of the project in their order, then those that only records know."""
    latest = {record.held.name: record for record in records if record.held}
    written = [of_project(budget, latest.pop(budget.name, None)) for budget in budgets]
    return [*written, *(of_record(name, record) for name, record in sorted(latest.items()))]


def of_project(budget: Budget, latest: Record | None) -> Known:
    return Known(
        name=budget.name,
        target=budget.words.removeprefix(PROGRAM),
        metric=budget.metric,
        limit=budget.limit,
        enforced=budget.enforce,
        latest=latest,
        written=budget,
    )


def of_record(name: str, record: Record) -> Known:
    held = record.held
    assert held is not None
    return Known(
        name=name,
        target=record.target.words,
        metric=held.metric,
        limit=held.limit,
        enforced=held.enforced,
        latest=record,
        written=None,
    )


def draw(found: Sequence[Known], numbers: Mapping[str, int]) -> str:
    """A row a budget; a click opens what was held against it last."""
    if not found:
        return ""
    heads = "".join(f"<th>{head}</th>" for head in HEADS)
    rows = "".join(row(each, numbers) for each in found)
    return f"<h2>{count(len(found), 'budget')}</h2>{html.framed(heads, rows)}"


def row(each: Known, numbers: Mapping[str, int]) -> str:
    opens = f' data-record="{numbers[each.latest.run_id]}" tabindex="0"' if each.latest else ""
    told = "".join(
        f"<td>{html.words(cell)}</td>" for cell in (each.name, each.target, each.metric, *cells(each))
    )
    return f"<tr{opens}>{told}</tr>"


def cells(each: Known) -> Iterator[Words]:
    """Its verdict and what that rests on; or that it waits for its first."""
    held = each.latest.held if each.latest else None
    if held:
        yield from gate.cells(gate.Shown(name=each.name, held=held, record=each.latest))[1:]
        yield held.owner
    elif each.written:
        yield from (Span("not held yet", "dim"), "", "", gate.written(each.written), "", each.written.owner)


def levels(found: Iterable[Known]) -> dict[Speed, list[Level]]:
    """The line of every absolute limit: a floor is enforced, a target is hoped for."""
    lines: dict[Speed, list[Level]] = {}
    for each in found:
        if each.limit is not None:
            word = "floor" if each.enforced else "target"
            level = Level(y=each.limit, label=f"{word} {speed(each.limit)}, {each.name}", kind="goal")
            lines.setdefault((each.target, each.metric), []).append(level)
    return lines
