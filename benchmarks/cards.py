"""Measure the cards world on one core: games, encoded decisions, rollouts of a search, and a model as hero.

    ./.venv/bin/python benchmarks/cards.py [--rounds 12] [--quick] [--threads]

Random play against random play on cards/mirror, choosing included: `games` without observations and the
villain inside a step, `encoded` with both seats outside, so that every decision is encoded. `search` plays
against the simple player; a rollout is one game to its end from the decision at hand. `model` plays 256 games
at once with a network of the documented run's size; what is not its forward pass is steps, encoding, masks
and selection. Seconds are CPU time of the one thread, so that a busy machine is not counted as slow code.
`--threads` holds two threads against two processes first, by the wall's clock, which takes two quiet cores.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

import benchmark
import hotloop
import threads
from hotloop.core.clock import cpu_ns
from hotloop.envs.batch import Batch
from hotloop.stats.summary import Ratio, summarise
from hotloop.train.arithmetic import find_kernels, use_threads
from hotloop.train.evaluation import LoadedPolicy, PolicyRunner
from hotloop.train.networks import default_network
from hotloop.train.normalize import ObservationScale, row_shape
from hotloop.train.settings import TrainSettings

TARGET, ENVS, MODEL_ENVS, ROLLOUTS = "cards/mirror", 64, 256, 64
CALLS = {"games": 1_500, "encoded": 2_000, "search": 12, "model": 100}
QUICK_SHARE = 10
WORLDS = 1_024
SETTINGS = TrainSettings(hidden=(128,), torch_threads=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """One turn of one side."""

    cpu_ns: int
    decisions: int
    games: int = 0
    rollouts: int = 0
    forward_ns: int = 0


def stretch(batch: Batch, calls: int, choose: Callable[[], Any]) -> Stretch:
    """Step a batch so often; every player's decisions count, those of a villain inside too."""
    before, begin = batch.counters, cpu_ns()
    for _ in range(calls):
        batch.step(choose())
    took, after = cpu_ns() - begin, batch.counters
    gained = {name: after[name] - before[name] for name in ("coverage.decisions_made", "resets")}
    return Stretch(cpu_ns=took, decisions=gained["coverage.decisions_made"], games=gained["resets"])


def opened(**keys: object) -> Batch:
    batch = hotloop.make(TARGET, **{"num_envs": ENVS, "impl": "native", "threads": 1, "seed": 42, **keys})
    batch.reset()
    for _ in range(50):
        batch.step(batch.choose("random"))
    return batch


def searching(batch: Batch, calls: int) -> Stretch:
    """Only the search is timed: its rollouts are counted by the options that it had."""
    assert batch.masks is not None
    took = rollouts = 0
    for _ in range(calls):
        options = batch.masks.reshape(ENVS, -1).sum(-1)
        rollouts += int((np.maximum(ROLLOUTS // np.maximum(options, 1), 1) * options).sum())
        begin = cpu_ns()
        actions = batch.choose("search")
        took += cpu_ns() - begin
        batch.step(actions)
    return Stretch(cpu_ns=took, decisions=calls * ENVS, rollouts=rollouts)


class Forward:
    """A network that knows how much CPU time it took."""

    def __init__(self, network: Any) -> None:
        self._network, self.ns = network, 0

    def __call__(self, *given: Any) -> Any:
        begin = cpu_ns()
        found = self._network(*given)
        self.ns += cpu_ns() - begin
        return found


def model(batch: Batch) -> tuple[PolicyRunner, Forward]:
    """A fresh network of the documented size: what it costs does not depend on what it has learned."""
    network = default_network(batch.spec, row_shape(batch), SETTINGS).requires_grad_(False)
    forward = Forward(network)
    policy = LoadedPolicy(
        network=network,
        student=forward,
        observation_scale=ObservationScale(row_shape(batch), torch.device("cpu"), active=False),
        kernels=find_kernels(SETTINGS, batch.spec.num_actions),
        device=torch.device("cpu"),
        draws=False,
    )
    return PolicyRunner(policy, batch, seed=1), forward


def playing(actor: PolicyRunner, forward: Forward, batch: Batch, calls: int) -> Stretch:
    """Decisions are those of the model; the villain's inside are part of their steps."""
    before = forward.ns
    took = stretch(batch, calls, actor.choose).cpu_ns
    return Stretch(cpu_ns=took, decisions=calls * MODEL_ENVS, forward_ns=forward.ns - before)


def turns(share: int) -> dict[str, Callable[[], Stretch]]:
    games, encoded = opened(villain="random", encode=False), opened(villain="none")
    searched = opened(villain="simple", search_rollouts=ROLLOUTS, encode=False)
    played = opened(villain="simple", num_envs=MODEL_ENVS)
    actor, forward = model(played)
    calls = {name: max(count // share, 2) for name, count in CALLS.items()}
    return {
        "games": lambda: stretch(games, calls["games"], lambda: games.choose("random")),
        "encoded": lambda: stretch(encoded, calls["encoded"], lambda: encoded.choose("random")),
        "search": lambda: searching(searched, calls["search"]),
        "model": lambda: playing(actor, forward, played, calls["model"]),
    }


def rates(taken: list[Stretch], unit: str) -> Any:
    """So many a second of CPU time, over the rounds."""
    return summarise([asdict(each)[unit] * 1e9 / each.cpu_ns for each in taken])


def page(taken: dict[str, list[Stretch]], ways: dict[str, Any]) -> str:
    rows = [
        [name, unit, f"{found.median:,.0f}", f"{found.min:,.0f} .. {found.max:,.0f}"]
        for name, unit in UNITS
        for found in [rates(taken[name], unit)]
    ]
    beyond = summarise([(each.cpu_ns - each.forward_ns) / each.decisions / 1e3 for each in taken["model"]])
    whole = summarise([each.cpu_ns / each.decisions / 1e3 for each in taken["model"]])
    told = (
        f"A model as hero, {MODEL_ENVS} games at once: {whole.median:.2f} µs a decision, of it "
        f"{beyond.median:.2f} ({beyond.min:.2f} .. {beyond.max:.2f}) beside the forward pass."
    )
    lines = [told, *(threads_line(ways["ratio"]) for _ in range(bool(ways)))]
    return "\n\n".join([benchmark.table(["what", "unit", "a second", "over the rounds"], rows), *lines])


def threads_line(found: Ratio) -> str:
    text = benchmark.ratio_text(found, 3)
    return f"{WORLDS} games, two threads / two processes: {text}. {benchmark.resolution(found)}"


UNITS = (
    ("games", "games"),
    ("games", "decisions"),
    ("encoded", "decisions"),
    ("search", "rollouts"),
    ("search", "decisions"),
)


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("--threads", action="store_true", help="hold two threads against two processes, too")
    arguments = parser.parse_args()
    share, rounds = QUICK_SHARE if arguments.quick else 1, benchmark.rounds_asked(arguments)
    steps = (4 if arguments.quick else 200) * WORLDS
    use_threads(1)
    ways: dict[str, Any] = {}
    if arguments.threads:
        ways = threads.measure_ways(WORLDS, rounds=rounds, agent_steps=steps, target=TARGET, encode=False)
    benchmark.pin(benchmark.one_core())
    taken = benchmark.in_turns(turns(share), rounds)
    values = {name: [asdict(each) for each in each_round] for name, each_round in taken.items()}
    benchmark.publish("cards", page(taken, ways), {"cards": values, "threads": ways}, arguments)


if __name__ == "__main__":
    main()
