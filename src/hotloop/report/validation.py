"""Validations drawn for a terminal: equal or not, what that rests on, and where the first difference is."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotloop.core.record import STEPS, Difference, Facts, Part, Record, Rollout, Validation
from hotloop.report.comparisons import ratio_words
from hotloop.report.facts import code_line, machine_line
from hotloop.report.terminal import fact_table, plain_table
from hotloop.report.units import count

EQUAL, UNEQUAL, BROKEN_OFF = ("equal", "bold green"), ("NOT EQUAL", "bold red"), ("broken off", "bold yellow")


def draw_validations(records: Sequence[Record]) -> RenderableType:
    """One row a target, then what differs, how it was played, and the facts beside it."""
    table = plain_table("target", "against")
    table.add_column("", no_wrap=True)
    for heading in ("comparisons", "mismatches", "reference takes"):
        table.add_column(heading, justify="right", no_wrap=True)
    for record in records:
        table.add_row(*row(record))
    differences = [draw_difference(record) for record in records if validation_of(record).difference]
    return Group(
        table, *differences, *([draw_parts(records[0])] if len(records) == 1 else []), facts(records)
    )


def row(record: Record) -> Sequence[RenderableType]:
    checked = validation_of(record)
    word = UNEQUAL if checked.mismatches else BROKEN_OFF if record.partial else EQUAL
    ratio = f"{checked.timing_ratio:.3g} times as long" if checked.timing_ratio else "not timed"
    numbers = (f"{checked.comparisons:,}", f"{checked.mismatches:,}", ratio)
    return record.target.name, checked.against or "", Text(*word), *numbers


def validation_of(record: Record) -> Validation:
    assert record.validation is not None
    return record.validation


def draw_difference(record: Record) -> RenderableType:
    """The first difference, and how to see it again."""
    checked = validation_of(record)
    assert checked.difference is not None
    table = difference_table(checked.difference)
    if checked.bundle:
        table.add_row("again", f"hotloop validate --replay {checked.bundle}")
    title = Text.assemble((record.target.name, "bold"), "  the first difference")
    return Group("", title, table)


def difference_table(found: Difference) -> Table:
    """Everything that is known of one place."""
    table = fact_table()
    when = f"{found.step}" + (", after a reset in the middle" if found.after_reset else "")
    table.add_row("step", when if found.step else "0, the first reset")
    table.add_row("env", "all" if found.env is None else str(found.env))
    table.add_row("agent", found.agent or "of no one agent")
    table.add_row("field", f"{found.field}{list(found.index)}")
    table.add_row("reference", found.a)
    table.add_row("candidate", found.b)
    table.add_row("tick before", found.before or "not known")
    return table


def draw_parts(record: Record) -> RenderableType:
    """What was played, and in which ways."""
    table = plain_table("tape")
    for heading in ("envs", "threads", "steps of each", "comparisons"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("compared", no_wrap=True)
    for part in validation_of(record).parts:
        table.add_row(*part_row(part, validation_of(record).mode))
    return table


def part_row(part: Part, mode: str) -> Sequence[str]:
    numbers = (f"{part.num_envs:,}", f"{part.threads:,}", f"{part.steps:,}", f"{part.comparisons:,}")
    return part.tape, *numbers, "by digest" if part.by_digest else f"every step, {mode}"


def facts(records: Sequence[Record]) -> RenderableType:
    table = fact_table()
    checked = validation_of(records[0])
    table.add_row("fields", ", ".join(checked.fields) or "none")
    table.add_row("machine", machine_line(records[0].machine))
    table.add_row("commit", code_line(records[0].code))
    return table


def draw_replay(facts: Facts, record: Record, from_state: bool | None) -> RenderableType:
    """Whether a bundle's difference came again; `from_state` says whether it did from the last good state."""
    checked, kept = validation_of(record), facts.difference
    seen = checked.difference
    if seen is None:
        return Text.assemble(("does not differ any more", "bold green"), f": it was {kept}")
    where = "in the same place" if str(seen) == str(kept) else f"in another place; it was {kept}"
    head = Text.assemble(("differs again", "bold red"), f", {where}")
    table = difference_table(seen)
    table.add_row("reference is", facts.reference.words)
    table.add_row("candidate is", facts.candidate.words)
    table.add_row("tape", f"{facts.tape}, {count(checked.parts[0].steps, 'step')}")
    if facts.story:
        table.add_row("shrunk from", "; ".join(facts.story))
    if from_state is not None:
        seen_there = "differs too" if from_state else "does not differ"
        table.add_row("last good state", f"one step from it {seen_there}")
    return Group(head, table)


def draw_rollout(rollout: Rollout) -> RenderableType:
    """The four steps with what is known of each, and what to run next."""
    title = Text.assemble((rollout.candidate, "bold"), f"  against {rollout.reference}")
    table = plain_table("configuration")
    for heading in ("runs", "comparisons", "mismatches"):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in rollout.configurations:
        table.add_row(each.target, f"{each.runs:,}", f"{each.comparisons:,}", f"{each.mismatches:,}")
    table.add_row("together", "", f"{rollout.comparisons:,}", f"{rollout.mismatches:,}")
    return Group(title, table, speeds(rollout), ladder(rollout))


def speeds(rollout: Rollout) -> RenderableType:
    table = fact_table()
    timed = rollout.outcome is not None
    table.add_row(
        "alone", f"{rollout.part}: {ratio_words(rollout.alone)} times as fast" if timed else "not timed"
    )
    table.add_row("end to end", f"{ratio_words(rollout.whole)} times as fast" if timed else "not timed")
    return table


def ladder(rollout: Rollout) -> RenderableType:
    lines = Text()
    for number, name in enumerate(STEPS, 1):
        mark, style = ("done", "green") if number < rollout.step else ("    ", "")
        if number == rollout.step:
            mark, style = "next", "bold"
        elif number == len(STEPS) < rollout.step:
            mark, style = "kept", ""
        lines.append(f"  {mark}  {number}. {name}\n", style)
    lines.append(f"{rollout.why}\n")
    lines.append(f"run  {rollout.command}", "bold")
    return lines
