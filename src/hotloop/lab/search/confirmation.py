"""The winner against the present settings, in turns."""

from dataclasses import asdict
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.lab.cells import Cell, Executor
from hotloop.lab.compare.compare import Asked as Comparing
from hotloop.lab.compare.compare import compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.settle import Plan
from hotloop.lab.search.asked import Asked
from hotloop.lab.search.combinations import is_same
from hotloop.lab.training.settings import is_training
from hotloop.lab.training.sides import TrainContender, compare_trainings


def confirm(
    present: Target, chosen: Target, asked: Asked, executor: Executor, progress: Progress
) -> Record | None:
    """The winner against the present settings, in turns; None where they are the same."""
    if is_same(present, chosen):
        return None
    told = {"present": asdict(present), "budget_ns": asked.confirming_ns(training=is_training(chosen))}
    cell = Cell(target=chosen, experiment=f"{__name__}:confirm_one", asked=told)
    [found] = executor.run([cell], progress)
    if found.record is None:
        raise InputError(f"{chosen.words} cannot be confirmed: {found.refused}")
    return found.record


def confirm_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """A target against the present settings, in turns."""
    present = Target(**asked["present"])
    how = Comparing(plan=Plan(budget_ns=asked["budget_ns"]), unlike=True)
    if is_training(target):
        return compare_trainings(TrainContender(present), TrainContender(target), how, None, progress)
    return compare(TargetContender(present), TargetContender(target), how, progress)
