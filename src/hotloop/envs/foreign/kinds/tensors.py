"""torchrl's envs: dictionaries of tensors, in which an action is put and the next ones come back."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Doing
from hotloop.envs.foreign.phases import logged
from hotloop.envs.foreign.spec import BROKEN, everything, raised
from hotloop.envs.foreign.subject import ForeignSubject
from hotloop.envs.spec import Spec

PARTS = {"reward": "rewards", "terminated": "terminals", "truncated": "truncations"}


class TensorSubject(ForeignSubject):
    """An env of torchrl, or a batch of them; one that ended begins anew in the same call."""

    autoreset = "SameStep"

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        super().__init__(env, spec, **how)
        self._step = logged(env.step_and_maybe_reset, self._log, timed=self.in_spans)
        self._calls = 0
        self._shown: Any = None

    def reset(self) -> None:
        try:
            with lifeline.doing(Doing.RESET, Doing.STEP):
                self.env.set_seed(self.spec.seed)
                self.observation = self._reset()
        except BROKEN as error:
            raise raised(self.spec.name, error) from error
        self.resets += self.spec.num_envs
        zeros = np.zeros((self.spec.num_envs, 1))
        begun = {"reward": zeros.astype(np.float32), "terminated": zeros != 0, "truncated": zeros != 0}
        self._shown = {**begun, **dict(self.observation.items())}

    def step(self, actions: Any) -> None:
        lifeline.beat(self._pulse, self._calls)
        try:
            self.observation.set(self.env.action_key, actions)
            given, self.observation = self._step(self.observation)
        except BROKEN as error:
            raise raised(self.spec.name, error, masked=False) from error
        self._shown = dict(given.get("next").items())
        self._calls += 1
        self.resets += int(np.count_nonzero(self._shown["done"]))

    def _drawn(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        sys.modules["torch"].manual_seed(int(random.integers(2**31)))
        return [self.env.action_spec.rand() for _ in range(calls)]

    def _counted(self) -> dict[str, int]:
        steps = self._calls * self.spec.num_envs
        return {"foreign_steps": steps, "env_steps": steps, "agent_steps": steps, "resets": self.resets}

    def _outputs(self) -> Mapping[str, Any]:
        return self._shown or {}

    def answers(self) -> Mapping[str, NDArray[Any]]:
        seen = {key: value for key, value in self._shown.items() if key not in PARTS}
        named = {name: self._shown[key] for key, name in PARTS.items() if key in self._shown}
        rows = everything({"observations": seen, **named})
        return {name: each.reshape(self.spec.num_envs, -1) for name, each in rows.items()}

    @property
    def spaces(self) -> tuple[None, None]:
        return None, None

    def _by_env(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows.reshape(len(rows), self.spec.num_envs, -1)

    def unfold(self, row: NDArray[Any]) -> Any:
        like = self.env.action_spec.rand()
        return sys.modules["torch"].as_tensor(row).reshape(like.shape).to(like.dtype)
