"""The winner against the present settings, in turns."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record.record import Record
from hotloop.core.target import Target
from hotloop.lab.cells import Cell, Executor
from hotloop.lab.compare.compare import Asked as Comparing
from hotloop.lab.compare.compare import compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan
from hotloop.lab.training.settings import is_training
from hotloop.lab.training.sides import TrainContender, compare_trainings
from hotloop.lab.tune import programs
from hotloop.lab.tune.combinations import is_same
from hotloop.lab.tune.halving import NEVER, Deadline
from hotloop.lab.tune.programs import is_program
from hotloop.options.tune import SearchOptions

LONGER = (1, 2)
"""How many times as long as asked for each confirmation may take, and as much again for a verdict."""


def confirm(
    present: Target,
    chosen: Target,
    options: SearchOptions,
    executor: Executor,
    progress: Progress,
    say: Callable[[str], None],
    end: Deadline = NEVER,
) -> Record | None:
    """The winner against the present settings, in turns; None where they are the same.

    What cannot be told is measured anew for longer, until it can be, the last time was, or no time is left.
    """
    if is_same(present, chosen):
        return None
    usual_ns = options.confirming_ns(training=is_training(chosen))
    for times in LONGER:
        budget_ns = within(end, times * usual_ns, least_ns=usual_ns // 4)
        told = {"present": asdict(present), "budget_ns": budget_ns}
        if is_program(chosen):
            told |= {"metric": options.metric, "less_is_better": options.less_is_better}
        cell = Cell(target=chosen, experiment=f"{__name__}:confirm_one", asked=told)
        [found] = executor.run([cell], progress)
        if found.record is None:
            raise InputError(f"{chosen.words} cannot be confirmed: {found.refused}")
        longer_ns = within(end, LONGER[-1] * usual_ns)
        if times == LONGER[-1] or not is_open(found.record) or longer_ns <= budget_ns:
            break
        say(again(found.record, budget_ns, longer_ns))
    return found.record


def within(end: Deadline, wanted_ns: int, least_ns: int = 0) -> int:
    """Of what is wanted, as much as can be had twice: faster or slower takes it a second time."""
    return int(min(wanted_ns, max(1e9 * end.left_s / 2, least_ns)))


def is_open(record: Record) -> bool:
    """Whether more rounds could tell what these could not, were they too few for an interval or too noisy."""
    return not record.partial and any(each.outcome == "cannot tell" for each in record.comparisons)


def again(record: Record, took_ns: int, next_ns: int) -> str:
    """Why it is measured once more, and for how long."""
    why = record.comparisons[0].why
    return (
        f"confirmation: {took_ns / 1e9:.0f} s could not tell ({why}): once more, up to {next_ns / 1e9:.0f} s"
    )


def confirm_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """A target against the present settings, in turns."""
    present = Target(**asked.pop("present"))
    if is_program(target):
        return programs.confirm_one(target, present, progress, **asked)
    how = Comparing(plan=Plan(budget_ns=asked["budget_ns"]), unlike=True)
    if is_training(target):
        return compare_trainings(TrainContender(present), TrainContender(target), how, None, progress)
    return compare(TargetContender(present), TargetContender(target), how, progress)
