"""PufferLib's envs: rows of agents in flat buffers, which reset themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Doing
from hotloop.envs.foreign.spec import BROKEN, everything, raised, unseen
from hotloop.envs.foreign.subject import ForeignSubject
from hotloop.envs.spec import Spec


class RowsSubject(ForeignSubject):
    """An env of PufferLib's kind: one call steps every row, finished ones begin anew by themselves."""

    def __init__(self, env: Any, spec: Spec, **how: Any) -> None:
        super().__init__(env, spec, **how)
        self._calls = 0
        self._given: tuple[Any, ...] = ()
        self._infos: Any = ()

    def reset(self) -> None:
        try:
            with lifeline.doing(Doing.RESET, Doing.STEP):
                self.observation, self._infos = self._reset(self.spec.seed)
        except BROKEN as error:
            raise raised(self.spec.name, error) from error
        self.resets += self.spec.num_envs
        nothing = np.zeros(self.env.num_agents, np.float32)
        self._given = (self.observation, nothing, nothing != 0, nothing != 0)

    def step(self, actions: Any) -> None:
        lifeline.beat(self._pulse, self._calls)
        try:
            self._given = given = self._step(actions)
        except BROKEN as error:
            raise raised(self.spec.name, error, masked=self._is_masked) from error
        self.observation, self._infos = given[0], given[4:]
        self._calls += 1
        ended = np.count_nonzero(np.logical_or(given[2], given[3]))
        self.resets += int(ended) // self.spec.agents

    def _drawn(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        choices = self._choices()
        shape = (calls, self.env.num_agents, *choices.shape)
        return list(random.integers(choices, size=shape, dtype=np.int32))

    def _choices(self) -> NDArray[Any]:
        """How many actions a row has, for each part of an action where it has parts."""
        space = self.env.single_action_space
        return np.asarray(space.nvec if hasattr(space, "nvec") else space.n)

    def _by_env(self, rows: NDArray[Any]) -> NDArray[Any]:
        return rows.reshape(len(rows), self.spec.num_envs, self.spec.agents, *rows.shape[2:])

    def unfold(self, row: NDArray[Any]) -> Any:
        return row.reshape(self.env.num_agents, *self._choices().shape)

    def _counted(self) -> dict[str, int]:
        steps = self._calls * self.spec.num_envs
        return {
            "foreign_steps": steps,
            "env_steps": steps,
            "agent_steps": steps * self.spec.agents,
            "resets": self.resets,
        }

    def _everything(self) -> Mapping[str, NDArray[Any]]:
        """With the infos, which come and go, and are not by env."""
        return {**self.answers(), **everything({"infos": self._infos})}

    def _outputs(self) -> Mapping[str, Any]:
        return {**super()._outputs(), "infos": self._infos}

    def unseen(self) -> Sequence[str]:
        return unseen({"infos": self._infos})

    def answers(self) -> Mapping[str, NDArray[Any]]:
        names = ("observations", "rewards", "terminals", "truncations")
        envs, agents = self.spec.num_envs, self.spec.agents
        return {
            name: np.asarray(rows).reshape(envs, agents, *np.asarray(rows).shape[1:])
            for name, rows in zip(names, self._given, strict=False)
        }
