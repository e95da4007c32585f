"""What is held against a limit or a reference: budgets of the gate, curves of a soak, and validations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import expm1

from hotloop.core.project import METRICS, Budget
from hotloop.core.record import Record
from hotloop.core.record.experiments import (
    GPU_BYTES,
    HEAP_BYTES,
    OPEN_FILES,
    PRINTED,
    RSS_BYTES,
    RUNNING,
    SLOWER,
    SLOWER_IN,
    SPEED,
    BudgetResult,
    Soak,
    Standing,
    Trend,
)
from hotloop.report.charts import Panel, PanelCurve
from hotloop.report.kinds.times import findings
from hotloop.report.section import (
    SIZES,
    Curve,
    Heading,
    Lines,
    Note,
    Section,
    Sections,
    Span,
    Tone,
    Words,
    count,
    facts,
    number_columns,
    origin,
    percent,
    plain,
    plain_float,
    scaled,
    sparkline,
    speed,
    table,
    text_columns,
)

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
    head = Span(headline, tones.get(headline, "warn"), strong=True)
    # In full: the table has room for a commit's name alone.
    against = dict.fromkeys(row.held.against for row in rows if row.held and row.held.against)
    return (
        Note(words=(head, f": {count(len(rows), 'budget')}")),
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
    moved = ""
    if held.change is not None:
        around = f" [{held.change.low:+.1%}, {held.change.high:+.1%}]" if held.change.samples > 1 else ""
        moved = f"{held.change.value:+.1%}{around}"
    # What it is held against, with the side that is allowed; the unit stands beside the value.
    limit = f"{'-' if held.more_is_better else '+'}{held.max_change or 0:.1%}"
    if held.limit is not None:
        limit = f"{'≥' if held.more_is_better else '≤'} {number(held.limit, held.unit, spelt=False)}"
    # A commit by its name alone, as git writes it.
    against = (held.against or "").partition(" (")[0].replace(", before it", "~1")
    now = number(held.value.value, held.unit) if held.value else ""
    return held.name, verdict(held), now, moved, limit, against


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


def about(row: GateView, explained: set[tuple[str, str]]) -> Iterator[Section]:
    """Yield what was gained, how far a target is, and what changed where that is not explained already."""
    held, record = row.held, row.record
    if held is None or record is None:
        return
    if held.tighter:
        gained = "got better; to hold it" if held.limit is None else "has room; a tighter line"
        yield Note(words=(f"{held.name} {gained}: ", Span(held.tighter, "good", code=True)))
    if is_hoped(held):
        far = held.distance or 0.0
        words = f"{percent(abs(far))} {'beyond' if far >= 0 else 'short of'} the target"
        curve = (("over time", Curve(values=row.distances)),) if len(row.distances) > 1 else ()
        yield facts((held.name, words), *curve)
    for found in (found for found in record.findings if found.probe == PROBE):
        compared = record.target.words, held.against or ""
        if compared in explained:
            yield Note(words=f"{held.name}: what changed is the same")
            continue
        explained.add(compared)
        since = Span(str(held.against), strong=True)
        yield Heading(words=(f"{held.name}: what changed since ", since), apart=True)
        yield from findings([found])[1:]
        for name in found.files:
            if name.endswith(".svg"):
                yield Note(words=f"flames: {record.run_id}-{held.name}.{name}, beside the record")


def bisected(
    name: str, suspects: Sequence[tuple[str, str]], steps: Sequence[tuple[str, str, str]]
) -> Sections:
    """Return the commit that did it, or those that may have; then each that was tried."""
    if len(suspects) == 1:
        sha, subject = suspects[0]
        words: Words = (f"{name} is missed since ", Span(f"{sha[:12]} {subject}", "bad", strong=True))
    else:
        several = Span(", ".join(sha[:12] for sha, _ in suspects), "warn", strong=True)
        words = (f"{name} is missed since one of ", several, ": the rest was skipped")
    tried = tuple(f"{sha[:12]} {verdict}: {why}" for sha, verdict, why in steps)
    return Note(words=words), Lines(lines=tried)


def listing(budgets: Sequence[Budget]) -> Sections:
    """Return the budgets as they are written, without measuring anything."""
    columns = text_columns("budget", "target", "metric", "limit", "owner", "expires", "reason")
    rows = []
    for each in budgets:
        expires = each.expires.isoformat() if each.expires else ""
        rows.append(
            (each.name, each.words, each.metric, written(each), each.owner, expires, each.reason),
        )
    return (table(columns, rows),)


def written(budget: Budget) -> str:
    better = METRICS[budget.metric.partition(":")[0]].more_is_better
    hoped = "" if budget.enforce else " (target)"
    if budget.limit is not None:
        return f"{'≥' if better else '≤'} {plain_float(budget.limit)}{hoped}"
    return f"{'-' if better else '+'}{budget.max_change or 0:.1%} of {budget.against}{hoped}"


NAMES = {
    SLOWER: "a step against a new instance's",
    SPEED: "env-steps/s, as they were",
    RSS_BYTES: "resident memory",
    HEAP_BYTES: "native heap",
    GPU_BYTES: "GPU memory",
    OPEN_FILES: "open files",
    RUNNING: "threads",
}

FAR = 1e299  # What has no bound


def soak(record: Record) -> Sections:
    """Return the verdict in a line, a row a curve, and what it rests on."""
    found, rows = record.soak, list[tuple[Words, ...]]()
    assert found is not None
    for each in found.trends:
        name = Span(name_of(each), "bad", strong=True) if each.alarm else name_of(each)
        values = [value for _, value in each.curve]
        line = sparkline(values[:: -(-len(values) // 40)])
        rows.append((name, amount(each, each.slope), interval(each), amount(each, each.growth), line))
    columns = (*text_columns("what"), *number_columns("a minute", "99.99% interval", "in all"))
    # What new instances leave, which the soak made to compare with, is no leak of the run, but theirs.
    left = tuple(
        f"{name_of(each)} {amount(each, each.growth)}: left by {count(found.fresh, 'new instance')}, "
        "made and closed to compare with, and not by steps"
        for each in found.trends
        if each.by_new
    )
    ended = f"; ended early: {found.ended}" if found.ended else ""
    steps = f", {found.env_steps:,} env-steps" if found.env_steps else ""
    fresh = f", in turns with {count(found.fresh, 'new instance')}" if found.fresh else ""
    looks = f"{count(found.looks, 'look')}, the first {found.cut} not judged"
    return (
        Heading(words=Span(record.target.words, strong=True)),
        Note(words=headline(found)),
        table((*columns, *text_columns("over time", whole=True)), rows),
        *([Lines(lines=tuple(Span(each, "warn") for each in left))] if left else []),
        facts(*origin(record), ("method", f"{found.seconds:,.0f} s{steps}, {looks}{fresh}{ended}")),
    )


def headline(found: Soak) -> Span:
    """Return what rises, or that nothing does."""
    if not found.enough:
        rest = f": {found.ended}" if found.ended else "; soak it for longer"
        return Span(f"cannot tell: {count(found.looks, 'look')} cannot be judged{rest}", "warn")
    if not found.alarms:
        return Span("nothing grows", "good", strong=True)
    told = "; ".join(f"{name_of(each)} {rise_words(each)}" for each in found.alarms)
    return Span(f"it does not stay as it was: {told}", "bad", strong=True)


def rise_words(each: Trend) -> str:
    return f"{amount(each, each.slope)} a minute {interval(each)}"


def interval(each: Trend) -> str:
    low, high = ("no bound" if abs(end) > FAR else amount(each, end) for end in (each.low, each.high))
    return f"[{low}, {high}]"


def name_of(each: Trend) -> str:
    if each.name.startswith(SLOWER_IN):
        return f"{each.name.removeprefix(SLOWER_IN)}, the same"
    return NAMES.get(each.name) or each.name.removeprefix(PRINTED)


def is_slower(each: Trend) -> bool:
    """Return whether its curve is of logs of how much slower something is than a new instance's."""
    return each.name == SLOWER or each.name.startswith(SLOWER_IN)


def amount(each: Trend, value: float) -> str:
    """Return a rise in the unit of its curve."""
    sign = "+" if value > 0 else ""
    if is_slower(each):
        return f"{expm1(min(value, 100.0)):+.2%}"
    if each.name.endswith("_bytes"):
        return sign + scaled(value, SIZES)
    if each.name == SPEED:
        return f"{'+' if value >= 0 else '-'}{speed(abs(value))}"
    return f"{sign}{plain(value)}"


def soak_panels(record: Record) -> tuple[Panel, ...]:
    """Return every curve in a panel of its own, its unit in the title where the name does not say it."""
    assert record.soak is not None
    panels = []
    for each in record.soak.trends:
        if len(each.curve) > 1:
            unit = ", log of the ratio" if is_slower(each) else ""
            if each.name.endswith("_bytes"):
                unit = ", bytes"
            curve = PanelCurve(name=rise_words(each), points=each.curve, joined=True)
            panels.append(
                Panel(title=f"{name_of(each)}{unit}", across="seconds", powers=False, curves=(curve,))
            )
    return tuple(panels)
