"""Imitation: a teacher labels what the student sees, and its say fades out as PPO's fades in."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hotloop.core.errors import InputError
from hotloop.core.settings import names_callable
from hotloop.envs import callables
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.forms import Bounds
from hotloop.envs.foreign.inside import BROKEN, raised
from hotloop.train.actions import NUMBERED, Actions
from hotloop.train.algorithm import PhaseName
from hotloop.train.settings import TrainSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """Where a run stands between its teacher and its own experience."""

    name: PhaseName
    imitating: float  # The teacher's say: 1 is imitation alone, 0 is PPO alone, with the teacher off


def phase_at(steps: int, settings: TrainSettings) -> Phase:
    """The phase of the rollout that begins after so many env-steps."""
    faded = steps - settings.supervised_steps
    if faded < 0:
        return Phase(name="imitation", imitating=1.0)
    if faded < settings.fade_steps:
        return Phase(name="fade", imitating=1 - faded / settings.fade_steps)
    return Phase(name="ppo", imitating=0.0)


def imitation_loss(logits: Tensor, labels: Tensor, actions: Actions = NUMBERED) -> Tensor:
    """How surprised the student is by what the teacher would have done."""
    return -actions.read(logits, labels)[0].mean()


# Labels what a batch shows now, as actions of all its agents, [num_envs, agents, ...].
Teacher = Callable[[], NDArray[Any]]


class UserTeacher:
    """User code's function from the observations of all agents, [rows, ...], to their actions, [rows, ...].

    Numbered actions are counted from 0, real numbers are the env's own. One that has an argument `masks` is
    told the legal actions, [rows, actions], or None where all are.
    """

    def __init__(self, batch: Batch, name: str) -> None:
        found = callables.find(name)
        self._teach = callables.call(name, {}) if isinstance(found, type) else found
        self._name, self._batch, acts = name, batch, batch.spec.layout.acts
        self._bounds = None if acts is None or acts.choices else Bounds(acts)
        rows, self._like = batch.spec.num_envs * batch.spec.agents, batch.new_actions()
        seen = batch.observations
        self._seen = seen.reshape(rows, *seen.shape[2 if seen.ndim > 2 else 1 :])
        self._shape = (rows, *self._like.shape[2:])
        masks = None if batch.masks is None else batch.masks.reshape(rows, -1)
        self._told = {"masks": masks} if "masks" in callables.parameters_of(self._teach) else {}

    def __call__(self) -> NDArray[Any]:
        try:
            given = np.asarray(self._teach(self._seen, **self._told))
        except BROKEN as error:
            raise raised(self._name, error) from error
        if given.shape != self._shape:
            raise InputError(
                f"{self._name} gave actions of the shape {given.shape}: expected {self._shape}, one a row of "
                f"the observations {self._seen.shape} that it is called with"
            )
        labels = given if self._bounds is None else self._bounds.scaled(given)
        acts = self._batch.spec.layout.acts
        most: Any = self._batch.spec.num_actions if acts is None else np.array(acts.choices)
        wrong = ~np.isfinite(labels) if self._bounds else (labels < 0) | (labels >= most)
        if wrong.any():  # before anything is learned from it
            first = tuple(int(place) for place in np.argwhere(wrong)[0])
            expected = "a finite number" if self._bounds else f"0 to {np.max(most) - 1}"
            raise InputError(f"{self._name} gave {labels[first]} for row {first[0]}: expected {expected}")
        self._like[...] = labels.reshape(self._like.shape)
        return self._like


def find_teacher(batch: Batch, settings: TrainSettings) -> Teacher | None:
    """Return the teacher: user code, a named player, or the world's first; None without imitation."""
    if not settings.supervised_steps and not settings.fade_steps:
        return None
    if names_callable(settings.teacher):
        return UserTeacher(batch, settings.teacher)
    own = [player for player in batch.players if player != "random"]
    if not own:
        raise InputError(
            f"{batch.spec.name} has no player to imitate: give train.teacher=my_teacher.py:Teacher, or leave "
            "supervised_steps and fade_steps out"
        )
    teacher = settings.teacher or own[0]
    if teacher not in own:
        raise InputError(f"teacher={teacher}: expected one of {', '.join(own)}")
    return partial(batch.choose, teacher)
