"""What a report says of comparisons of targets, programs, trainings and commits."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from string import ascii_lowercase, ascii_uppercase

from hotloop.core.record import Record
from hotloop.core.record.comparison import AFTER, RETURNS, Comparison, Outcome, Ratio
from hotloop.report.section import (
    FOREIGN,
    SIZES,
    Note,
    Rows,
    Section,
    Sections,
    Span,
    Table,
    Words,
    count,
    digits,
    facts,
    number_columns,
    origin,
    paths_line,
    percent,
    plain,
    plain_float,
    play_words,
    scaled,
    speed,
    table,
    text_columns,
    took,
)
from hotloop.stats.summary import mean_interval
from hotloop.stats.summary import outcome as outcome_of


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
    words: list[str | Span]
    if comparison.difference:  # a difference that was seen is no doubt
        words = [f"{letter} is ", Span("not equal to A", "bad", strong=True)]
    else:
        doubt = "" if letter == "B" else f"{letter}: "
        start = {"cannot tell": doubt, "same": f"{letter} is the "}.get(comparison.outcome, f"{letter} is ")
        words = [start, outcome_words(comparison.outcome)]
    if comparison.ratio:
        words.append(f": {ratio_words(comparison.ratio)} times as fast as A")
    if comparison.unlike:
        differs = f"; the work differs ({'; '.join(comparison.unlike)})"
        words.append(Span(differs, "warn", strong=True))
    return Note(words=tuple(words))


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
    yield from choice(comparison)
    if comparison.noise:
        yield "noise", f"A against itself {ratio_words(comparison.noise)}"
    if RETURNS[0] in record.values:
        yield "return", returns_line(record)
    times = comparison.instructions
    if times is not None:
        assert record.instructions is not None
        steps = record.instructions.per_env_step
        in_a = f"{steps / times:,.0f} in A: {times:.4f} times as many"
        yield "instructions", f"{steps:,.0f} an env-step in B, {in_a}"
    if comparison.per_work:
        yield "per work", f"{ratio_words(comparison.per_work)} times as fast for as much of it"
    yield from certainty(comparison, "for a CPU second")


def choice(comparison: Comparison) -> Rows:
    """Yield which path each side took, as its env counted it, if they are one user's target in two ways."""
    a, b = comparison.a.target, comparison.b.target
    if a.impl == b.impl == FOREIGN and a.name == b.name and a.keys != b.keys:
        of_a, of_b = (paths_line(side.path.counters) for side in (comparison.a, comparison.b))
        words = "which path of it each side ran is not known: the env has no counters() to say it"
        if of_a or of_b:
            words = f"counted in A: {of_a or 'nothing'}; in B: {of_b or 'nothing'}"
        yield "path", words


def certainty(comparison: Comparison, by_cpu: str) -> Rows:
    """Yield what CPU time and a second run say, what could have been seen, and what would settle it."""
    if comparison.cpu:
        said = outcome_of(comparison.cpu, comparison.band)
        yield "CPU time", f"{by_cpu} {ratio_words(comparison.cpu)} times as fast: {said}"
    if comparison.second:
        yield "second run", ratio_words(comparison.second)
    if comparison.visible is not None:
        yield "could see", f"a change of {percent(comparison.visible)} or more"
    if comparison.more_pairs:
        yield "to settle", f"about {count(comparison.more_pairs, 'more round')}, or a wider --band"


def returns_line(record: Record) -> str:
    """Return what both sides have learnt after as many steps, and the difference over shared episodes."""
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
    foreign = FOREIGN in (comparison.a.target.impl, comparison.b.target.impl)
    return seen if foreign else f"{seen}, and the states behind them"


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
    """Return what each phase's change is worth for the whole, and what all of them together predict."""
    columns = number_columns("of A's time", "times as fast", "worth end to end", "")
    rows = [
        (
            phase.phase,
            percent(phase.share),
            ratio_words(phase.ratio),
            f"{phase.worth:.3f}",
            "control" if phase.control else "",
        )
        for phase in comparison.phases
    ]
    # A's time over what would be left of it.
    left = sum(phase.share / phase.ratio.estimate for phase in comparison.phases)
    together = 1 / (left + 1 - sum(phase.share for phase in comparison.phases))
    seen = f"; seen {comparison.ratio.estimate:.3f}" if comparison.ratio else ""
    whole = f"all phases together: {together:.3f} predicted{seen}"
    return table((*text_columns("phase"), *columns), rows), Note(words=Span(whole, "dim"))


# Columns beside the ratio of the times: of CPU times, and how many times as many instructions.
BESIDE: dict[str, Callable[[Comparison], str]] = {
    "per CPU second": lambda compared: ratio_words(compared.cpu) if compared.cpu else "",
    "instructions": lambda compared: f"{compared.instructions:.4f}" if compared.instructions else "",
}


def comparisons(compared: Sequence[Comparison]) -> Sections:
    """Return one row a baseline: how many times as fast this is, what that comes to, and why.

    CPU time and instructions stand beside it if they were measured. That the sides are unlike, where that
    was allowed, stands beside the outcome, and in what below the reason.
    """
    if not compared:
        return ()
    beside = {name: cell for name, cell in BESIDE.items() if any(cell(each) for each in compared)}
    columns = (
        *text_columns("baseline"),
        *number_columns("times as fast", *beside),
        *text_columns("outcome", whole=True),
        *text_columns("why"),
    )
    rows = list[tuple[Words, ...]]()
    for each in compared:
        reason = "; ".join([each.why, *(f"unlike {what}" for what in each.unlike)])
        cells = (cell(each) for cell in beside.values())
        rows.append((each.a.name, ratio_words(each.ratio), *cells, with_unlike(each), reason))
    return (table(columns, rows),)


def with_unlike(comparison: Comparison) -> Span:
    """Return the outcome, and that the sides are unlike if they are."""
    return outcome_words(comparison.outcome, ", of unlike things" if comparison.unlike else "")


def run_measures(record: Record) -> list[tuple[str, str, Callable[[float], str]]]:
    """Return each metric of a program's runs with its heading and its format; what is judged comes first."""
    judged = record.method.headline.removeprefix("1/")
    return [
        *([] if judged == "runs_per_s" else [(judged, judged, plain_float)]),
        ("wall_ns", "wall", took),
        ("cpu_ns", "CPU", took),
        ("rss_peak_bytes", "peak memory", partial(scaled, units=SIZES)),
    ]


def program_method(record: Record) -> str:
    method = record.method
    each = "" if not record.comparisons or method.order == "single" else f" of each; {method.order}"
    return f"{count(method.rounds, 'run')} after {method.warmup} of warm-up{each}"


def program_compare(record: Record) -> Sections:
    """Return each program against A, the verdict first."""
    compared = list(zip(ascii_uppercase[1:], record.comparisons, strict=False))
    measures = run_measures(record)
    names = [record.comparisons[0].a.name, *(each.b.name for each in record.comparisons)]
    rows = list[tuple[Words, ...]]()
    for letter, name in zip(ascii_lowercase, names, strict=False):
        found = [(record.metrics.get(f"{letter}.{metric}"), written) for metric, _, written in measures]
        medians = (written(metric.median) if metric else "not run" for metric, written in found)
        rows.append((letter.upper(), name, *medians))
    columns = (*text_columns("side", "program"), *number_columns(*(heading for _, heading, _ in measures)))
    return (
        *(headline(replace(each, unlike=()), letter) for letter, each in compared),
        table(columns, rows),
        *(facts(*program_evidence(each, letter if len(compared) > 1 else "")) for letter, each in compared),
        facts(("method", program_method(record)), *origin(record)),
    )


def program_evidence(comparison: Comparison, letter: str) -> Rows:
    """Yield why, after the letter of the side if there are several, and what it rests on."""
    yield "because", f"{letter}: {comparison.why}" if letter else comparison.why
    if comparison.noise:
        yield "noise", f"A against itself {ratio_words(comparison.noise)}"
    yield from certainty(comparison, "by CPU time")
