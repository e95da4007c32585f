"""Measure what hotloop.run with its callback costs Stable-Baselines3's PPO on CartPole.

    ./.venv/bin/python benchmarks/loops.py [--rounds 100] [--quick]

Two models with the same settings and seed learn in turns, one short update a turn: one alone, one with the
callback, in a run that is open meanwhile. A turn's cost is the CPU time of the loop's thread, which a busy
machine moves less than wall; many short turns, because what moves it still lasts longer than a turn. The run
looks at memory and CPU once a second from a thread of its own: that is measured by itself. The rows are those
of one further learning with SB3's own rollouts: how much of its wall they add up to.
"""

from collections.abc import Iterable
from statistics import median
from typing import Any

import torch
from stable_baselines3 import PPO

import benchmark
import hotloop
from hotloop.core.clock import thread_ns
from hotloop.lab.loop.run import SAMPLE_S
from hotloop.loops.run import AnyRun
from hotloop.loops.sb3 import RunCallback
from hotloop.probes.resources import reader
from hotloop.report.kinds.times import account_of
from hotloop.stats.summary import ratio

TURN_STEPS, STEPS, QUICK_STEPS = 128, 2_048, 256
GROUPS = {
    "collecting": ("rollout/env.step", "rollout/store", "rollout/callbacks"),
    "forward": ("rollout/forward",),
    "learning": ("rollout/returns", "learning"),
}
"""What a loop consists of, and the rows that are it: SB3 stores what envs gave, and learns from returns."""
BARE = ("rollout/env.step", "rollout/forward", "learning")
"""The one row of each group that is its work itself, without what SB3 does around it."""
LOOKS = 20


def model(steps: int) -> Any:
    return PPO("MlpPolicy", "CartPole-v1", device="cpu", n_steps=steps, seed=1)


def update_ns(learner: Any, run: AnyRun | None) -> int:
    """CPU time of one rollout and the learning after it."""
    begin_ns = thread_ns()
    learner.learn(TURN_STEPS, reset_num_timesteps=False, callback=RunCallback(run) if run else None)
    return thread_ns() - begin_ns


def turns(rounds: int) -> dict[str, list[int]]:
    """CPU ns of every update, alone and watched."""
    sides = {"alone": model(TURN_STEPS), "watched": model(TURN_STEPS)}
    with hotloop.run("sb3", every=1, output=None, say=lambda _: None) as run:
        made = {
            name: (lambda learner=learner, name=name: update_ns(learner, run if name == "watched" else None))
            for name, learner in sides.items()
        }
        for turn in made.values():
            turn()  # warm
        return benchmark.in_turns(made, rounds)


def look_share() -> float:
    """Of one core, that looking at memory and CPU once in a while takes."""
    read, taken = reader(), list[int]()
    for _ in range(LOOKS):
        begin_ns = thread_ns()
        read()
        taken.append(thread_ns() - begin_ns)
    return median(taken) / (SAMPLE_S * 1e9)


def rows(steps: int) -> dict[str, float]:
    """Share of the wall of every row, of one learning."""
    learner = model(steps)
    with hotloop.run("sb3", output=None, say=lambda _: None) as run:
        learner.learn(4 * steps, callback=RunCallback(run))
    times = account_of(run.record) if run.record else None
    return {row.path: times.share(row.path) for row in times.rows} if times else {}


def added(shares: dict[str, float], names: Iterable[str]) -> float:
    return sum(shares.get(name, 0.0) for name in names)


def grouped(shares: dict[str, float]) -> str:
    """What the groups come to, and what the bare rows do."""
    each = {name: added(shares, rows) for name, rows in GROUPS.items()}
    words = ", ".join(
        f"{name} {share:.1%} ({', '.join(row.rpartition('/')[2] for row in GROUPS[name])})"
        for name, share in each.items()
    )
    bare = ", ".join(row.rpartition("/")[2] for row in BARE)
    return f"{words}: {sum(each.values()):.1%} of the wall. The rows {bare} alone: {added(shares, BARE):.1%}."


def main() -> None:
    arguments = benchmark.parser(__doc__, rounds=100).parse_args()
    torch.set_num_threads(1)
    benchmark.pin(benchmark.one_core())
    steps = QUICK_STEPS if arguments.quick else STEPS
    taken = turns(benchmark.rounds_asked(arguments))
    cost, look, shares = ratio(taken["watched"], taken["alone"]), look_share(), rows(steps)
    table = benchmark.table(["row", "of wall"], [[name, f"{share:.1%}"] for name, share in shares.items()])
    ratio_words = f"{benchmark.ratio_text(cost, 3)} ({cost.pairs} pairs)"
    lines = [
        f"Stable-Baselines3 PPO, CartPole-v1, {steps:,} steps an update, one thread.",
        table,
        grouped(shares),
        f"CPU time with the callback over without, updates of {TURN_STEPS} steps: {ratio_words}.",
        f"The look once a second, from a thread of its own, takes {look:.1%} of a core.",
    ]
    facts = {"taken_ns": taken, "cost": cost, "look_share": look, "shares": shares}
    benchmark.publish("loops", "\n\n".join(lines), facts, arguments)


if __name__ == "__main__":
    main()
