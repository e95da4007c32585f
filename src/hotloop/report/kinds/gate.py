"""The gate: one row a budget, then what was gained, what changed, and since when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hotloop.core.project import METRICS, Budget
from hotloop.core.record import Record
from hotloop.core.record.experiments import BudgetResult, Standing
from hotloop.core.record.profile import Finding
from hotloop.report.facts import origin
from hotloop.report.kinds.findings import findings
from hotloop.report.section import (
    Curve,
    Facts,
    Heading,
    Lines,
    Note,
    Section,
    Sections,
    Span,
    Tone,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import SIZES, count, percent, plain_float, scaled

COLUMNS = (
    *text_columns("budget", "verdict", whole=True),
    *number_columns("now", "change", "limit"),
    *text_columns("against"),
)

TONES: Mapping[Standing, Tone] = {
    "met": "good",
    "missed": "bad",
    "expired": "bad",
    "not equal": "bad",
    "cannot tell": "warn",
}

PROBE = "difference"  # What finds out what changed between two commits


@dataclass(frozen=True, slots=True, kw_only=True)
class GateView:
    """One budget as it is shown."""

    name: str
    held: BudgetResult | None
    record: Record | None
    error: str | None = None
    distances: tuple[float, ...] = ()  # To its absolute limit in earlier runs and in this, the oldest first


def gate(rows: Sequence[GateView], *, headline: str, weaker: Sequence[str] = ()) -> Sections:
    """Return the verdict of all, the table, what there is to say of each, and which budgets were weakened."""
    last = next((row.record for row in reversed(rows) if row.record), None)
    told = set[tuple[str, str]]()
    more = [section for row in rows for section in about(row, told)]
    said = tuple(line for row in rows if (line := because(row)))
    tones: dict[str, Tone] = {"green": "good", "red": "bad"}
    # In full: the table has room for a commit's name alone.
    against = dict.fromkeys(row.held.against for row in rows if row.held and row.held.against)
    return (
        Note(
            words=(
                Span(headline, tones.get(headline, "warn"), strong=True),
                f": {count(len(rows), 'budget')}",
            )
        ),
        table(COLUMNS, [cells(row) for row in rows]),
        *((Lines(lines=said),) if said else ()),
        *(Note(words=Span(each, "warn")) for each in weaker),
        *more,
        *((facts(("against", "; ".join(against)), *origin(last)),) if last else ()),
    )


def budget(record: Record) -> Sections:
    """Return one run held against its budget."""
    assert record.held is not None
    row = GateView(name=record.held.name, held=record.held, record=record)
    said = because(row)
    return (
        Heading(words=Span(record.target.words, strong=True)),
        table(COLUMNS, [cells(row)]),
        *((Note(words=said),) if said else ()),
        *about(row, set()),
        facts(*origin(record)),
    )


def cells(row: GateView) -> tuple[Words, ...]:
    held = row.held
    if held is None:
        return row.name, Span("error", "bad", strong=True)
    return (
        held.name,
        verdict(held),
        number(held.value.value, held.unit) if held.value else "",
        change(held),
        limit(held),
        # A commit by its name alone, as git writes it.
        (held.against or "").partition(" (")[0].replace(", before it", "~1"),
    )


def verdict(held: BudgetResult) -> Span:
    """Return its standing; a target that is only hoped for is never bad."""
    if not held.enforced and held.standing in ("met", "missed", "cannot tell"):
        words = {"met": "reached", "missed": "not yet"}.get(held.standing, held.standing)
        return Span(f"{words} (target)", "good" if held.standing == "met" else "dim")
    return Span(held.standing, TONES[held.standing], strong=held.standing != "met")


def because(row: GateView) -> Words:
    """Return why a budget does not stand as it should, whom to ask and what it is there for; else nothing."""
    held = row.held
    if held is None:
        return f"{row.name}: {row.error}"
    if held.standing == "met" or is_hoped(held):
        return ""
    again = f" ({held.runs} runs)" if held.runs > 1 else ""
    whom = f"; ask {held.owner}" if held.owner and held.standing != "expired" else ""
    what = f"; it is there because: {held.reason}" if held.reason else ""
    return f"{held.name}, {held.metric}: {held.why}{again}{whom}{what}"


def is_hoped(held: BudgetResult) -> bool:
    """Return whether its distance is told: of a target to be reached, where something can be told at all."""
    return held.distance is not None and not held.enforced and held.standing != "cannot tell"


def number(value: float, unit: str, *, spelt: bool = True) -> str:
    """Return a value in its unit."""
    if unit == "bytes":
        return scaled(value, SIZES)
    if unit.startswith("of the"):
        return percent(value)
    return f"{plain_float(value)} {unit if spelt else ''}".strip()


def change(held: BudgetResult) -> str:
    if held.change is None:
        return ""
    around = f"[{held.change.low:+.1%}, {held.change.high:+.1%}]" if held.change.samples > 1 else ""
    return f"{held.change.value:+.1%} {around}".strip()


def limit(held: BudgetResult) -> str:
    """Return what it is held against, with the side that is allowed; the unit stands beside the value."""
    if held.limit is not None:
        return f"{'≥' if held.more_is_better else '≤'} {number(held.limit, held.unit, spelt=False)}"
    return f"{'-' if held.more_is_better else '+'}{held.max_change or 0:.1%}"


def about(row: GateView, explained: set[tuple[str, str]]) -> list[Section]:
    """Return what was gained, how far a target is, and what changed where that is not explained already."""
    held, told = row.held, list[Section]()
    if held is None or row.record is None:
        return told
    if held.tighter:
        gained = "got better; to hold it" if held.limit is None else "has room; a tighter line"
        told.append(Note(words=(f"{held.name} {gained}: ", Span(held.tighter, "good", code=True))))
    if is_hoped(held):
        told.append(distance(row, held))
    for found in (found for found in row.record.findings if found.probe == PROBE):
        compared = row.record.target.words, held.against or ""
        told += (
            [Note(words=f"{held.name}: what changed is the same")]
            if compared in explained
            else difference(held, row.record, found)
        )
        explained.add(compared)
    return told


def distance(row: GateView, held: BudgetResult) -> Facts:
    """Return how far a target is, and how that went."""
    far = held.distance or 0.0
    words = f"{percent(abs(far))} {'beyond' if far >= 0 else 'short of'} the target"
    curve = (("over time", Curve(values=row.distances)),) if len(row.distances) > 1 else ()
    return facts((held.name, words), *curve)


def difference(held: BudgetResult, record: Record, found: Finding) -> list[Section]:
    """Return what changed between the two, the largest growth first."""
    title = Heading(
        words=(f"{held.name}: what changed since ", Span(str(held.against), strong=True)), apart=True
    )
    drawn = [name for name in found.files if name.endswith(".svg")]
    files = [Note(words=f"flames: {record.run_id}-{held.name}.{name}, beside the record") for name in drawn]
    return [title, *findings([found])[1:], *files]


def bisected(
    name: str, suspects: Sequence[tuple[str, str]], steps: Sequence[tuple[str, str, str]]
) -> Sections:
    """Return the commit that did it, or those that may have; then each that was tried."""
    if len(suspects) == 1:
        sha, subject = suspects[0]
        words: Words = (f"{name} is missed since ", Span(f"{sha[:12]} {subject}", "bad", strong=True))
    else:
        several = ", ".join(sha[:12] for sha, _ in suspects)
        words = (
            f"{name} is missed since one of ",
            Span(several, "warn", strong=True),
            ": the rest was skipped",
        )
    tried = tuple(f"{sha[:12]} {verdict}: {why}" for sha, verdict, why in steps)
    return Note(words=words), Lines(lines=tried)


def listing(budgets: Sequence[Budget]) -> Sections:
    """Return the budgets as they are written, without measuring anything."""
    columns = text_columns("budget", "target", "metric", "limit", "owner", "expires", "reason")
    rows = [
        (
            each.name,
            each.words,
            each.metric,
            written(each),
            each.owner,
            each.expires.isoformat() if each.expires else "",
            each.reason,
        )
        for each in budgets
    ]
    return (table(columns, rows),)


def written(budget: Budget) -> str:
    better = METRICS[budget.metric.partition(":")[0]].more_is_better
    hoped = "" if budget.enforce else " (target)"
    if budget.limit is not None:
        return f"{'≥' if better else '≤'} {plain_float(budget.limit)}{hoped}"
    return f"{'-' if better else '+'}{budget.max_change or 0:.1%} of {budget.against}{hoped}"
