"""Policy transfer: a policy trained on one side, to be played on both."""

from typing import Any

from numpy.typing import NDArray

from hotloop.core.packages import need
from hotloop.core.progress import Progress
from hotloop.core.target import Target
from hotloop.envs.batch import Batch
from hotloop.lab.validate.statistical.pairs import ENVS, Seat, open_side

STEPS = 64
"""Of every env in a rollout."""

MINIBATCHES = 4


class TrainedSeat:
    """What was learnt, drawing by what it says, with chances that both sides share."""

    def __init__(self, trainer: Any, batch: Batch, seed: int) -> None:
        from hotloop.train.evaluation import Actor

        self._actor = Actor(trainer, batch, seed=seed)

    def choose(self) -> NDArray[Any]:
        return self._actor.choose()

    def note(self, ended: list[int]) -> None:
        self._actor.note(ended)


def trained(target: Target, steps: int, progress: Progress) -> Seat:
    """Train on one side, with the usual settings of PPO."""
    need("torch")
    from hotloop.train.settings import TrainSettings
    from hotloop.train.trainer import Trainer

    batch = open_side(target)
    samples = ENVS * batch.spec.agents * STEPS
    total = -(-steps // (ENVS * STEPS)) * ENVS * STEPS
    settings = TrainSettings(total_timesteps=total, num_steps=STEPS, minibatch_size=samples // MINIBATCHES)
    trainer = Trainer(batch, settings)
    while not trainer.finished:
        trainer.update()
        progress(trainer.steps, total)
    batch.close()
    return lambda played, seed: TrainedSeat(trainer, played, seed)
