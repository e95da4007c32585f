"""How the phases' shares of a step move from one target to the next."""

from collections.abc import Sequence

from hotloop.core.record import STEP, Record
from hotloop.report.units import percent

MOST = 4
"""Phases named, those that move the most first."""


def shares(record: Record) -> dict[str, float]:
    """Phase to its share of the step."""
    totals = {phase.path: phase.total_ns for phase in record.phases}
    inside = [path for path in totals if path.startswith(STEP + "/")]
    return {path.removeprefix(STEP + "/"): totals[path] / totals[STEP] for path in inside}


def shifts(records: Sequence[Record]) -> str:
    """One line: targets, then each phase's share in all of them; empty for fewer than two."""
    tables = [shares(record) for record in records if record.phases]
    if len(tables) < 2:
        return ""
    spans = {name: [table.get(name, 0.0) for table in tables] for name in tables[0]}
    moving = sorted(spans, key=lambda name: min(spans[name]) - max(spans[name]))[:MOST]
    named = ", ".join(f"{name} {' → '.join(map(percent, spans[name]))}" for name in moving)
    return f"{' → '.join(record.target.name for record in records if record.phases)}: {named}"
