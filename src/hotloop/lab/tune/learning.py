"""Whether the winner still learns as well: both trained for as many env-steps, seed by seed."""

from collections.abc import Callable
from statistics import fmean
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Learnt, Record
from hotloop.core.target import Target
from hotloop.judge import tune as choosing
from hotloop.lab.cells import Cell, Executor, sweep
from hotloop.lab.measure.record import Recorder, describe_method
from hotloop.lab.training.settings import PREFIX, is_training, per_update
from hotloop.lab.training.settings import read as read_training
from hotloop.lab.training.sides import LEARNING, TrainContender
from hotloop.lab.tune.asked import Asked
from hotloop.lab.tune.combinations import is_same
from hotloop.lab.tune.halving import update_s

RETURN = "return"
"""Of each episode after a training of the learning check."""


def learn(
    present: Target,
    chosen: Target,
    asked: Asked,
    executor: Executor,
    progress: Progress,
    say: Callable[[str], None],
) -> Learnt | None:
    """What both have learnt after as many env-steps, with the same seeds; None where they are the same."""
    if not asked.learn_steps or not is_training(chosen) or is_same(present, chosen):
        return None
    trainings = 2 * asked.seeds
    seconds = asked.seeds * sum(training_s(each, asked.learn_steps) for each in (present, chosen))
    say(f"learning check: {trainings} trainings of {asked.learn_steps:,} env-steps, about {seconds:.0f} s")
    sides = {"present": present, "chosen": chosen}
    cells = {
        (name, seed): learn_cell(target.with_keys({"seed": seed, f"{PREFIX}seed": seed}), asked.learn_steps)
        for seed in range(1, asked.seeds + 1)
        for name, target in sides.items()
    }
    swept = sweep(list(cells.values()), executor, None, progress)
    if swept.interrupted:
        raise KeyboardInterrupt
    if swept.refused:
        raise InputError(f"a training of the learning check cannot be run: {swept.refused[0].refused}")
    found = {cell.id: fmean(record.values[RETURN]) for cell, record in swept.records}
    returns = {name: [found[cells[name, seed].id] for seed in range(1, asked.seeds + 1)] for name in sides}
    return choosing.learnt(asked.learn_steps, returns["present"], returns["chosen"])


def training_s(target: Target, env_steps: int) -> float:
    """What a training of so many env-steps takes about on this machine as it is, with its evaluation."""
    updates = -(-env_steps // per_update(read_training(target)))
    return updates * (update_s(target) or 0.0) + TrainContender(target).evaluation_s()


def learn_cell(target: Target, env_steps: int) -> Cell:
    return Cell(target=target, experiment=f"{__name__}:learn_one", asked={"env_steps": env_steps})


def learn_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Train for so many env-steps; the record has the returns of the episodes after it."""
    contender = TrainContender(target)
    recorder = Recorder("bench", contender.spec)
    returns, counted = contender.trained_for(asked["env_steps"])
    method = describe_method(contender.spec, rounds=1, iterations=asked["env_steps"], policy=LEARNING)
    return recorder.record(method=method, counters=counted, values={RETURN: list(returns)})
