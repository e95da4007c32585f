"""DQN: how much it overestimates, beside double DQN; and what asking for all agents at once brings.

    ./.venv/bin/python benchmarks/dqn.py overestimate [--seeds 1 2 3] [--quick]
    ./.venv/bin/python benchmarks/dqn.py batching [--rounds 12] [--quick]

`overestimate` trains both on the same seeds, then plays their best actions on envs that training has not
seen: what the network expected of each step is held against the discounted return that came. `batching`
collects rollouts with one network a type, asked for all agents of a step at once or for one after another;
both choose the same actions, which tests/train/test_dqn.py shows.
"""

import argparse
from collections.abc import Sequence
from contextlib import closing
from statistics import fmean
from typing import Any

import benchmark
import hotloop
from hotloop.core.settings import Target, apply
from hotloop.lab.training.settings import read
from hotloop.lab.training.sides import TrainSide, untimed
from hotloop.stats.summary import mean_interval, ratio
from hotloop.train.settings import TrainSettings, usual_for
from hotloop.train.trainer import Trainer
from q_estimates import Estimates, estimates

TARGET = "farm/dev"
WORLD = {"perception": False}
BATCH = {"num_envs": 8}
GAMMA = 0.95
TRAIN: dict[str, object] = {
    "total_timesteps": 40_960,
    "num_steps": 32,
    "minibatch_size": 128,
    "gamma": GAMMA,
    "learning_rate": "1e-3",
    "train_frequency": 4,
    "gradient_steps": 2,
    "target_network_frequency": 100,
    "end_e": 0.05,
    "hidden": "64,64",
    "torch_threads": 1,
}
STEPS, HORIZON = 200, 120
"""Steps whose estimates count, and those after them in which returns come in."""
UNSEEN = 1_000_003

DECIDING = "farm/dev num_envs=4 train.algorithm=dqn train.num_steps=16 train.torch_threads=1"
TOGETHER, ONE_BY_ONE = "all agents at once", "one after another"


def command(algorithm: str) -> str:
    train = {"algorithm": algorithm, **TRAIN}
    keys = {**WORLD, **BATCH, **{f"train.{key}": value for key, value in train.items()}}
    return f"hotloop train {TARGET} " + " ".join(f"{key}={value}" for key, value in keys.items())


def trained(algorithm: str, seed: int, *, quick: bool) -> Estimates:
    """Train, and what its network expects beside what comes."""
    keys = {**TRAIN, "algorithm": algorithm, "seed": seed}
    settings = apply(TrainSettings, usual_for(keys), {"total_timesteps": 2_048} if quick else {})
    with closing(hotloop.make(TARGET, impl="native", seed=seed, **WORLD, **BATCH)) as batch:
        trainer = Trainer(batch, settings)
        while not trainer.finished:
            trainer.update()
        with closing(hotloop.make(TARGET, impl="native", seed=UNSEEN, num_envs=32, **WORLD)) as unseen:
            unseen.reset()
            return estimates(trainer, unseen, gamma=GAMMA, steps=STEPS, horizon=HORIZON)


def overestimate(arguments: argparse.Namespace) -> None:
    rows, values = [], {}
    for algorithm in ("dqn", "double_dqn"):
        found = [trained(algorithm, seed, quick=arguments.quick) for seed in arguments.seeds]
        values[algorithm] = [described(each) for each in found]
        rows.append([algorithm, *cells(values[algorithm])])
    seeds = ", ".join(map(str, arguments.seeds))
    text = [
        f"    {command('ALGORITHM')} train.seed=SEED seed=SEED",
        benchmark.table(["algorithm", "estimated", "realised", "overestimate", "by seed"], rows),
        f"Means over {STEPS} steps of 32 unseen envs, of seeds {seeds}.",
    ]
    benchmark.publish("dqn-overestimate", "\n\n".join(text), {"found": values}, arguments)


def described(found: Estimates) -> dict[str, float]:
    return {
        "estimated": float(found.estimated.mean()),
        "realised": float(found.realised.mean()),
        "overestimate": found.overestimate,
        "steps": float(len(found.estimated)),
    }


def cells(found: Sequence[dict[str, float]]) -> list[str]:
    means = [f"{fmean(each[name] for each in found):.3f}" for name in ("estimated", "realised")]
    over = [each["overestimate"] for each in found]
    interval = mean_interval(over)
    span = f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
    return [*means, f"{fmean(over):.3f}{span}", ", ".join(f"{each:.3f}" for each in over)]


def side(name: str, *, batched: bool) -> TrainSide:
    target = Target.typed(
        DECIDING.split(maxsplit=1)[0], [*DECIDING.split()[1:], f"train.batched={batched}".lower()]
    )
    made = TrainSide(name, untimed(read(target)), "rollout")
    made.turn(1)
    return made


def batching(arguments: argparse.Namespace) -> None:
    benchmark.pin(benchmark.one_core())
    sides = {TOGETHER: side(TOGETHER, batched=True), ONE_BY_ONE: side(ONE_BY_ONE, batched=False)}
    took: dict[str, list[Any]] = benchmark.in_turns(
        {name: lambda each=each: costs(each) for name, each in sides.items()},  # type: ignore[misc]
        benchmark.rounds_asked(arguments),
    )
    brought = ratio(took[ONE_BY_ONE], took[TOGETHER])
    rows = [
        [name, f"{min(each) / 1e3:.1f} .. {max(each) / 1e3:.1f}", f"{fmean(each) / 1e3:.1f}"]
        for name, each in took.items()
    ]
    text = [
        f"{DECIDING}: rollouts, one core.",
        benchmark.table(["the network is asked for", "over the rounds, µs", "µs per agent-step"], rows),
        f"At once / one after another: {benchmark.ratio_text(brought)} times as fast. "
        + benchmark.resolution(brought),
    ]
    values = {"ns_per_agent_step": took, "ratio": brought}
    benchmark.publish("dqn-batching", "\n\n".join(text), values, arguments)


def costs(each: TrainSide) -> float:
    """ns of an agent-step in a turn of one rollout, by the CPU time that the process was given."""
    before = each.counters()["agent_steps"]
    turn = each.turn(1)
    return turn.cpu_ns / (each.counters()["agent_steps"] - before)


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("name", choices=("overestimate", "batching"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments = parser.parse_intermixed_args()
    {"overestimate": overestimate, "batching": batching}[arguments.name](arguments)


if __name__ == "__main__":
    main()
