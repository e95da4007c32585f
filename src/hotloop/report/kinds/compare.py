"""Comparisons: the verdict first, then what it rests on."""

from collections.abc import Callable, Sequence
from statistics import fmean
from string import ascii_uppercase

from hotloop.core.record import Record
from hotloop.core.record.comparison import AFTER, RETURNS, Comparison, Outcome, PhaseRatio, Ratio
from hotloop.report.facts import FOREIGN, Rows, origin, paths_line, play_words
from hotloop.report.section import (
    Note,
    Section,
    Sections,
    Span,
    Table,
    Words,
    facts,
    number_columns,
    table,
    text_columns,
)
from hotloop.report.units import count, digits, percent, plain, speed
from hotloop.stats.intervals import mean_interval
from hotloop.stats.ratio import outcome as outcome_of


def compare(record: Record) -> Sections:
    """Return each comparison that a record was made for, the verdicts first."""
    compared = list(zip(ascii_uppercase[1:], record.comparisons, strict=False))
    return (
        *(headline(each, letter) for letter, each in compared),
        sides(record),
        *(facts(*evidence(record, each, letter)) for letter, each in compared),
        facts(("method", method_line(record)), *origin(record)),
        *(section for _, each in compared if each.phases for section in phases(each)),
    )


def headline(comparison: Comparison, letter: str = "B") -> Note:
    """Return the verdict in one line; what is unlike, or was not found out, stands in it."""
    words: list[str | Span] = list(verdict_words(comparison, letter))
    if comparison.ratio:
        words.append(f": {ratio_words(comparison.ratio)} times as fast as A")
    if comparison.unlike:
        differs = f"; the work differs ({'; '.join(comparison.unlike)})"
        words.append(Span(differs, "warn", strong=True))
    return Note(words=tuple(words))


def verdict_words(comparison: Comparison, letter: str = "B") -> tuple[str | Span, ...]:
    """Return what B is; a difference that was seen is no doubt."""
    if comparison.difference:
        return (f"{letter} is ", Span("not equal to A", "bad", strong=True))
    doubt = "" if letter == "B" else f"{letter}: "
    start = {"cannot tell": doubt, "same": f"{letter} is the "}.get(comparison.outcome, f"{letter} is ")
    return start, outcome_words(comparison.outcome)


def outcome_words(outcome: Outcome, more: str = "") -> Span:
    """Return an outcome as good or bad as it is, and what belongs to it."""
    text = outcome + more
    spans = {
        "faster": Span(text, "good", strong=True),
        "slower": Span(text, "bad", strong=True),
        "cannot tell": Span(text, "warn"),
        "same": Span(text),
    }
    return spans[outcome]


def ratio_words(ratio: Ratio | None) -> str:
    """Return the ratio with its interval, never without."""
    if ratio is None:
        return "no interval"
    return f"{digits(ratio.estimate)} [{digits(ratio.low)}, {digits(ratio.high)}]"


def sides(record: Record) -> Table:
    """Return each side's speed, and what it did."""
    unit, timed = record.method.unit, record.method.ns_per_unit
    columns = (*text_columns("side", "target", "impl"), *number_columns(f"{unit}s/s", f"ns/{unit}"))
    rows = list[tuple[Words, ...]]()
    compared = [record.comparisons[0].a, *(each.b for each in record.comparisons)]
    for letter, side in zip(ascii_uppercase, compared, strict=False):
        metric = record.metrics.get(f"{letter.lower()}.{timed}")
        cells = (speed(1e9 / metric.median), f"{metric.median:,.1f}") if metric else ("not timed",)
        rows.append((letter, side.name, side.target.impl, *cells))
    return table(columns, rows)


def evidence(record: Record, comparison: Comparison, letter: str = "B") -> Rows:
    """Yield why, how much noise there was, and what could have been seen."""
    yield "because" if len(record.comparisons) == 1 else letter, comparison.why
    yield "equal", equal_line(record, comparison)
    if is_choice(comparison):
        yield "path", path_words(comparison)
    if comparison.noise:
        yield "noise", f"A against itself {ratio_words(comparison.noise)}"
    if RETURNS[0] in record.values:
        yield "return", returns_line(record)
    if comparison.instructions is not None:
        yield "instructions", instructions_line(record, comparison.instructions)
    if comparison.per_work:
        yield "per work", f"{ratio_words(comparison.per_work)} times as fast for as much of it"
    if comparison.cpu:
        said = outcome_of(comparison.cpu, comparison.band)
        yield "CPU time", f"for a CPU second {ratio_words(comparison.cpu)} times as fast: {said}"
    if comparison.second:
        yield "second run", ratio_words(comparison.second)
    if comparison.visible is not None:
        yield "could see", f"a change of {percent(comparison.visible)} or more"
    if comparison.more_pairs:
        yield "to settle", f"about {count(comparison.more_pairs, 'more round')}, or a wider --band"


def is_choice(comparison: Comparison) -> bool:
    """Return whether the sides are one target of the user's in two ways."""
    a, b = comparison.a.target, comparison.b.target
    return a.impl == b.impl == FOREIGN and a.name == b.name and a.keys != b.keys


def path_words(comparison: Comparison) -> str:
    """Say which path each side took, as its env counted it."""
    counted = [paths_line(side.path.counters) for side in (comparison.a, comparison.b)]
    if not any(counted):
        return "which path of it each side ran is not known: the env has no counters() to say it"
    a, b = (each or "nothing" for each in counted)
    return f"counted in A: {a}; in B: {b}"


def returns_line(record: Record) -> str:
    """What both sides have learnt after as many steps, and the difference over the episodes they share."""
    of_a, of_b = (record.values[name] for name in RETURNS)
    gained = [b - a for a, b in zip(of_a, of_b, strict=True)]
    interval = mean_interval(gained)
    around = f"[{plain(interval[0])}, {plain(interval[1])}]" if interval else "(too few for an interval)"
    steps = round(record.values[AFTER][0])
    return (
        f"after {steps:,} env-steps {plain(fmean(of_a))} in A, {plain(fmean(of_b))} in B: "
        f"B - A {plain(fmean(gained))} {around}, over {len(gained)} episodes of one training each"
    )


def equal_line(record: Record, comparison: Comparison) -> str:
    checked = record.validation
    if comparison.a.run_id:
        return "not known: records cannot be replayed"
    if checked is None:
        why = "the sides are unlike" if comparison.unlike else "trainings are compared by speed and returns"
        return f"not looked at: {why}"
    if comparison.difference:
        return f"no: {comparison.difference}"
    if checked.too_few_steps is not None:
        return f"not known: alike for {checked.too_few_steps:,} steps only"
    if checked.envs_not_compared:
        return f"in part: {checked.envs_not_compared:,} envs were not compared"
    seen = f"yes: {checked.comparisons:,} outputs of agents, to the byte"
    foreign = "foreign" in (comparison.a.target.impl, comparison.b.target.impl)
    return seen if foreign else f"{seen}, and the states behind them"


def instructions_line(record: Record, ratio: float) -> str:
    """Return how many more B takes: the second axis, beside time."""
    of_b = record.instructions
    assert of_b is not None
    per_step = of_b.per_env_step
    return f"{per_step:,.0f} an env-step in B, {per_step / ratio:,.0f} in A: {ratio:.4f} times as many"


def method_line(record: Record) -> str:
    method = record.method
    if record.comparisons[0].a.run_id:
        return "two records, not measured in turns: hotloop compare of the targets can tell more"
    if not method.rounds:
        return f"nothing was timed; {play_words(record)}"
    return (
        f"{method.rounds} rounds of {method.iterations:,} env-steps a side "
        f"after {method.warmup:,} of warm-up, {play_words(record)}; {method.order}"
    )


def phases(comparison: Comparison) -> tuple[Section, ...]:
    """Phase by phase, with what each change is worth for the whole."""
    columns = number_columns("of A's time", "times as fast", "worth end to end", "")
    rows = [phase_cells(phase) for phase in comparison.phases]
    seen = f"; seen {comparison.ratio.estimate:.3f}" if comparison.ratio else ""
    whole = f"all phases together: {together(comparison):.3f} predicted{seen}"
    return table((*text_columns("phase"), *columns), rows), Note(words=Span(whole, "dim"))


def phase_cells(phase: PhaseRatio) -> tuple[Words, ...]:
    note = "control" if phase.control else ""
    return phase.phase, percent(phase.share), ratio_words(phase.ratio), f"{phase.worth:.3f}", note


def together(comparison: Comparison) -> float:
    """Return what all phases predict for the whole: A's time over what would be left of it."""
    left = sum(phase.share / phase.ratio.estimate for phase in comparison.phases)
    return 1 / (left + 1 - sum(phase.share for phase in comparison.phases))


def comparisons(compared: Sequence[Comparison]) -> Sections:
    """Return one row a baseline: how many times as fast this is, what that comes to, and why.

    CPU time and instructions stand beside it if they were measured.
    """
    if not compared:
        return ()
    beside = [name for name, cell in BESIDE.items() if any(cell(each) for each in compared)]
    columns = (
        *text_columns("baseline"),
        *number_columns("times as fast", *beside),
        *text_columns("outcome", whole=True),
        *text_columns("why"),
    )
    return (table(columns, [baseline_row(each, beside) for each in compared]),)


# Columns beside the ratio of the times: of CPU times, and how many times as many instructions.
BESIDE: dict[str, Callable[[Comparison], str]] = {
    "per CPU second": lambda compared: ratio_words(compared.cpu) if compared.cpu else "",
    "instructions": lambda compared: f"{compared.instructions:.4f}" if compared.instructions else "",
}


def baseline_row(comparison: Comparison, beside: Sequence[str] = ()) -> tuple[Words, ...]:
    """Beside the outcome stands that the sides are unlike, where that was allowed, and below why, in what."""
    outcome = outcome_words(comparison.outcome, ", of unlike things" if comparison.unlike else "")
    reason = "; ".join([comparison.why, *(f"unlike {what}" for what in comparison.unlike)])
    cells = [BESIDE[name](comparison) for name in beside]
    return comparison.a.name, ratio_words(comparison.ratio), *cells, outcome, reason


def previous_line(comparison: Comparison) -> Words:
    """Return the same in a line."""
    outcome = outcome_words(comparison.outcome, ", of unlike things" if comparison.unlike else "")
    ratio = "" if comparison.ratio is None else f"{ratio_words(comparison.ratio)} times as fast: "
    return ratio, outcome, f", {comparison.why} ({comparison.a.run_id})"


def previous(comparison: Comparison) -> Rows:
    """Yield how a profile stands to the one before it, which was not measured in turns with it."""
    yield "Compared with", str(comparison.a.run_id)
    ratio = comparison.ratio
    yield "Times as fast", ratio_words(ratio)
    if ratio is not None:
        yield "Difference", "within noise" if ratio.low <= 1 <= ratio.high else "beyond noise"
    outcome = comparison.outcome + (", of unlike things" if comparison.unlike else "")
    yield "Outcome", f"{outcome}: {comparison.why}"
    yield "Unlike", "; ".join(comparison.unlike)
