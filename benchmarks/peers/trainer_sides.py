"""Trainers as the lab's worker takes an env: ours, stable-baselines3's, and a plain loop in CleanRL's manner.

A step is an update, which is as many env-steps as a rollout has. Nothing is imported before a trainer is
chosen: ours says how OpenMP waits before torch is imported, the others wait as torch does.
"""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from plain_ppo import Asked


class Updating(Protocol):
    """A loop that goes on by one update."""

    def update(self) -> None: ...


class TrainerEnv:
    """A trainer that is stepped, whatever the action."""

    num_actions = 1

    def __init__(self, trainer: Updating, asked: "Asked") -> None:
        self.num_envs = asked.batch_size
        self._trainer = trainer

    def reset(self) -> None:
        """Nothing: a training goes on."""

    def step(self, _: Any) -> None:
        self._trainer.update()


class OurPPO:
    """Our trainer with window metrics, and without what the others lack: normalisation, timing, logs."""

    def __init__(self, asked: "Asked") -> None:
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


def ours(**given: Any) -> TrainerEnv:
    import hotloop.train  # noqa: F401 - before torch, which plain_ppo imports

    asked = read(given)
    return TrainerEnv(OurPPO(asked), asked)


def sb3(**given: Any) -> TrainerEnv:
    from sb3_ppo import TheirPPO

    asked = read(given)
    return TrainerEnv(TheirPPO(asked), asked)


def plain(**given: Any) -> TrainerEnv:
    from plain_ppo import PlainPPO

    asked = read(given)
    return TrainerEnv(PlainPPO(asked), asked)


def read(given: dict[str, Any]) -> "Asked":
    """What was asked, as it came through JSON; torch gets its threads."""
    import torch

    from plain_ppo import Asked

    asked = Asked(**given | {"hidden": tuple(given["hidden"])})
    torch.set_num_threads(asked.threads)
    return asked
