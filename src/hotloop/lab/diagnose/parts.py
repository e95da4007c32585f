"""Delays in the parts of somebody's environment: its step, its reset, a policy, functions and spans inside.

It is played in a process of its own, which only looks; what it saw is read as that of any loop.
"""

import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, closing

from hotloop.core import spans
from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.target import Target
from hotloop.envs.foreign.functions import find, home_of, watching
from hotloop.judge.slopes import Trial
from hotloop.lab.diagnose.causal import FIRST, Experiment, of_program, trials, write
from hotloop.lab.measure.policy import Actor, RandomPlay, is_live, load, play_of
from hotloop.lab.measure.stepping import play
from hotloop.lab.measure.target import Opener
from hotloop.lab.programs.launch import Program

UPDATE_NS = 10_000_000
"""What a stretch of calls takes that counts as one update."""

LONGEST_NS = 60_000_000_000

START = "import sys; from hotloop.lab.diagnose.parts import play_target; play_target(sys.argv[1])"


def of_target(
    record: Record, functions: Sequence[str], turns: int, progress: Progress = silent
) -> list[Trial]:
    """Play the target of a profile with delays in one of its parts at a time."""
    if record.slow is None or record.target.world is not None:
        raise InputError(
            "the phases of a native step cannot be delayed one by one; what the step is worth in a training "
            f"says: hotloop diagnose --causal -- hotloop train {record.target.words} run=NAME"
        )
    asked = {
        "target": record.slow.asked.name,
        "keys": record.slow.asked.keys,
        "policy": record.slow.policy,
        "functions": [*functions],
        "turns": turns,
    }
    program = Program((sys.executable, "-c", START, json.dumps(asked)))
    return of_program(program, turns, 1, progress)


def play_target(text: str) -> None:
    """Play what is asked for until every part was delayed often enough, and leave what was seen."""
    asked = json.loads(text)
    target, turns = Target(asked["target"], asked["keys"]), int(asked["turns"])
    experiment = Experiment()
    with ExitStack() as stack:
        subject = stack.enter_context(closing(Opener().watched(target)))
        functions = [find(name, home_of(target.name)) for name in asked["functions"]]
        live = is_live(asked["policy"])
        player = Actor(subject, load(asked["policy"], timed=True)) if live else subject
        script = (
            RandomPlay(player) if live else stack.enter_context(closing(play_of(asked["policy"], subject)))
        )
        player.reset()
        calls = 1
        while play(player, script.draw(calls), calls) < UPDATE_NS:
            calls *= 2
        stack.enter_context(watching(functions))
        spans.enable()
        stack.callback(spans.disable)
        experiment.begin()
        stack.callback(experiment.end)
        begin, updates = now_ns(), 0
        while now_ns() - begin < LONGEST_NS and not is_enough(experiment, updates, turns):
            play(player, script.draw(calls), calls)
            experiment.turn()
            updates += 1
    write(experiment)


def is_enough(experiment: Experiment, updates: int, turns: int) -> bool:
    """Whether every part had its turns; where there are no parts, there is nothing to wait for."""
    if updates <= FIRST:
        return False
    counted = Counter(trial.part for trial in trials(experiment.blocks))
    return all(counted[part] >= turns for part in experiment.parts)
