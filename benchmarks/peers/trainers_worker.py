"""One trainer in a process of its own: ours, stable-baselines3's, or a plain loop in CleanRL's manner."""

import json
import sys

if json.loads(sys.argv[1])["which"] == "ours":
    import hotloop.train  # noqa: F401 - says how OpenMP waits; the others wait as torch does

# isort: split
from importlib.metadata import version
from time import perf_counter_ns
from typing import Any

import torch

from interleaved.stepping import Block
from interleaved.worker import serve, settings
from plain_ppo import Asked, PlainPPO


class OurPPO:
    """Our trainer with window metrics, and without what the others lack: normalisation, timing, logs."""

    def __init__(self, asked: Asked) -> None:
        import hotloop
        from hotloop.train.settings import TrainSettings
        from hotloop.train.trainer import Trainer
        from hotloop.train.windows import Windows

        batch = hotloop.make(
            asked.target, num_envs=asked.num_envs, threads=asked.threads, seed=asked.seed, impl="native"
        )
        given = TrainSettings(
            total_timesteps=2**62,
            num_steps=asked.num_steps,
            minibatch_size=asked.minibatch_size,
            update_epochs=asked.update_epochs,
            hidden=asked.hidden,
            learning_rate=asked.learning_rate,
            anneal_lr=False,
            norm_obs=False,
            norm_reward=False,
            torch_threads=asked.threads,
            seed=asked.seed,
        )
        self._windows = Windows(batch)
        self._trainer = Trainer(batch, given, watchers=(self._windows,))

    def update(self) -> None:
        self._trainer.update()
        self._windows.close()


def make(which: str, asked: Asked) -> tuple[Any, str]:
    """A trainer, and the version of what it is made of."""
    if which == "sb3":
        from sb3_ppo import TheirPPO

        return TheirPPO(asked), version("stable-baselines3")
    if which == "plain":
        return PlainPPO(asked), f"torch {torch.__version__}"
    return OurPPO(asked), version("hotloop")


def main() -> None:
    given = settings()
    asked = Asked(**given["asked"] | {"hidden": tuple(given["asked"]["hidden"])})
    torch.set_num_threads(asked.threads)
    trainer, release = make(given["which"], asked)
    for _ in range(given["warmup_updates"]):
        trainer.update()

    def measure(agent_steps: int) -> Block:
        updates = max(1, round(agent_steps / asked.batch_size))
        start = perf_counter_ns()
        for _ in range(updates):
            trainer.update()
        return Block(ns=perf_counter_ns() - start, agent_steps=updates * asked.batch_size)

    serve(measure, {"version": release})


if __name__ == "__main__":
    main()
