"""Measure collecting by Ray actors on an env that waits 2 ms in every step, and computes nothing.

    ./.venv/bin/python benchmarks/actors.py [--actors 8] [--seeds 6] [--rounds 6] [--quick]

One actor with all envs and so many actors that share them, in turns: one, many, many, one; numbers between
them and a training whose learning takes longer than collecting once at either end, for `plan.py` to be held
against. Beside the rates stands how many cores all of it kept busy, Ray's processes, too: where others use
the machine as well, that is what is missing. Then trainings that collect in place and by actors, with as many
seeds, are held against each other by what they have learnt; --seeds 0 leaves that out. It needs Ray.
"""

import sys
import time
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import fmean, median
from typing import Any

import gymnasium
import numpy as np
import psutil

import benchmark
from hotloop.core.settings import Target
from hotloop.judge.sweep import learning_check
from hotloop.lab.training.settings import read
from hotloop.lab.training.sides import Mode, TrainContender, TrainSide, untimed
from hotloop.stats.summary import Ratio, ratio

ENVS, STEPS = 8, 64
KEYS = {
    "num_envs": str(ENVS),
    "train.num_steps": str(STEPS),
    "train.torch_threads": "1",
    "train.hidden": "32",
}
LEARN_STEPS = 8_192
QUICK_STEPS = 1_024
WARM, ROLLOUTS = 2, 2
"""Before a turn, and in one of one actor."""
WAIT_MS = 2.0
LABORIOUS = {"train.minibatch_size": "32", "train.update_epochs": "256"}
"""Learns longer than eight actors collect."""
WIDE = 10_000
"""Numbers in an observation, where bytes are what takes time."""


class Waiting(gymnasium.Env[Any, Any]):
    """Right is the action that has the sign of what is seen first."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, wait_ms: float, width: int) -> None:
        self.wait_s, self.age = wait_ms / 1e3, 0
        self.observation_space = gymnasium.spaces.Box(-1, 1, (width,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.age = 0
        return self.look(), {}

    def look(self) -> Any:
        shape = self.observation_space.shape
        self.seen = self.np_random.uniform(-1, 1, shape).astype(np.float32)
        return self.seen

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        time.sleep(self.wait_s)
        right = float((self.seen[0] > 0) == bool(action))
        self.age += 1
        return self.look(), right, False, self.age >= 32, {}


def make(wait_ms: float = WAIT_MS, width: int = 4) -> Waiting:
    return Waiting(float(wait_ms), int(width))


def target(collect: str, actors: int, **keys: object) -> Target:
    name = f"{Path(__file__).resolve()}:make"
    return Target(name, {**KEYS, "train.collect": collect, "train.actors": str(actors), **keys})


@dataclass(slots=True, kw_only=True)
class Rate:
    """What came of so many actors, one value a turn."""

    env_steps_per_s: list[float] = field(default_factory=list)
    cores: list[float] = field(default_factory=list)
    """Kept busy by the learner, the actors and Ray."""
    staleness: float = 0.0


def busy_s() -> float:
    """CPU time of this process and all it started."""
    every = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return float(sum(used.user + used.system for used in (each.cpu_times() for each in every)))


def collect(actors: int, into: Rate, mode: Mode = "rollout", **keys: object) -> None:
    """A turn of so many actors, anew, about as long whatever their number."""
    print(f"{mode}, actors: {actors}", file=sys.stderr)
    asked = target("ray", actors, **keys)
    with closing(TrainSide(f"{actors} actors", untimed(read(asked)), mode=mode)) as side:
        side.run(WARM)
        before = busy_s()
        turn = side.turn(side.grain * actors * ROLLOUTS)
        into.cores.append((busy_s() - before) * 1e9 / turn.ns)
        into.env_steps_per_s.append(turn.env_steps * 1e9 / turn.ns)
        assert side.crew is not None
        into.staleness = side.crew.last_staleness


def rates_of(actors: int, rounds: int) -> tuple[dict[int, Rate], Rate]:
    """One actor and so many in turns, and those between; and so many in a training that learns for long."""
    between = [2**power for power in range(1, actors.bit_length()) if 2**power < actors]
    found = {count: Rate() for count in (1, *between, actors)}
    training = Rate()

    def once() -> None:
        for count in between:
            collect(count, found[count])
        collect(actors, training, "trainer", **LABORIOUS)

    once()
    for number in range(rounds):
        for count in (1, actors) if number % 2 else (actors, 1):
            collect(count, found[count])
    once()
    return found, training


def speed_of(rates: dict[int, Rate]) -> Ratio:
    """How many times as fast as one actor most actors are."""
    one, many = ([1e9 / each for each in rates[count].env_steps_per_s] for count in (1, max(rates)))
    return ratio(one, many)


def here(mode: Mode, **keys: object) -> TrainSide:
    """The same training, collecting in place, and waiting for nothing."""
    return TrainSide("here", untimed(read(target("here", 1, wait_ms=0, **keys))), mode=mode)


def learn_s(**keys: object) -> float:
    """What learning from one rollout takes: an update without its rollout, by the CPU time of one thread."""
    took = {}
    modes: tuple[Mode, ...] = ("rollout", "trainer")
    for mode in modes:
        with closing(here(mode, **keys)) as side:
            side.run(WARM)
            took[mode] = median((side.turn(side.grain).cpu_ns or 0) / 1e9 for _ in range(9))
    return took["trainer"] - took["rollout"]


def taken_in_per_s() -> float:
    """Bytes a second that a learner takes out of the object store, of rollouts that lie there."""
    asked = target("ray", 1, wait_ms=0, width=WIDE, **{"train.staleness": "1"})
    rates = []
    with closing(TrainSide("wide", untimed(read(asked)), mode="rollout")) as side:
        side.run(WARM)
        assert side.crew is not None
        for _ in range(3):
            [there] = side.trainer.algorithm.collector.pending[0]
            side.crew.ray.wait([there], timeout=None)
            rates.append(side.grain * WIDE * 4 * 1e9 / side.run(1))
    return median(rates)


def sizes() -> dict[str, float]:
    """Samples and bytes of a rollout, bytes of the weights, what a step waits, and what learning takes."""
    with closing(here("rollout")) as side:
        weights = sum(part.nbytes for part in side.trainer.network.state_dict().values())
        kept = side.trainer.algorithm.collector.rollout
        arrays = (kept.observations, kept.actions, kept.log_probs, kept.values, kept.rewards, kept.dones)
        return {
            "samples": side.grain,
            "rollout_bytes": sum(array.nbytes for array in arrays),
            "weights_bytes": weights,
            "wait_s": WAIT_MS / 1e3,
            "learn_s": learn_s(),
            "laborious_learn_s": learn_s(**LABORIOUS),
            "taken_in_per_s": taken_in_per_s(),
        }


def returns(actors: int, seeds: int, env_steps: int) -> dict[str, Any]:
    """What a training has learnt that collects in place, and one that collects by actors."""
    found: dict[str, list[float]] = {}
    for way in ("here", "ray"):
        found[way] = [
            fmean(
                TrainContender(
                    target(
                        way, actors, wait_ms=0, seed=seed, **{"train.seed": seed, "train.eval.episodes": 16}
                    )
                ).returns_after(env_steps)
            )
            for seed in range(1, seeds + 1)
        ]
        print(f"{way}: {found[way]}", file=sys.stderr)
    return {"returns": found, "learnt": asdict(learning_check(env_steps, found["here"], found["ray"]))}


def page(rates: dict[int, Rate]) -> str:
    rows = [
        [
            str(actors),
            f"{median(each.env_steps_per_s):,.0f}",
            f"{min(each.env_steps_per_s):,.0f} .. {max(each.env_steps_per_s):,.0f}",
            f"{median(each.cores):.2f}",
            f"{each.staleness:.0f}",
        ]
        for actors, each in rates.items()
    ]
    found = speed_of(rates)
    lines = [
        benchmark.table(["actors", "env-steps/s", "over the rounds", "cores kept busy", "staleness"], rows),
        (
            f"{max(rates)} actors over as many envs, speed over that of one: {benchmark.ratio_text(found)}. "
            f"{benchmark.resolution(found)}"
        ),
    ]
    return "\n\n".join(lines)


def learning_page(learning: dict[str, Any]) -> str:
    told = learning["learnt"]
    between = "" if told["low"] is None else f" [{told['low']:+.2f}, {told['high']:+.2f}]"
    rows = [[way, *(f"{value:.2f}" for value in each)] for way, each in learning["returns"].items()]
    seeds = [f"seed {number}" for number in range(1, len(rows[0]))]
    return "\n\n".join(
        [
            benchmark.table(["mean return, collected", *seeds], rows),
            f"After {told['env_steps']:,} env-steps; beyond in place by {told['difference']:+.2f}{between}.",
        ]
    )


def main() -> None:
    parser = benchmark.parser(__doc__, rounds=6)
    parser.add_argument("--actors", type=int, default=8, help="that share the envs (default 8)")
    parser.add_argument("--seeds", type=int, default=6, help="trainings of each side; 0 leaves them out")
    arguments = parser.parse_args()
    rounds = benchmark.rounds_asked(arguments)
    rates, training = rates_of(arguments.actors, rounds)
    seeds = min(arguments.seeds, 1) if arguments.quick else arguments.seeds
    steps = QUICK_STEPS if arguments.quick else LEARN_STEPS
    values = {"rates": rates, "training": training, "ratio": speed_of(rates), "sizes": sizes()}
    benchmark.publish("actors", page(rates), values, arguments)
    if seeds:
        learning = returns(arguments.actors, seeds, steps)
        benchmark.publish("actors-learning", learning_page(learning), {"learning": learning}, arguments)


if __name__ == "__main__":
    main()
