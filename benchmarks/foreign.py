"""Train on other people's environments: is it learned, and how fast beside Stable-Baselines3?

    ./.venv/bin/python benchmarks/foreign.py [CartPole LunarLander HalfCheetah team] [--seeds 1 2 3] [--quick]

LunarLander needs Box2D, which SWIG builds where there is no wheel, and HalfCheetah MuJoCo; what is not
installed is said and left out:

    . .venv/bin/activate
    pip install -c constraints.txt swig && pip install -c constraints.txt "gymnasium[box2d,mujoco]"

`team` is examples/my_team.py, a parallel env of PettingZoo, which Stable-Baselines3 does not take. On two
quiet cores all of it takes about five minutes, half of them LunarLander and HalfCheetah learning; every
training says after its first updates how long it will take.

What is learned: the best mean return of a window of ten rollouts, held against a threshold, for each seed.
How fast: both train with the same envs, each in a process of its own, with the same network (two towers of
64x64 with tanh, examples/my_net.py), rollouts, epochs and minibatches, nothing scaled, on one torch thread.
They take turns in this process, one update a turn.
"""

import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import gymnasium
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv

import benchmark
from hotloop.core.clock import now_ns
from hotloop.core.errors import SetupError
from hotloop.core.settings import Target, apply
from hotloop.envs.foreign.training import open_trainable
from hotloop.stats.summary import ratio
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer
from hotloop.train.windows import Windows

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
WINDOW = 10
"""Rollouts whose episodes make one mean return."""
TELL_AFTER = 5
"""Updates after which it is known how long a training will take."""
QUICK_STEPS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One environment and how it is trained on."""

    target: str
    envs: int
    total: int
    """Env-steps within which it has to be learned."""
    threshold: float
    train: dict[str, object] = field(default_factory=dict)

    @property
    def command(self) -> str:
        name = self.target.replace(f"{EXAMPLES.parent}/", "")
        keys = " ".join(f"train.{key}={spelled(value)}" for key, value in self.train.items())
        return (
            f"hotloop train {name} num_envs={self.envs} train.total_timesteps={self.total} {keys} "
            "train.seed=SEED seed=SEED"
        )

    def settings(self, **more: object) -> TrainSettings:
        return apply(TrainSettings, {"torch_threads": 1, **self.train, **more})


CASES = {
    "CartPole": Case(
        target="gym:CartPole-v1",
        envs=8,
        total=100_000,
        threshold=475,
        train={
            "num_steps": 32,
            "minibatch_size": 256,
            "update_epochs": 20,
            "learning_rate": 0.001,
            "gamma": 0.98,
            "ent_coef": 0.0,
        },
    ),
    "LunarLander": Case(
        target="gym:LunarLander-v3",
        envs=16,
        total=500_000,
        threshold=200,
        train={
            "num_steps": 128,
            "minibatch_size": 512,
            "update_epochs": 8,
            "learning_rate": 0.001,
            "ent_coef": 0.005,
        },
    ),
    "HalfCheetah": Case(
        target="gym:HalfCheetah-v5",
        envs=8,
        total=300_000,
        threshold=500,
        train={
            "num_steps": 128,
            "minibatch_size": 256,
            "update_epochs": 10,
            "learning_rate": 0.0005,
            "gamma": 0.98,
            "gae_lambda": 0.92,
            "ent_coef": 0.0,
            "hidden": (64, 64),
        },
    ),
    "team": Case(
        target=f"{EXAMPLES}/my_team.py:make",
        envs=8,
        total=30_000,
        threshold=0.85,
        train={"num_steps": 32, "minibatch_size": 192, "update_epochs": 10, "ent_coef": 0.0},
    ),
}


def spelled(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def returns_of(case: Case, seed: int, total: int) -> list[float]:
    """The mean return of every window of a training."""
    asked = Target(case.target, {"num_envs": case.envs, "seed": seed})
    with closing(open_trainable(asked)) as batch:
        windows = Windows(batch)
        trainer = Trainer(batch, case.settings(total_timesteps=total, seed=seed), watchers=(windows,))
        found, begin_ns = [], now_ns()
        while not trainer.finished:
            trainer.update()
            if trainer.updates == TELL_AFTER:
                about_s = (now_ns() - begin_ns) / 1e9 * total / trainer.steps
                print(f"{case.target}, seed {seed}: about {about_s:.0f} s", file=sys.stderr)
            if trainer.updates % WINDOW == 0 or trainer.finished:
                found.append(windows.close().mean_return)
    return [each for each in found if each is not None]


def our_turn(case: Case, stack: ExitStack) -> Callable[[], int]:
    """One update of ours, in ns."""
    keys = {"num_envs": case.envs, "vector": "async", "workers": case.envs, "seed": 1}
    batch = stack.enter_context(closing(open_trainable(Target(case.target, keys))))
    plain = {"norm_obs": False, "norm_reward": False, "anneal_lr": False}
    network = f"{EXAMPLES}/my_net.py:Net"
    trainer = Trainer(batch, case.settings(**plain, network=network), watchers=(Windows(batch),))
    return partial(timed, trainer.update)


def their_turn(case: Case, stack: ExitStack) -> Callable[[], int]:
    """One update of Stable-Baselines3's, in ns."""
    name = case.target.removeprefix("gym:")
    makers = [partial(gymnasium.make, name)] * case.envs
    envs = stack.enter_context(closing(SubprocVecEnv(makers)))
    asked = case.settings()
    model = PPO(
        "MlpPolicy",
        envs,
        device="cpu",
        seed=1,
        n_steps=asked.num_steps,
        batch_size=asked.minibatch_size,
        n_epochs=asked.update_epochs,
        learning_rate=asked.learning_rate,
        gamma=asked.gamma,
        gae_lambda=asked.gae_lambda,
        ent_coef=asked.ent_coef,
    )
    steps = case.envs * asked.num_steps
    return partial(timed, lambda: model.learn(steps, reset_num_timesteps=False))


def timed(update: Callable[[], Any]) -> int:
    begin_ns = now_ns()
    update()
    return now_ns() - begin_ns


def raced(case: Case, rounds: int) -> dict[str, Any]:
    """Updates of both in turns, and how many times as fast ours is."""
    with ExitStack() as stack:
        turns = {"hotloop": our_turn(case, stack), "stable-baselines3": their_turn(case, stack)}
        for turn in turns.values():
            turn()  # warm
        taken = benchmark.in_turns(turns, rounds)
    steps = case.envs * case.settings().num_steps
    rates = {name: fmean(steps * 1e9 / ns for ns in each) for name, each in taken.items()}
    return {
        "ns": taken,
        "steps": steps,
        "rates": rates,
        "ratio": ratio(taken["stable-baselines3"], taken["hotloop"]),
    }


def measured(case: Case, arguments: Any) -> dict[str, Any]:
    """What one environment's runs came to."""
    total = QUICK_STEPS if arguments.quick else case.total
    seeds = arguments.seeds[:1] if arguments.quick else arguments.seeds
    learned = {seed: returns_of(case, seed, total) for seed in seeds}
    race = raced(case, benchmark.rounds_asked(arguments)) if case.target.startswith("gym:") else None
    return {"command": case.command, "threshold": case.threshold, "returns": learned, "race": race}


def learned_row(name: str, found: dict[str, Any]) -> list[str]:
    seen = found["returns"].values()
    best = [max(each) for each in seen if each]
    first = [each[0] for each in seen if each]
    reached = sum(each >= found["threshold"] for each in best)
    return [
        name,
        f"{fmean(first):,.2f}" if first else "none",
        ", ".join(f"{each:,.2f}" for each in best) or "none",
        f"{found['threshold']:,}",
        f"{reached} of {len(seen)}",
    ]


def race_row(name: str, race: dict[str, Any]) -> list[str]:
    return [name, *(f"{rate:,.0f}" for rate in race["rates"].values()), benchmark.ratio_text(race["ratio"])]


def page(name: str, found: dict[str, Any]) -> str:
    seeds = ", ".join(map(str, found["returns"]))
    header = ["environment", "first window", f"best window, seeds {seeds}", "threshold", "reached"]
    lines = [f"    {found['command']}", benchmark.table(header, [learned_row(name, found)])]
    if found["race"]:
        header = ["environment", "hotloop, steps/s", "stable-baselines3, steps/s", "ours / theirs"]
        lines.append(benchmark.table(header, [race_row(name, found["race"])]))
    return "\n\n".join(lines)


def main() -> None:
    options = benchmark.parser(__doc__)
    options.add_argument("cases", nargs="*", choices=[[], *CASES], default=[], help="all, if none is named")
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the trainings (1 2 3)")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    for name in arguments.cases or CASES:
        try:
            found = measured(CASES[name], arguments)
        except SetupError as error:
            print(f"{name} is left out: {error}")
            continue
        benchmark.publish(f"foreign-{name}", page(name, found), found, arguments)


if __name__ == "__main__":
    main()
