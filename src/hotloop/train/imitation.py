"""Imitation: a teacher labels what the student sees, and its say fades out as PPO's fades in."""

from dataclasses import dataclass

from torch import Tensor

from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.train.algorithm import PhaseName
from hotloop.train.policy import read
from hotloop.train.settings import TrainSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Where a run stands between its teacher and its own experience."""

    name: PhaseName
    imitating: float
    """The teacher's say: 1 is imitation alone, 0 is PPO alone, with the teacher off."""


def phase_at(steps: int, settings: TrainSettings) -> Phase:
    """The phase of the rollout that begins after so many env-steps."""
    faded = steps - settings.supervised_steps
    if faded < 0:
        return Phase(name="imitation", imitating=1.0)
    if faded < settings.fade_steps:
        return Phase(name="fade", imitating=1 - faded / settings.fade_steps)
    return Phase(name="ppo", imitating=0.0)


def imitation_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """How surprised the student is by what the teacher would have done."""
    return -read(logits, labels)[0].mean()


def find_teacher(batch: Batch, settings: TrainSettings) -> str | None:
    """The player that labels, the world's first where none is named; None where nothing is to be imitated."""
    if not settings.supervised_steps and not settings.fade_steps:
        return None
    own = [player for player in batch.players if player != "random"]
    if not own:
        raise InputError(
            f"{batch.spec.name} has no player to imitate: leave supervised_steps and fade_steps out"
        )
    teacher = settings.teacher or own[0]
    if teacher not in own:
        raise InputError(f"teacher={teacher}: expected one of {', '.join(own)}")
    return teacher
