"""Whether the winner still learns as well: both trained for as many env-steps, seed by seed."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record.record import Record
from hotloop.core.record.sweep import Learnt
from hotloop.core.target import Target
from hotloop.judge import sweep as choosing
from hotloop.lab.cells import Cell, Executor, sweep
from hotloop.lab.measure.policy import LEARNING
from hotloop.lab.measure.record import Recorder, describe_method
from hotloop.lab.training.settings import PREFIX, is_training, per_update
from hotloop.lab.training.settings import read as read_training
from hotloop.lab.training.sides import TrainContender
from hotloop.lab.tune import programs
from hotloop.lab.tune.combinations import is_same
from hotloop.lab.tune.halving import Deadline, update_s
from hotloop.lab.tune.programs import is_program
from hotloop.options.tune import SearchOptions

RETURN, UNTRAINED = "return", "untrained_return"
"""Of each episode after a training of the learning check, and before it."""

LONGEST = 2.0
"""Times what was said that the check may take: no further seed is begun after that."""


def announced(present: Target, options: SearchOptions) -> float:
    """Seconds that the check will take about, were the winner as fast as the present settings are."""
    if not is_wanted(present, options):
        return 0.0
    return 2 * options.seeds * learning_s(present, options)


def learn(
    present: Target,
    chosen: Target,
    options: SearchOptions,
    executor: Executor,
    progress: Progress,
    say: Callable[[str], None],
) -> Learnt | None:
    """What both have learnt after as many env-steps, with the same seeds; None where they are the same."""
    if not is_wanted(chosen, options) or is_same(present, chosen):
        return None
    seconds = options.seeds * sum(learning_s(each, options) for each in (present, chosen))
    length = f" of {options.learn_steps:,} env-steps" if options.learn_steps else ""
    say(
        f"learning check: {2 * options.seeds} trainings{length}, about {seconds:.0f} s, "
        f"at most {LONGEST * seconds:.0f} s; "
        f"as well is at most {options.learning_band_share:.0%} less than the present settings learn"
    )
    cells = {
        (name, seed): cell_of(target, seed, options, untrained=target is present)
        for seed in range(1, options.seeds + 1)
        for name, target in (("present", present), ("chosen", chosen))
    }
    end = Deadline(LONGEST * seconds)
    swept = sweep(list(cells.values()), executor, None, progress, over=end.before(0))
    if swept.interrupted:
        raise KeyboardInterrupt
    if swept.refused:
        raise InputError(f"a training of the learning check cannot be run: {swept.refused[0].refused}")
    found = {cell.id: record.values for cell, record in swept.records}
    pairs = [
        (found[cells["present", seed].id], found[cells["chosen", seed].id])
        for seed in range(1, options.seeds + 1)
        if found.keys() >= {cells["present", seed].id, cells["chosen", seed].id}
    ]
    if len(pairs) < options.seeds:
        say(f"learning check: its time was over after {len(pairs)} of {options.seeds} seeds")
    if is_program(chosen) and programs.repeats(pairs):
        say("learning check: every run learnt exactly the same, which is one seed: put {seed} where it goes")
        pairs = pairs[:1]
    return judged(pairs, options) if pairs else None


Values = Mapping[str, Sequence[float]]


def judged(pairs: Sequence[tuple[Values, Values]], options: SearchOptions) -> Learnt:
    """What the seeds that both sides had come to."""
    return choosing.learning_check(
        options.learn_steps,
        [fmean(present[RETURN]) for present, _ in pairs],
        [fmean(chosen[RETURN]) for _, chosen in pairs],
        [fmean(present[UNTRAINED]) for present, _ in pairs if UNTRAINED in present],
        options.learning_band_share,
    )


def is_wanted(target: Target, options: SearchOptions) -> bool:
    """Whether what is learnt is to be checked: of trainings, and of programs that print it."""
    if is_program(target):
        return options.learning_metric is not None
    return bool(options.learn_steps) and is_training(target)


def learning_s(target: Target, options: SearchOptions) -> float:
    """What one training of the check takes about."""
    return programs.run_s(target) if is_program(target) else training_s(target, options.learn_steps)


def cell_of(target: Target, seed: int, options: SearchOptions, *, untrained: bool) -> Cell:
    """One training with one seed."""
    if not is_program(target):
        return learn_cell(at_seed(target, seed), options.learn_steps, untrained=untrained)
    told = {"metric": options.learning_metric, "seed": seed}
    return Cell(target=target, experiment=programs.LEARNING, asked=told)


def at_seed(target: Target, seed: int) -> Target:
    return target.with_keys({"seed": seed, f"{PREFIX}seed": seed})


def training_s(target: Target, env_steps: int) -> float:
    """What a training of so many env-steps takes about on this machine as it is, with its evaluation."""
    updates = -(-env_steps // per_update(read_training(target)))
    return updates * (update_s(target) or 0.0) + TrainContender(target).evaluation_s()


def learn_cell(target: Target, env_steps: int, *, untrained: bool = False) -> Cell:
    told = {"env_steps": env_steps, "untrained": untrained}
    return Cell(target=target, experiment=f"{__name__}:learn_one", asked=told)


def learn_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """Train for so many env-steps; the record has the returns of the episodes after it, and before it."""
    contender = TrainContender(target)
    recorder = Recorder("bench", contender.spec)
    before = {UNTRAINED: list(contender.untrained())} if asked["untrained"] else {}
    returns, counted = contender.trained_for(asked["env_steps"])
    method = describe_method(contender.spec, rounds=1, iterations=asked["env_steps"], policy=LEARNING)
    return recorder.record(method=method, counters=counted, values=before | {RETURN: list(returns)})
