"""Measure our trainer beside stable-baselines3 and a plain loop in the manner of CleanRL, in turns.

    ./.venv/bin/python benchmarks/peers/trainers.py [--epochs 4] [--rounds 12] [--quick]

All train the same network (a shared trunk of 2x128, ReLU) on the same prospector environment with the same
rollouts, epochs and minibatches, each in a process of its own with as many threads; one that waits for its
turn sleeps. A turn is a number of whole updates: collecting, advantages and learning; one more runs before
its clock starts. Ours takes part twice, so that its ratio to itself shows the machine's noise. Nothing is
normalised, logged or evaluated.
"""

import sys
from contextlib import ExitStack, closing
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import benchmark
from hotloop.lab.compare.process import ProcessSide
from plain_ppo import Asked

PEERS = Path(__file__).resolve().parent
OURS, AGAIN = "hotloop", "hotloop again"
SIDES = {OURS: "ours", AGAIN: "ours", "stable-baselines3": "sb3", "plain loop, CleanRL's manner": "plain"}
"""Who takes part, and what makes it in trainer_sides.py."""
MADE_OF = {"ours": "hotloop", "sb3": "stable-baselines3", "plain": "torch"}
WARMUP_UPDATES = 3
UPDATES = 4
"""In a turn."""


def measure(asked: Asked, rounds: int, updates: int) -> dict[str, Any]:
    cores = benchmark.usable_cores()[: asked.threads]
    with ExitStack() as stack, benchmark.pinned(cores):
        sides = [stack.enter_context(closing(side(name, asked))) for name in SIDES]
        values = benchmark.measure(sides, rounds=rounds, agent_steps=updates * asked.batch_size)
        facts = {each.name: each.facts for each in sides}
    peers = [name for name, which in SIDES.items() if which != "ours"]
    return {
        "asked": asdict(asked),
        "cores": cores,
        "facts": facts,
        "versions": {name: release(which) for name, which in SIDES.items()},
        "sides": values,
        "ratios": {name: benchmark.speed_ratio(values, OURS, name) for name in peers},
        "noise": benchmark.speed_ratio(values, OURS, AGAIN),
    }


def release(which: str) -> str:
    """The version of what a trainer is made of, which is torch where it has none of its own."""
    found = version(MADE_OF[which])
    return f"torch {found}" if which == "plain" else found


def side(name: str, asked: Asked) -> ProcessSide:
    """A trainer in a process of its own, warm."""
    target = f"trainer_sides.py:{SIDES[name]}"
    made = ProcessSide(
        name,
        Path(sys.executable),
        PEERS,
        {"target": {"name": target, "keys": asdict(asked)}, "seed": asked.seed},
    )
    made.turn(WARMUP_UPDATES * asked.batch_size)
    return made


def row(name: str, case: dict[str, Any]) -> list[str]:
    rates = case["sides"][name].agent_steps_per_s
    return [
        f"{name}, {case['versions'][name]}",
        f"{rates.median:,.0f}",
        f"{rates.min:,.0f} .. {rates.max:,.0f}",
        benchmark.percent(rates.cv),
        benchmark.ratio_text(case["ratios"][name]) if name in case["ratios"] else "",
    ]


def page(case: dict[str, Any]) -> str:
    asked = case["asked"]
    header = ["trainer", "training steps/s", "over the rounds", "CV", "ours / it"]
    setting = (
        f"{asked['target']}, {asked['num_envs']} envs, rollouts of {asked['num_steps']} steps, "
        f"{asked['update_epochs']} epochs, minibatches of {asked['minibatch_size']:,}, a shared trunk of "
        f"{'x'.join(map(str, asked['hidden']))}, float32, "
        f"{asked['threads']} threads on cores {case['cores']}."
    )
    noise = f"Noise, {OURS} / {AGAIN}: {benchmark.ratio_text(case['noise'], 3)}. "
    table = benchmark.table(header, [row(name, case) for name in case["sides"]])
    return "\n\n".join([setting, table, noise + benchmark.resolution(case["noise"])])


def main() -> None:
    options = benchmark.parser(__doc__)
    options.add_argument("--epochs", type=int, default=4, help="passes over each rollout (4)")
    options.add_argument("--envs", type=int, default=256, help="envs (256)")
    options.add_argument("--steps", type=int, default=64, help="steps of a rollout (64)")
    arguments = options.parse_args()
    asked = Asked(
        target="prospector/default",
        num_envs=arguments.envs,
        num_steps=arguments.steps,
        minibatch_size=4_096,
        update_epochs=arguments.epochs,
        hidden=(128, 128),
        threads=2,
    )
    case = measure(asked, benchmark.rounds_asked(arguments), 1 if arguments.quick else UPDATES)
    benchmark.publish("peers/trainers", page(case), {"case": case}, arguments)


if __name__ == "__main__":
    main()
