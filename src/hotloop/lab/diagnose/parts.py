"""Delays in the parts of somebody's env: its step, its reset, a policy, functions and spans inside."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.envs.foreign.phases import find, home_of, watching
from hotloop.judge.expect import Trial
from hotloop.lab.diagnose.causal import FIRST, Experiment, refuse_nothing, trials
from hotloop.lab.measure.policy import Actor, RandomPlay, is_live, load, play_of
from hotloop.lab.measure.sides import play
from hotloop.lab.measure.target import Opener

UPDATE_NS = 10_000_000  # What a stretch of calls takes that counts as one update

LONGEST_NS = 60_000_000_000


def of_target(
    record: Record, functions: Sequence[str], turns: int, progress: Progress = silent
) -> list[Trial]:
    """Play the target of a profile with delays in one of its parts at a time."""
    if record.slow is None or record.target.world is not None:
        raise InputError(
            "the phases of a native step cannot be delayed one by one; what the step is worth in a training "
            f"says: hotloop diagnose --causal -- hotloop train {record.target.words} run=NAME"
        )
    experiment = Experiment()
    play_target(experiment, record.slow.asked, record.slow.policy, functions, turns, progress)
    found = trials(experiment.blocks)
    refuse_nothing(found, record.target.words)
    return found


def play_target(
    experiment: Experiment,
    target: Target,
    policy: str,
    functions: Sequence[str],
    turns: int,
    progress: Progress = silent,
) -> None:
    """Play a target until every part of it was delayed often enough."""
    with ExitStack() as stack:
        subject = stack.enter_context(closing(Opener().watched(target)))
        watched = [find(name, home_of(target.name)) for name in functions]
        live = is_live(policy)
        player = Actor(subject, load(policy, timed=True)) if live else subject
        script = RandomPlay(player) if live else stack.enter_context(closing(play_of(policy, subject)))
        player.reset()
        calls = 1
        while play(player, script.draw(calls), calls) < UPDATE_NS:
            calls *= 2
        stack.enter_context(watching(watched))
        spans.enable()
        stack.callback(spans.disable)
        experiment.begin()
        stack.callback(experiment.end)
        begin, updates = now_ns(), 0
        while (taken := now_ns() - begin) < LONGEST_NS and not is_enough(experiment, updates, turns):
            progress(taken, LONGEST_NS)
            play(player, script.draw(calls), calls)
            experiment.turn()
            updates += 1


def is_enough(experiment: Experiment, updates: int, turns: int) -> bool:
    """Whether every part had its turns; where there are no parts, there is nothing to wait for."""
    if updates <= FIRST:
        return False
    counted = Counter(trial.part for trial in trials(experiment.blocks))
    return all(counted[part] >= turns for part in experiment.parts)
