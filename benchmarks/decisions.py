"""Measure deciding on the farm, in turns on one core: by player and algorithm, one env or many in a batch.

    ./.venv/bin/python benchmarks/decisions.py [--rounds 12] [--quick]

Nothing happens in farm/decision, so that who decides is all there is. Then DQN with learning, more or less
often, beside one that only fills its replay; what the replay takes; and what each algorithm adds to a
process. Times are CPU time, which a busy machine takes less from.
"""

from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from time import process_time_ns
from typing import Any

import benchmark
import hotloop
from components import resident
from hotloop.core.settings import Target
from hotloop.lab.measure.resources import release_memory
from hotloop.lab.training.settings import read
from hotloop.lab.training.sides import Mode, TrainSide, untimed

DECIDING = "farm/decision agents=100 perception=false train.num_steps=8 train.torch_threads=1"
ALGORITHMS = ("ppo", "dqn", "double_dqn")
BATCHES = (1, 16)
FREQUENCIES = (1, 4, 16)
ABOUT = (
    "farm/decision, agents that see their own state; networks of 128 and 128, of DQN one a type. CPU time of "
    "a step, with what is kept to learn from: PPO's rollout, DQN's replay."
)


def train_side(name: str, *words: str, mode: Mode = "rollout") -> TrainSide:
    target, *keys = DECIDING.split()
    side = TrainSide(name, untimed(read(Target.typed(target, [*keys, *words]))), mode)
    side.turn(1)
    return side


def measure(rounds: int) -> tuple[str, dict[str, object]]:
    by = deciding(rounds)
    often = frequencies(rounds)
    memory = {name: grown_by(name) for name in ALGORITHMS}
    rows = [
        [name, *(f"{median(by[f'{name} {envs}']):,.2f}" for envs in BATCHES), memory_cell(memory, name)]
        for name in ("random", "weighted", *ALGORITHMS)
    ]
    header = ["who decides", *(f"µs an agent, {100 * envs:,} in a batch" for envs in BATCHES), "MB it adds"]
    each = [
        [name, f"{median(costs):,.2f}", f"{min(costs):,.2f} .. {max(costs):,.2f}"]
        for name, costs in often.items()
    ]
    lines = [
        ABOUT,
        benchmark.table(header, rows),
        "DQN with learning, 1,600 agents in a batch, minibatches of 128; `never` only fills the replay:",
        benchmark.table(["learns every", "µs an agent-step", "over the rounds"], each),
        f"Of that the replay: {replay_text(rounds)}.",
    ]
    return "\n\n".join(lines), {"us_per_agent": by, "by_frequency": often, "bytes": memory}


def memory_cell(memory: Mapping[str, int], name: str) -> str:
    return f"{memory[name] / 1e6:.1f}" if name in memory else ""


def deciding(rounds: int) -> dict[str, list[float]]:
    """CPU µs an agent-step, by who decides and how many envs."""
    turns = dict[str, Callable[[], float]]()
    for envs in BATCHES:
        for player in ("random", "weighted"):
            batch = hotloop.make("farm/decision", num_envs=envs, agents=100, perception=False)
            batch.reset()
            turns[f"{player} {envs}"] = partial(played_us, batch, player, 800 // envs)
        for name in ALGORITHMS:
            words = (f"train.algorithm={name}", f"num_envs={envs}", f"train.minibatch_size={100 * envs}")
            side = train_side(f"{name} {envs}", *words)
            turns[side.name] = partial(learned_us, side, 1)
    return benchmark.in_turns(turns, rounds)


def played_us(batch: Any, player: str, calls: int) -> float:
    begin = process_time_ns()
    for _ in range(calls):
        batch.step(batch.choose(player))
    return (process_time_ns() - begin) / 1e3 / (calls * batch.spec.num_envs * 100)


def learned_us(side: TrainSide, updates: int) -> float:
    turn = side.turn(updates * side.grain)
    return (turn.cpu_ns or 0) / 1e3 / (turn.env_steps * 100)


def frequencies(rounds: int) -> dict[str, list[float]]:
    """CPU µs of an agent-step of DQN, by how often it learns."""
    same = ("num_envs=16", "train.algorithm=dqn", "train.minibatch_size=128", "train.learning_starts=128")
    sides = {"never": train_side("never", *same)}
    for every in FREQUENCIES:
        name = f"{every} step{'s' if every > 1 else ''}"
        sides[name] = train_side(name, *same, f"train.train_frequency={every}", mode="trainer")
    # As many steps for all: of those that learn every 16th, one in two updates of 8 steps does.
    return benchmark.in_turns({name: partial(learned_us, side, 2) for name, side in sides.items()}, rounds)


def replay_text(rounds: int) -> str:
    """What putting in and drawing take, by the replay of a DQN that was played."""
    side = train_side("dqn", "num_envs=16", "train.algorithm=dqn", "train.learning_starts=128")
    algorithm: Any = side.trainer.algorithm
    replay, spent = algorithm.replay, list[int]()
    add = replay.add

    def timed(steps: Any) -> None:
        begin = process_time_ns()
        add(steps)
        spent.append((process_time_ns() - begin) // len(steps.rows))

    replay.add = timed
    drawn = []
    for _ in range(rounds):
        side.turn(side.grain)
        begin = process_time_ns()
        replay.take(replay.draw(128, algorithm.drawing))
        drawn.append((process_time_ns() - begin) / 128)
    return f"putting in takes {median(spent):,.0f} ns an agent-step, drawing {median(drawn):,.0f} ns a sample"


def grown_by(algorithm: str) -> int:
    """Bytes that a training adds to this process: network, optimizer, rollout or replay."""
    release_memory()
    before = resident()["RssAnon"]
    words = (f"train.algorithm={algorithm}", "num_envs=16", "train.minibatch_size=1600")
    side = train_side(algorithm, *words, mode="trainer")
    side.turn(4 * side.grain)
    release_memory()
    grown = resident()["RssAnon"] - before
    side.close()
    return max(grown, 0)


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    benchmark.pin(benchmark.one_core())
    text, values = measure(benchmark.rounds_asked(arguments))
    benchmark.publish("decisions", text, values, arguments)


if __name__ == "__main__":
    main()
