"""Measure the trainer beside a bare torch loop that does its forward and backward passes and nothing else.

    ./.venv/bin/python benchmarks/trainer.py [--rounds 12] [--quick]

Prospector, 1,024 envs, rollouts of 64 steps, a trunk of 2x128, minibatches of 4,096, float32, two threads;
with 4 epochs and with 1. The bare loop has the same network and torch's Adam. For each rollout it does the
forward passes of acting, and for each minibatch the forward pass with PPO's losses in torch's operations, the
backward pass and a step of Adam, over random numbers that lie ready as minibatches: no env, no sampling,
nothing stored, shuffled, scaled or clipped. A third side has the loss of a classifier, cross-entropy and a
squared error, in place of PPO's. All learn at a rate too small to change the policy: every round plays the
same game. The sides take turns.

Python's part of a rollout is held against that of one env, whose arrays cost next to nothing: all that its
steps cost, the network's own operations included, is counted as Python. They take turns, too.
"""

import math
import statistics
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter_ns
from typing import Any

import hotloop.train  # asks OpenMP to sleep while it waits, which it reads when torch is imported

# isort: split
import torch
from torch import Tensor

import benchmark
from hotloop.core import spans
from hotloop.core.time_tree import TimeTree
from hotloop.core.turn_clock import Turn
from hotloop.stats.summary import ratio
from hotloop.train.ppo import Samples, losses
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

TARGET = "prospector/default"
ENVS = 1_024
THREADS = 2
SETTINGS = TrainSettings(
    hidden=(128, 128), num_steps=64, minibatch_size=4_096, learning_rate=1e-7, torch_threads=THREADS
)
ROLLOUT = ENVS * SETTINGS.num_steps
"""Env-steps of an update; each env has one agent."""
EPOCHS = (4, 1)
TRAINER, BARE, CLASSIFIER = "trainer", "bare loop", "classifier"
UPDATES = 4
"""In a turn of one side."""


def make_trainer(epochs: int, envs: int = ENVS) -> Trainer:
    batch = hotloop.make(TARGET, num_envs=envs, impl="native", threads=min(THREADS, envs))
    minibatch = min(SETTINGS.minibatch_size, envs * SETTINGS.num_steps)
    return Trainer(batch, replace(SETTINGS, update_epochs=epochs, minibatch_size=minibatch))


@dataclass(frozen=True, slots=True)
class Whole:
    """Our trainer as it is, everything included but evaluation."""

    trainer: Trainer

    def turn(self, updates: int) -> Turn:
        start = perf_counter_ns()
        for _ in range(updates):
            self.trainer.update()
        return Turn(perf_counter_ns() - start, updates * ROLLOUT)


class Bare:
    """The passes alone."""

    def __init__(self, like: Trainer) -> None:
        self.settings = settings = like.settings
        self.network = deepcopy(like.network)  # whose passes are torch's
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=settings.learning_rate, fused=True)
        random = torch.Generator().manual_seed(1)
        self.rows = ENVS
        self.seen = torch.randn(ENVS, 260, generator=random)
        self.parts = [
            self.part(settings.minibatch_size, random)
            for _ in range(ENVS * settings.num_steps // settings.minibatch_size)
        ]

    @staticmethod
    def part(size: int, random: torch.Generator) -> Samples:
        return Samples(
            observations=torch.randn(size, 260, generator=random),
            actions=torch.randint(69, (size,), generator=random),
            log_probs=torch.full((size,), -math.log(69)),
            advantages=torch.randn(size, generator=random),
            returns=torch.randn(size, generator=random),
        )

    def turn(self, updates: int) -> Turn:
        start = perf_counter_ns()
        for _ in range(updates):
            self.act()
            for _ in range(self.settings.update_epochs):
                for part in self.parts:
                    self.learn(part)
        return Turn(perf_counter_ns() - start, updates * ROLLOUT)

    @torch.no_grad()
    def act(self) -> None:
        for _ in range(self.settings.num_steps):
            self.network(self.seen)

    def learn(self, part: Samples) -> None:
        loss = self.loss(part)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()

    def loss(self, part: Samples) -> Tensor:
        return losses(self.network, part, self.settings, imitating=0.0)["total"]


class Classifier(Bare):
    """The passes of a classifier."""

    def loss(self, part: Samples) -> Tensor:
        logits, values, _ = self.network(part.observations)
        surprise = torch.nn.functional.cross_entropy(logits, part.actions)
        return surprise + (values - part.returns).square().mean()


def measure(epochs: int, rounds: int, updates: int) -> dict[str, Any]:
    made = {TRAINER: Whole, BARE: Bare, CLASSIFIER: Classifier}
    sides = {name: make(make_trainer(epochs)) for name, make in made.items()}
    for side in sides.values():
        side.turn(1)
    taken = benchmark.in_turns({name: partial(side.turn, updates) for name, side in sides.items()}, rounds)
    values = {name: benchmark.side_values(turns) for name, turns in taken.items()}
    ratios = {name: benchmark.speed_ratio(values, TRAINER, name) for name in (BARE, CLASSIFIER)}
    return {"sides": values, "ratios": ratios}


def rollout_step_us(trainer: Trainer) -> float:
    """What a step of the whole batch costs in a rollout."""
    start = perf_counter_ns()
    trainer.algorithm.collect(0)
    return (perf_counter_ns() - start) / 1e3 / SETTINGS.num_steps


def python_share(pairs: int) -> dict[str, Any]:
    """Python's part of a rollout, as what a step of one env costs beside a step of all; they take turns."""
    many, one = make_trainer(1), make_trainer(1, envs=1)
    for _ in range(2):
        for trainer in (many, one):
            rollout_step_us(trainer)
    both = {"step_us": partial(rollout_step_us, many), "fixed_us": partial(rollout_step_us, one)}
    taken = benchmark.in_turns(both, pairs)
    return {**taken, "share": ratio(taken["fixed_us"], taken["step_us"])}


def shares(updates: int) -> dict[str, float]:
    """Each region's share of an update, and what no region has."""
    trainer = make_trainer(4)
    trainer.update()
    spans.enable()
    start = perf_counter_ns()
    for _ in range(updates):
        trainer.update()
    wall = perf_counter_ns() - start
    spans.disable()
    rows = [row for top in spans.tree() for row in top.walk()]
    return {row.path: row.total_ns / wall for row in rows} | {"unaccounted": unaccounted(spans.tree(), wall)}


def unaccounted(tops: Sequence[TimeTree], wall_ns: int) -> float:
    """What is in no region, or in a region and none of its parts."""
    rows = [row for top in tops for row in top.walk() if row.children]
    return 1 - (sum(top.total_ns for top in tops) - sum(row.self_ns for row in rows)) / wall_ns


def python_line(python: dict[str, Any]) -> str:
    whole, fixed = (statistics.median(python[name]) for name in ("step_us", "fixed_us"))
    share = python["share"]
    return (
        f"A step of a rollout: {whole:,.0f} µs, of one env {fixed:,.0f} µs: at most {share.estimate:.1%} "
        f"[{share.low:.1%}, {share.high:.1%}] is Python's."
    )


def page(found: dict[int, dict[str, Any]], python: dict[str, Any], parts: dict[str, float]) -> str:
    rows = [
        [f"{name}, {epochs} epoch{'s' if epochs > 1 else ''}", *benchmark.rate_cells(side)]
        for epochs, measured in found.items()
        for name, side in measured["sides"].items()
    ]
    lines = [
        *(
            f"Trainer / {name}, {epochs} epoch{'s' if epochs > 1 else ''}: "
            f"{benchmark.ratio_text(speed)}. {benchmark.resolution(speed)}"
            for epochs, measured in found.items()
            for name, speed in measured["ratios"].items()
        ),
        python_line(python),
        f"In no region: {parts['unaccounted']:.2%} of an update.",
    ]
    regions = [[path.replace("/", " > "), benchmark.percent(share)] for path, share in parts.items()]
    return "\n\n".join(
        [
            benchmark.table(["side", *benchmark.RATE_HEADER], rows),
            *lines,
            benchmark.table(["region", "share"], regions),
        ]
    )


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    benchmark.pin(benchmark.usable_cores()[:THREADS])
    rounds, updates = benchmark.rounds_asked(arguments), 1 if arguments.quick else UPDATES
    found = {epochs: measure(epochs, rounds, updates) for epochs in EPOCHS}
    python, parts = python_share(6 if arguments.quick else 20), shares(2 if arguments.quick else 10)
    values = {"epochs": found, "python": python, "shares": parts}
    benchmark.publish("trainer", page(found, python, parts), values, arguments)


if __name__ == "__main__":
    main()
