"""Measure what hotloop.run with its callback costs Stable-Baselines3's PPO on CartPole.

    ./.venv/bin/python benchmarks/loops.py [--rounds 12] [--quick]

Two models with the same settings and seed learn in turns, one update a turn: one alone, one with a run around
it. A turn's cost is the CPU time of this process, all its threads, which a busy machine moves less than wall.
The rows are those of one further learning: how much of its wall they add up to.
"""

import os
from typing import Any

import torch
from stable_baselines3 import PPO

import benchmark
import hotloop
from hotloop.core.clock import cpu_ns
from hotloop.loops.sb3 import RunCallback
from hotloop.report.sections.train import times_of
from hotloop.stats.ratio import ratio

STEPS, QUICK_STEPS = 2_048, 256
ROWS = ("forward", "env.step", "learning")


def model(steps: int) -> Any:
    return PPO("MlpPolicy", "CartPole-v1", device="cpu", n_steps=steps, seed=1)


def update_ns(learner: Any, steps: int, *, watched: bool) -> int:
    """CPU time of one rollout and the learning after it."""
    os.environ["HOTLOOP_RUN"] = "on" if watched else "off"
    begin_ns = cpu_ns()
    if not watched:
        learner.learn(steps, reset_num_timesteps=False)
        return cpu_ns() - begin_ns
    with hotloop.run("sb3", every=1, output=None, say=lambda _: None) as run:
        begin_ns = cpu_ns()
        learner.learn(steps, reset_num_timesteps=False, callback=RunCallback(run))
        return cpu_ns() - begin_ns


def rows(learner: Any, steps: int) -> dict[str, float]:
    """Share of the wall of every row, of one learning."""
    with hotloop.run("sb3", output=None, say=lambda _: None) as run:
        learner.learn(steps, reset_num_timesteps=False, callback=RunCallback(run))
    times = times_of(run.record) if run.record else None
    return {row.path: times.share(row.path) for row in times.regions} if times else {}


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    torch.set_num_threads(1)
    benchmark.pin(benchmark.one_core())
    steps = QUICK_STEPS if arguments.quick else STEPS
    alone, watched = model(steps), model(steps)
    for each, looked in ((alone, False), (watched, True)):
        update_ns(each, steps, watched=looked)
    alone_ns, watched_ns = list[int](), list[int]()
    for turn in range(benchmark.rounds_asked(arguments)):
        for looked in (turn % 2 == 0, turn % 2 != 0):
            taken = watched_ns if looked else alone_ns
            taken.append(update_ns(watched if looked else alone, steps, watched=looked))
    cost, shares = ratio(watched_ns, alone_ns), rows(watched, 4 * steps)
    part = sum(shares.get(name, 0.0) for name in ROWS)
    table = benchmark.table(["row", "of wall"], [[name, f"{share:.1%}"] for name, share in shares.items()])
    lines = [
        f"Stable-Baselines3 PPO, CartPole-v1, {steps:,} steps an update, one thread.",
        table,
        f"{', '.join(ROWS)}: {part:.1%} of the wall; all rows: {sum(shares.values()):.1%}.",
        f"CPU time with the run over without: {benchmark.ratio_text(cost)}.",
    ]
    facts = {"alone_ns": alone_ns, "watched_ns": watched_ns, "cost": cost, "shares": shares}
    benchmark.publish("loops", "\n\n".join(lines), facts, arguments)


if __name__ == "__main__":
    main()
