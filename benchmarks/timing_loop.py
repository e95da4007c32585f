"""Measure what Hotloop's loop adds to somebody's environment, beside a plain timing loop of the env itself.

    ./.venv/bin/python benchmarks/timing_loop.py [--rounds 60] [--quick]

Two of each env are made from one seed and play the same random actions in turns: one as `hotloop bench` plays
it, one in the loop that anybody would write, `step` and `reset` with the env itself. A turn's cost is the CPU
time of this thread, which a busy machine moves less than wall time. An env that is not installed is left out.
"""

from collections.abc import Callable
from time import thread_time_ns
from typing import Any

import gymnasium
import numpy as np

import benchmark
from hotloop.core.errors import HotloopError
from hotloop.core.settings import Target
from hotloop.envs.open import open_target
from hotloop.lab.measure.policy import RandomPlay
from hotloop.lab.measure.sides import no_collection, play
from hotloop.stats.summary import Ratio, ratio

ENVS = {"CartPole-v1": (2_000, 0.05), "Pendulum-v1": (1_000, 0.03), "HalfCheetah-v5": (300, 0.03)}
"""Id to the steps of a turn, and what it may cost at most."""


def ours(name: str, steps: int) -> Callable[[], int]:
    """A turn as bench plays it."""
    subject = open_target(Target(f"gym:{name}"))
    script = RandomPlay(subject)
    subject.reset()

    def turn() -> int:
        drawn, begin = script.draw(steps), thread_time_ns()
        play(subject, drawn, steps)
        return thread_time_ns() - begin

    return turn


def plain(name: str, steps: int) -> Callable[[], int]:
    """A turn of the loop that anybody would write."""
    env: Any = gymnasium.make(name)
    subject = open_target(Target(f"gym:{name}"))
    script = RandomPlay(subject)  # for the same actions
    env.reset(seed=42)

    def turn() -> int:
        drawn, begin = script.draw(steps), thread_time_ns()
        for action in drawn[:steps]:
            _, _, ended, cut, _ = env.step(action)
            if ended or cut:
                env.reset()
        return thread_time_ns() - begin

    return turn


def measured(name: str, steps: int, rounds: int) -> dict[str, list[int]]:
    sides = {"hotloop": ours(name, steps), "plain": plain(name, steps)}
    for turn in sides.values():
        turn()
    with no_collection():
        return benchmark.in_turns(sides, rounds)


def row(name: str, found: Ratio, most: float) -> list[str]:
    cost = found.estimate - 1
    return [
        name,
        benchmark.ratio_text(found, 3),
        f"{cost:+.1%}",
        f"{most:.0%}",
        "yes" if cost <= most else "no",
    ]


def main() -> None:
    arguments = benchmark.parser(__doc__, rounds=60).parse_args()
    rounds, rows, kept = benchmark.rounds_asked(arguments), [], {}
    for name, (steps, most) in ENVS.items():
        try:
            values = measured(name, max(20, steps // (10 if arguments.quick else 1)), rounds)
        except (HotloopError, gymnasium.error.Error) as error:
            rows.append([name, f"left out: {error}"[:60], "", f"{most:.0%}", ""])
            continue
        kept[name] = values
        rows.append(row(name, ratio(np.asarray(values["hotloop"], float).tolist(), values["plain"]), most))
    text = benchmark.table(["env", "times as long as a plain loop", "cost", "at most", "kept"], rows)
    benchmark.publish("timing_loop", text, {"cpu_ns": kept}, arguments)


if __name__ == "__main__":
    main()
