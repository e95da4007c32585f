"""A comparison drawn for a terminal: the verdict first, then what it rests on."""

from statistics import fmean

from rich.console import Group, RenderableType
from rich.text import Text

from hotloop.core.record import AFTER, RETURNS, Comparison, PhaseRatio, Record
from hotloop.report.comparisons import STYLES, ratio_words
from hotloop.report.facts import code_line, machine_line
from hotloop.report.terminal import fact_table, plain_table
from hotloop.report.units import count, percent, plain, speed
from hotloop.stats.intervals import mean_interval


def draw_compare(record: Record) -> RenderableType:
    (comparison,) = record.comparisons
    return Group(headline(comparison), sides(record, comparison), evidence(record, comparison))


def headline(comparison: Comparison) -> Text:
    """The verdict in one line; what is unlike, or was not found out, stands in it."""
    words = Text.assemble(
        "B is " if comparison.outcome != "cannot tell" else "",
        (comparison.outcome, STYLES[comparison.outcome]),
    )
    if comparison.ratio:
        words.append(f": {ratio_words(comparison.ratio)} times as fast as A")
    if comparison.unlike:
        words.append(f"; the work differs ({'; '.join(comparison.unlike)})", "bold yellow")
    return words


def sides(record: Record, comparison: Comparison) -> RenderableType:
    """Each side's speed, and what it did."""
    table = plain_table("side", "target", "impl")
    for heading in ("env-steps/s", "ns/env-step"):
        table.add_column(heading, justify="right", no_wrap=True)
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        metric = record.metrics.get(f"{letter.lower()}.ns_per_env_step")
        cells = (speed(1e9 / metric.median), f"{metric.median:,.1f}") if metric else ("not timed",)
        table.add_row(letter, side.name, side.target.impl, *cells)
    return table


def evidence(record: Record, comparison: Comparison) -> RenderableType:
    """Why, how much noise there was, and what could have been seen."""
    table = fact_table()
    table.add_row("because", comparison.why)
    table.add_row("equal", equal_line(record, comparison))
    if comparison.noise:
        table.add_row("noise", f"A against itself {ratio_words(comparison.noise)}")
    if RETURNS[0] in record.values:
        table.add_row("return", returns_line(record))
    if comparison.instructions is not None:
        table.add_row("instructions", instructions_line(record, comparison.instructions))
    if comparison.second:
        table.add_row("second run", ratio_words(comparison.second))
    if comparison.visible is not None:
        table.add_row("could see", f"a change of {percent(comparison.visible)} or more")
    if comparison.more_pairs:
        table.add_row("to settle", f"about {count(comparison.more_pairs, 'more round')}, or a wider --band")
    table.add_row("method", method_line(record))
    table.add_row("machine", machine_line(record.machine))
    table.add_row("commit", code_line(record.code))
    return Group(table, *([phases(comparison)] if comparison.phases else []))


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
    seen = f"yes: {checked.comparisons:,} outputs of agents, to the byte"
    foreign = "foreign" in (comparison.a.target.impl, comparison.b.target.impl)
    return seen if foreign else f"{seen}, and the states behind them"


def instructions_line(record: Record, ratio: float) -> str:
    """How many more B takes: the second axis, beside time."""
    of_b = record.instructions
    assert of_b is not None
    per_step = of_b.per_env_step
    return f"{per_step:,.0f} an env-step in B, {per_step / ratio:,.0f} in A: {ratio:.4f} times as many"


def method_line(record: Record) -> str:
    method = record.method
    if record.comparisons[0].a.run_id:
        return "two records, not measured in turns: hotloop compare of the targets can tell more"
    if not method.rounds:
        return f"nothing was timed; {method.policy} play"
    return (
        f"{method.rounds} rounds of {method.iterations:,} env-steps a side "
        f"after {method.warmup:,} of warm-up, {method.policy} play; {method.order}"
    )


def phases(comparison: Comparison) -> RenderableType:
    """Phase by phase, with what each change is worth for the whole."""
    table = plain_table("phase")
    for heading in ("of A's time", "times as fast", "worth end to end", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    for phase in comparison.phases:
        table.add_row(*phase_cells(phase))
    seen = f"; seen {comparison.ratio.estimate:.3f}" if comparison.ratio else ""
    return Group(table, Text(f"all phases together: {together(comparison):.3f} predicted{seen}", "dim"))


def phase_cells(phase: PhaseRatio) -> tuple[str, ...]:
    note = "control" if phase.control else ""
    return phase.phase, percent(phase.share), ratio_words(phase.ratio), f"{phase.worth:.3f}", note


def together(comparison: Comparison) -> float:
    """What all phases predict for the whole: A's time over what would be left of it."""
    left = sum(phase.share / phase.ratio.estimate for phase in comparison.phases)
    return 1 / (left + 1 - sum(phase.share for phase in comparison.phases))
