"""Batches that are seeded apart from their reset: Stable-Baselines3's VecEnv, any object with num_envs."""

from typing import Any

from hotloop.envs.foreign.kinds.vector import VectorSubject
from hotloop.envs.foreign.spec import BROKEN, attribute, raised


class SeededSubject(VectorSubject):
    """A batch whose arrays have an axis of envs, finished ones of which begin anew by themselves."""

    def reset(self) -> None:
        seed: Any = attribute(self.env, "seed")
        try:
            if callable(seed):
                seed(self.spec.seed)
        except BROKEN as error:
            raise raised(self.spec.name, error) from error
        super().reset()
