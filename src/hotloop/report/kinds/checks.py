"""What is held against a limit or a reference: budgets of the gate, curves of a soak, and validations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import expm1

from hotloop.core.project import METRICS, Budget
from hotloop.core.record import Record
from hotloop.core.record.comparison import (
    STEPS,
    AdoptionChecklist,
    BundleFacts,
    Difference,
    Statistical,
    Validation,
    field_words,
)
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
from hotloop.report import section
from hotloop.report.charts import Panel, PanelCurve
from hotloop.report.kinds.bench import ratio_words
from hotloop.report.kinds.times import findings
from hotloop.report.section import (
    SIZES,
    Curve,
    Heading,
    Lines,
    Note,
    Rows,
    Section,
    Sections,
    Span,
    Table,
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


EQUAL = Span("equal", "good", strong=True)
UNEQUAL = Span("NOT EQUAL", "bad", strong=True)
BROKEN_OFF = Span("broken off", "warn", strong=True)


def validations(records: Sequence[Record]) -> Sections:
    """Return one row a target, then what differs, how it was played, and the facts beside it."""
    columns = (
        *text_columns("target", "against"),
        *text_columns("", whole=True),
        *number_columns("comparisons", "mismatches", "reference takes"),
    )
    first = records[0]
    return (
        table(columns, [row(record) for record in records]),
        *(part for record in records for part in first_difference(record)),
        *([parts(first)] if len(records) == 1 else []),
        section.facts(("fields", field_words(validation_of(first).fields) or "none"), *origin(first)),
    )


def row(record: Record) -> tuple[Words, ...]:
    checked = validation_of(record)
    word = EQUAL
    if checked.mismatches or record.partial:
        word = UNEQUAL if checked.mismatches else BROKEN_OFF
    elif checked.envs_not_compared:
        word = Span(f"cannot tell: {count(checked.envs_not_compared, 'env')} not compared", "warn")
    ratio = f"{checked.timing_ratio:.3g} times as long" if checked.timing_ratio else "not timed"
    numbers = (f"{checked.comparisons:,}", f"{checked.mismatches:,}", ratio)
    return record.target.name, checked.against or "", word, *numbers


def validation_of(record: Record) -> Validation:
    assert record.validation is not None
    return record.validation


def first_difference(record: Record) -> tuple[Section, ...]:
    """Return the first difference, and how to see it again; nothing if there is none."""
    checked = validation_of(record)
    if checked.difference is None:
        return ()
    again = f"hotloop validate --replay {checked.bundle}" if checked.bundle else ""
    title = Heading(words=(Span(record.target.name, strong=True), "  the first difference"), apart=True)
    return title, section.facts(*place(checked.difference), ("again", again))


def place(found: Difference) -> Rows:
    """Yield everything that is known of one place."""
    when = f"{found.step}" + (", after a reset in the middle" if found.after_reset else "")
    yield "step", when if found.step else "0, the first reset"
    yield "env", "all" if found.env is None else str(found.env)
    yield "agent", found.agent or "of no one agent"
    yield "field", f"{found.field}{list(found.index)}"
    yield "reference", found.a
    yield "candidate", found.b
    yield "tick before", found.before or "not known"


def parts(record: Record) -> Table:
    """Return what was played, and in which ways."""
    columns = (
        *text_columns("tape"),
        *number_columns("envs", "threads", "steps of each", "comparisons"),
        *text_columns("compared", whole=True),
    )
    checked = validation_of(record)
    rows = [
        (
            part.tape,
            *(f"{number:,}" for number in (part.num_envs, part.threads, part.steps, part.comparisons)),
            "by digest" if part.by_digest else f"every step, {checked.mode}",
        )
        for part in checked.parts
    ]
    return table(columns, rows)


def replay(bundle: BundleFacts, record: Record, from_state: bool | None) -> Sections:
    """Say whether a bundle's difference came again; `from_state` is whether it did from the last state."""
    checked, kept = validation_of(record), bundle.difference
    seen = checked.difference
    if seen is None:
        gone = Span("does not differ any more", "good", strong=True)
        return (Note(words=(gone, f": it was {kept}")),)
    where = "in the same place" if str(seen) == str(kept) else f"in another place; it was {kept}"
    head = Note(words=(Span("differs again", "bad", strong=True), f", {where}"))
    differs = {None: "", True: "differs too", False: "does not differ"}[from_state]
    return head, section.facts(
        *place(seen),
        ("reference is", bundle.reference.words),
        ("candidate is", bundle.candidate.words),
        ("tape", f"{bundle.tape}, {count(checked.parts[0].steps, 'step')}"),
        ("shrunk from", "; ".join(bundle.story)),
        ("last good state", differs and f"one step from it {differs}"),
    )


FOUND = Span("THEY DIFFER", "bad", strong=True)
NOT_FOUND = Span("no difference larger than stated", "good", strong=True)
UNKNOWN = Span("cannot tell", "warn", strong=True)

OWN = ("return", "length")  # Told in their own unit, too


def statistical(records: Sequence[Record]) -> Sections:
    """Return one part a target: the word, what was found, and what each kind of thing can still differ by."""
    parts = list[Section]()
    for record in records:
        found = record.statistical
        assert found is not None
        word = FOUND if found.differences else UNKNOWN if found.pairs < found.needed else NOT_FOUND
        told = (
            f"{found.compared:,} things compared in {found.pairs:,} pairs of episodes a policy; intervals "
            f"hold for all at once, but in 1 of {found.one_false_in} cases, and what is found has to be "
            f"found again; under {found.margin:g} of a spread it is rounding, and what is rarer than 1 in "
            f"{found.rarest:,} episodes need not have come at all"
        )
        name = Span(record.target.name, strong=True)
        parts += (Note(words=(name, f"  against {found.against}: ", word)), Note(words=(told,)))
        parts += (*differences(found), bounds(found))
    return *parts, section.facts(*origin(records[0]))


def differences(found: Statistical) -> tuple[Section, ...]:
    """Return what differs, as it was seen in fresh pairs; nothing if nothing does."""
    if not found.differences:
        return ()
    columns = (
        *text_columns("policy", "what differs"),
        *number_columns("candidate less reference", "interval", "in spreads"),
    )
    rows = [
        (
            each.policy,
            each.what,
            f"{each.difference:+.4g}",
            f"{each.low:+.4g} to {each.high:+.4g}",
            f"{each.difference / each.spread:+.2g}",
        )
        for each in found.differences
    ]
    return Heading(words=("what differs",), apart=True), table(columns, rows)


def bounds(found: Statistical) -> Section:
    columns = (
        *text_columns("policy", "what"),
        *number_columns("compared", "no difference larger than", "would have been seen from"),
    )
    rows = []
    for group in found.groups:
        largest, seen = f"{group.bound:.2g} spreads", f"{group.seen_from:.2g} spreads"
        if group.name in OWN:
            spread = group.worst.spread
            largest = f"{group.bound * spread:.3g} ({largest})"
            seen = f"{group.seen_from * spread:.3g} ({seen})"
        largest = largest if group.bound else "it differs"
        rows.append((group.policy, group.name, f"{group.compared:,}", largest, seen))
    return table(columns, rows)


def adoption(found: AdoptionChecklist) -> Sections:
    """Return the four steps with what is known of each, and what to run next."""
    title = Heading(words=(Span(found.candidate, strong=True), f"  against {found.reference}"))
    steps = Lines(lines=tuple(step(number, found.step) for number in range(1, len(STEPS) + 1)))
    command = Note(words=Span(f"run  {found.command}", strong=True))
    # How much was compared, by configuration and together.
    rows: list[tuple[Words, ...]] = [
        (each.target, f"{each.runs:,}", f"{each.comparisons:,}", f"{each.mismatches:,}")
        for each in found.configurations
    ]
    rows.append(("together", "", f"{found.comparisons:,}", f"{found.mismatches:,}"))
    columns = (*text_columns("configuration"), *number_columns("runs", "comparisons", "mismatches"))
    timed = facts(("alone", "not timed"), ("end to end", "not timed"))
    if found.outcome is not None:
        timed = facts(
            ("alone", f"{found.part}: {ratio_words(found.alone)} times as fast"),
            ("end to end", f"{ratio_words(found.whole)} times as fast"),
        )
    return title, table(columns, rows), timed, steps, Note(words=found.why), command


def step(number: int, current: int) -> Span:
    """Return one step: done, next, or to come; a last one that is passed over is kept."""
    name = f"{number}. {STEPS[number - 1]}"
    if number == current:
        return Span(f"  next  {name}", strong=True)
    if number == len(STEPS) < current:
        return Span(f"  kept  {name}")
    return Span(f"  done  {name}", "good") if number < current else Span(f"        {name}")
