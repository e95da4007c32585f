"""The winner against the present settings: in turns, and by what both learn in as many env-steps."""

from collections.abc import Callable
from dataclasses import asdict
from statistics import fmean
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.experiments import LearningCheck
from hotloop.core.target import Target
from hotloop.judge import sweep as choosing
from hotloop.lab.cells import Cell, Executor, sweep
from hotloop.lab.compare.compare import Asked as Comparing
from hotloop.lab.compare.compare import compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan
from hotloop.lab.measure.policy import LEARNING
from hotloop.lab.measure.record import Recorder, describe_method
from hotloop.lab.training.settings import PREFIX, is_training, per_update
from hotloop.lab.training.settings import read as read_training
from hotloop.lab.training.sides import TrainContender, compare_trainings
from hotloop.lab.tune import programs
from hotloop.lab.tune.combinations import is_same
from hotloop.lab.tune.halving import NEVER, Deadline, update_s
from hotloop.lab.tune.programs import is_program
from hotloop.options.tune import SearchOptions

# How many times as long as asked for each confirmation may take, and as much again for a verdict
LONGER = (1, 2)


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
        # more rounds could tell what these could not, were they too few for an interval or too noisy
        is_open = any(each.outcome == "cannot tell" for each in found.record.comparisons)
        if times == LONGER[-1] or found.record.partial or not is_open or longer_ns <= budget_ns:
            break
        say(
            f"confirmation: {budget_ns / 1e9:.0f} s could not tell ({found.record.comparisons[0].why}): "
            f"once more, up to {longer_ns / 1e9:.0f} s"
        )
    return found.record


def within(end: Deadline, wanted_ns: int, least_ns: int = 0) -> int:
    """Of what is wanted, as much as can be had twice: faster or slower takes it a second time."""
    return int(min(wanted_ns, max(1e9 * end.left_s / 2, least_ns)))


def confirm_one(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """A target against the present settings, in turns."""
    present = Target(**asked.pop("present"))
    if is_program(target):
        return programs.confirm_one(target, present, progress, **asked)
    how = Comparing(plan=Plan(budget_ns=asked["budget_ns"]), unlike=True)
    if is_training(target):
        return compare_trainings(TrainContender(present), TrainContender(target), how, None, progress)
    return compare(TargetContender(present), TargetContender(target), how, progress)


# Of each episode after a training of the learning check, and before it
RETURN, UNTRAINED = "return", "untrained_return"

LONGEST = 2.0  # Times what was said that the check may take: no further seed is begun after that


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
) -> LearningCheck | None:
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
    if not pairs:
        return None
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
        seeded = target.with_keys({"seed": seed, f"{PREFIX}seed": seed})
        return learn_cell(seeded, options.learn_steps, untrained=untrained)
    told = {"metric": options.learning_metric, "seed": seed}
    return Cell(target=target, experiment=programs.LEARNING, asked=told)


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
