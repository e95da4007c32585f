"""Train, and hold what was learned against the world's players and random play, on seeds of its own.

    ./.venv/bin/python benchmarks/learning.py prospector [--seeds 1 2 3] [--quick]
    ./.venv/bin/python benchmarks/learning.py arena [device=cpu ...]
    ./.venv/bin/python benchmarks/learning.py guard
    ./.venv/bin/python benchmarks/learning.py farm
    ./.venv/bin/python benchmarks/learning.py farm_dqn

The grid's networks are learned on a GPU. Settings of the trainer may follow the name; they are part of the
command that is published.

`guard` imitates the teacher first and goes on with PPO; its agreement is that of the student's most likely
action with the teacher's, on what the student sees, over the last tenth of pure imitation. Returns and
outcomes are means over episodes that training has not seen, with a bootstrap interval; everybody plays the
same ones. `farm` is about its outcome `lifetime`: how long an agent lives.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from time import perf_counter, process_time
from typing import Any

import benchmark
import hotloop
from hotloop.core.settings import apply, parse_pairs
from hotloop.envs.tapes import Episode, Episodes
from hotloop.stats.summary import mean_interval
from hotloop.train.algorithm import Update
from hotloop.train.evaluation import EvalSettings, evaluate
from hotloop.train.settings import TrainSettings, usual_for
from hotloop.train.trainer import Trainer
from hotloop.train.windows import Windows

EVALUATION = EvalSettings(episodes=64)
CURVE_POINTS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One documented run: what `hotloop train TARGET key=value` is given."""

    target: str
    batch: dict[str, object]
    train: dict[str, object]
    players: tuple[str, ...]
    """Who it is held against, beside random play."""
    episodes: int = 256
    world: dict[str, object] = field(default_factory=dict)
    """Keys of the world, for everybody."""

    @property
    def command(self) -> str:
        keys = {**self.world, **self.batch, **{f"train.{key}": value for key, value in self.train.items()}}
        return f"hotloop train {self.target} " + " ".join(f"{key}={value}" for key, value in keys.items())


RUNS = {
    "prospector": Run(
        target="prospector",
        batch={"num_envs": 1024, "threads": 2},
        train={"total_timesteps": 3_000_000, "torch_threads": 2},
        players=("greedy", "cautious", "timer"),
    ),
    "arena": Run(
        target="grid/arena",
        batch={"num_envs": 256, "threads": 3},
        train={
            "total_timesteps": 1_785_856,
            "num_steps": 32,
            "minibatch_size": 8_192,
            "stagger": 10_000,
            "learning_rate": "5e-4",
            "gamma": 0.995,
            "embedding": 128,
            "hidden": "256",
            "device": "cuda",
            "torch_threads": 2,
        },
        players=("teacher",),
        episodes=16,
    ),
    "guard": Run(
        target="grid/guard",
        batch={"num_envs": 1024, "threads": 3},
        train={
            "total_timesteps": 8_814_592,
            "supervised_steps": 6_160_384,
            "fade_steps": 720_896,
            "num_steps": 32,
            "minibatch_size": 16_384,
            "update_epochs": 2,
            "stagger": 1_000,
            "learning_rate": "2e-3",
            "gamma": 0.995,
            "ent_coef": 0.003,
            "embedding": 256,
            "hidden": "512",
            "lstm": 512,
            "device": "cuda",
            "torch_threads": 2,
        },
        players=("teacher",),
        episodes=64,
    ),
    "farm": Run(
        target="farm/dev",
        world={"max_steps": 1_000},
        batch={"num_envs": 32, "threads": 1},
        train={
            "total_timesteps": 61_440,
            "num_steps": 32,
            "minibatch_size": 2_048,
            "update_epochs": 2,
            "torch_threads": 2,
        },
        players=("weighted",),
        episodes=64,
    ),
    "farm_dqn": Run(
        target="farm/dev",
        world={"max_steps": 1_000, "perception": False},
        batch={"num_envs": 8, "threads": 1},
        train={
            "algorithm": "dqn",
            "total_timesteps": 40_960,
            "num_steps": 32,
            "minibatch_size": 128,
            "train_frequency": 4,
            "gradient_steps": 2,
            "target_network_frequency": 100,
            "hidden": "64,64",
            "torch_threads": 1,
        },
        players=("weighted",),
        episodes=64,
    ),
}


def shortened(run: Run) -> Run:
    """A hundredth of the steps: to try the script out."""
    counts = ("total_timesteps", "supervised_steps", "fade_steps")
    fewer = {key: int(run.train[key]) // 100 for key in counts if key in run.train}  # type: ignore[call-overload]
    return replace(run, train={**run.train, **fewer}, episodes=8)


def train(run: Run, seed: int) -> dict[str, Any]:
    settings = apply(TrainSettings, usual_for(run.train), {"seed": seed})
    with closing(hotloop.make(run.target, impl="native", seed=seed, **run.world, **run.batch)) as batch:
        windows = Windows(batch)
        trainer = Trainer(batch, settings, watchers=[windows])
        every = max(1, settings.total_timesteps // trainer.steps_per_update // CURVE_POINTS)
        updates, curve, start, start_cpu = [], [], perf_counter(), process_time()
        while not trainer.finished:
            updates.append(trainer.update())
            if trainer.updates % every == 0:
                curve.append(point(updates[-every:], windows, perf_counter() - start))
                print(curve[-1], flush=True)
        wall_s, cpu_s = perf_counter() - start, process_time() - start_cpu
        found = evaluate(trainer, batch.spec, replace(EVALUATION, episodes=run.episodes))
    return {
        "seed": seed,
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "steps": trainer.steps,
        "agent_steps": trainer.agent_steps,
        "steps_per_s": trainer.steps / wall_s,
        "agreement": last_agreement(updates),
        "curve": curve,
        **account(found.episodes),
    }


def point(updates: Sequence[Update], windows: Windows, wall_s: float) -> dict[str, Any]:
    window = windows.close()
    agreed = [update.agreement for update in updates if update.agreement is not None]
    return {
        "steps": updates[-1].steps,
        "wall_s": round(wall_s, 1),
        "phase": updates[-1].phase,
        "return": window.mean_return,
        "infos": dict(window.infos or window.sampled),
        "length": window.mean_length,
        "agreement": fmean(agreed) if agreed else None,
    }


def last_agreement(updates: Sequence[Update]) -> float | None:
    """Over the last tenth of pure imitation."""
    agreed = [update.agreement for update in updates if update.phase == "imitation"]
    return fmean(one or 0.0 for one in agreed[-max(1, len(agreed) // 10) :]) if agreed else None


def account(played: Sequence[Episode]) -> dict[str, Any]:
    """What episodes came to on average, and how sure that is."""
    returns = [episode.return_per_agent for episode in played]
    outcomes = {name: [episode.outcomes[name] for episode in played] for name in played[0].outcomes}
    return {
        "return": fmean(returns),
        "interval": mean_interval(returns),
        "episodes": len(returns),
        "length": fmean(episode.length for episode in played),
        "outcomes": {name: fmean(each) for name, each in outcomes.items()},
        "intervals": {name: mean_interval(each) for name, each in outcomes.items()},
    }


def play(run: Run, player: str) -> dict[str, Any]:
    """The episodes that the student is evaluated on, played by somebody else."""
    envs = min(run.episodes, 64)
    share = run.episodes // envs
    keys = {"num_envs": envs, "seed": EVALUATION.seed, **run.world}
    with closing(hotloop.make(run.target, impl="native", **keys)) as batch:
        batch.reset()
        episodes = Episodes(batch)
        finished: list[list[Any]] = [[] for _ in range(envs)]
        while any(len(row) < share for row in finished):
            for episode in episodes.step(batch.choose(player)):
                finished[episode.env].append(episode)
    return account([episode for row in finished for episode in row[:share]])


def page(run: Run, students: list[dict[str, Any]], players: dict[str, dict[str, Any]]) -> str:
    rows = [
        *([f"seed {found['seed']}", *cells(found), *cost(found)] for found in students),
        *([name, *cells(found), "", ""] for name, found in players.items()),
    ]
    outcomes = list(students[0]["outcomes"])
    header = ["who", "mean return [95%]", "length", *outcomes, "trained", "wall"]
    return "\n\n".join([f"    {run.command} train.seed=SEED seed=SEED", benchmark.table(header, rows)])


def cells(found: dict[str, Any]) -> list[str]:
    outcomes = [f"{value:,.2f}{span(found['intervals'][name])}" for name, value in found["outcomes"].items()]
    returned = f"{found['return']:.3f}{span(found['interval'])}"
    return [returned, f"{found['length']:,.0f}", *outcomes]


def span(interval: tuple[float, float] | None) -> str:
    return f" [{interval[0]:,.3f}, {interval[1]:,.3f}]" if interval else ""


def cost(found: dict[str, Any]) -> list[str]:
    agreed = "" if found["agreement"] is None else f", agreement {found['agreement']:.1%}"
    took = f"{found['wall_s']:,.0f} s, {found['cpu_s']:,.0f} s of CPU time"
    return [f"{found['steps'] / 1e6:.2f} M steps{agreed}", took]


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("name", choices=RUNS)
    parser.add_argument(
        "settings", nargs="*", metavar="KEY=VALUE", help="of the trainer, instead of the run's"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    arguments = parser.parse_intermixed_args()
    run = RUNS[arguments.name]
    run = replace(run, train={**run.train, **parse_pairs(arguments.settings)})
    run = shortened(run) if arguments.quick else run
    players = {player: play(run, player) for player in ("random", *run.players)}
    students = [train(run, seed) for seed in arguments.seeds]
    values = {"run": asdict(run), "command": run.command, "students": students, "players": players}
    benchmark.publish(f"learning-{arguments.name}", page(run, students, players), values, arguments)


if __name__ == "__main__":
    main()
