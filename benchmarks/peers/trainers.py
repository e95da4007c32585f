"""Measure our trainer beside stable-baselines3 and a plain loop in the manner of CleanRL, in turns.

    ./.venv/bin/python benchmarks/peers/trainers.py [--epochs 4] [--rounds 12] [--quick]

All train the same network (a shared trunk of 2x128, ReLU) on the same prospector environment with the same
rollouts, epochs and minibatches, each in a process of its own with as many threads; one that waits for its
turn sleeps. A turn is a number of whole updates: collecting, advantages and learning. Ours takes
part twice, so that its ratio to itself shows the machine's noise. Nothing is normalised, logged or evaluated.
"""

import sys
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from interleaved import output
from interleaved.rounds import run_rounds, speed_ratio
from interleaved.sides import ProcessSide, usable_cores
from plain_ppo import Asked

PEERS = Path(__file__).resolve().parent
OURS, AGAIN = "hotloop", "hotloop again"
SIDES = {OURS: "ours", AGAIN: "ours", "stable-baselines3": "sb3", "plain loop, CleanRL's manner": "plain"}
WARMUP_UPDATES = 3
UPDATES = 4
"""In a turn."""


def measure(asked: Asked, rounds: int, updates: int) -> dict[str, Any]:
    cores = usable_cores()[: asked.threads]
    shared = {"cores": cores, "asked": asdict(asked), "warmup_updates": WARMUP_UPDATES}
    with ExitStack() as stack:
        sides = [
            stack.enter_context(
                ProcessSide(
                    name, Path(sys.executable), PEERS / "trainers_worker.py", {**shared, "which": which}
                )
            )
            for name, which in SIDES.items()
        ]
        blocks = run_rounds(sides, rounds=rounds, agent_steps=updates * asked.batch_size)
        facts = {side.name: side.facts for side in sides}
    peers = [name for name, which in SIDES.items() if which != "ours"]
    return {
        "asked": asdict(asked),
        "cores": cores,
        "facts": facts,
        "sides": output.side_values(blocks),
        "ratios": {name: speed_ratio(blocks, OURS, name) for name in peers},
        "noise": speed_ratio(blocks, OURS, AGAIN),
    }


def row(name: str, case: dict[str, Any]) -> list[str]:
    rates = case["sides"][name].agent_steps_per_s
    return [
        f"{name}, {case['facts'][name]['version']}",
        f"{rates.median:,.0f}",
        f"{rates.min:,.0f} .. {rates.max:,.0f}",
        output.percent(rates.cv),
        output.ratio_text(case["ratios"][name]) if name in case["ratios"] else "",
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
    noise = f"Noise, {OURS} / {AGAIN}: {output.ratio_text(case['noise'], 3)}. "
    table = output.table(header, [row(name, case) for name in case["sides"]])
    return "\n\n".join([setting, table, noise + output.resolution(case["noise"])])


def main() -> None:
    options = output.parser(__doc__)
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
    case = measure(asked, output.rounds_of(arguments), 1 if arguments.quick else UPDATES)
    output.publish("peers/trainers", page(case), {"case": case}, arguments)


if __name__ == "__main__":
    main()
