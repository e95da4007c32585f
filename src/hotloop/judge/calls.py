"""Calls: what a loop does one at a time and could do in one call."""

from collections.abc import Iterator

from hotloop.judge import names
from hotloop.judge.case import Case, Part
from hotloop.judge.evidence import Sight, told

MANY = 8  # Calls each time the loop goes round, from which on one would do

# Calls of one Python function in an env-step, from which on it is called for each of many things.
FOR_EACH = 32

OPAQUE = 0.5  # Of the time in one function, from which on one wants to know how often it is called


def inserts(case: Case) -> Iterator[Sight]:
    """Rows that put things away one at a time."""
    steps, envs = case.record.work.env_steps, case.setting("num_envs") or 1
    for row in case.named(names.INSERTS):
        if (
            steps
            and row.calls >= 0.9 * steps
            and row.part.share >= 0.05
            and (envs > 1 or row.calls >= MANY * calls_of(case))
        ):
            said = f"{told(row)}, in {row.calls:,} calls for {steps:,} env-steps"
            yield Sight(
                said=said, row=row, part=row.part, factor=row.calls / max(calls_of(case), 1), at_most=True
            )
    yield from queries(case)


def queries(case: Case) -> Iterator[Sight]:
    """Statements of names.SQL that are run one at a time, as cProfile counted them."""
    for name, often, share in counted(case):
        if often >= MANY and share >= 0.05 and names.SQL.search(name):
            yield called_often(name, often, share)


def over_and_over(case: Case) -> Iterator[Sight]:
    """Python functions that a step calls for each of many things, as cProfile counted them."""
    for name, often, share in counted(case):
        if often >= FOR_EACH and share >= 0.2 and names.IN_FILE.search(name):
            yield called_often(name, often, share)


def counted(case: Case) -> Iterator[tuple[str, float, float]]:
    """Functions that cProfile met: calls an env-step, and the share of their own time."""
    for found in case.record.findings:
        steps = found.facts.get("env_steps") if found.probe == "cprofile" else None
        for table in found.tables if steps else ():
            for each in (dict(zip(table.columns, row, strict=False)) for row in table.rows):
                yield str(each["function"]), each["calls"] / steps, each["own_share"]


def called_often(name: str, often: float, share: float) -> Sight:
    said = f"{name} is {share:.1%} of the time under cProfile, {often:,.0f} calls an env-step"
    return Sight(said=said, part=Part(share=share), factor=often, at_most=True)


def is_opaque(case: Case) -> bool:
    """Whether most of somebody's step is in one function, of which nobody counted the calls."""
    return any(row.is_leaf and row.part.share >= OPAQUE for row in case.functions)


def calls_of(case: Case) -> int:
    """How often the loop went round: its updates, or the calls of a batch."""
    work, envs = case.record.work, case.setting("num_envs") or 1
    return work.updates or max(1, work.env_steps // max(int(envs), 1))
