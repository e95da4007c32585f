"""Episodes that were played: what they came to, and what happened in them."""

from hotloop.core.record import OUTCOME, Record
from hotloop.report.sections.facts import mean_line, origin, pace_line, path_line, title, work_line
from hotloop.report.sections.section import (
    Facts,
    Note,
    Section,
    Sections,
    Span,
    facts,
    number_columns,
    table,
    text_columns,
)


def sim(record: Record) -> Sections:
    """What the episodes came to, what happened in them, and how long it took."""
    return title(record), about(record), *coverage(record)


def about(record: Record) -> Facts:
    outcomes = [name for name in record.values if name.startswith(OUTCOME)]
    return facts(
        ("player", record.method.policy),
        ("episodes", f"{record.method.rounds:,}"),
        ("length", mean_line(record, "episode_length", "steps")),
        ("return", Span(mean_line(record, "return_per_agent", "per agent"), strong=True)),
        *((name.removeprefix(OUTCOME), Span(mean_line(record, name), strong=True)) for name in outcomes),
        ("work", work_line(record)),
        ("speed", f"{pace_line(record)}, the player's choosing included"),
        *origin(record),
        ("path", path_line(record)),
    )


def coverage(record: Record) -> tuple[Section, ...]:
    """Every mechanic that fired, the most frequent first, and those that never did."""
    counted = sorted(record.work.coverage.items(), key=lambda item: -item[1])
    columns = number_columns("times", "per episode", "per 1,000 agent-steps")
    rows = [(name, *often(record, times)) for name, times in counted if times]
    fired = table((*text_columns("what happened"), *columns), rows)
    never = ", ".join(name for name, times in counted if not times)
    return (fired, Note(words=Span(f"never happened: {never}", "dim"))) if never else (fired,)


def often(record: Record, times: int) -> tuple[str, str, str]:
    """How often something happened: in all, an episode, an agent-step."""
    per_episode = f"{times / record.method.rounds:,.1f}" if record.method.rounds else ""
    return f"{times:,}", per_episode, f"{1_000 * times / record.work.agent_steps:,.2f}"
