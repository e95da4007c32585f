"""PufferLib's envs: rows of agents in flat buffers, which reset themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.envs.foreign.spec import ENV_RESET, ENV_STEP, ForeignSpec, in_span, raised, time_inside


class RowsSubject:
    """An env of PufferLib's kind: one call steps every row, finished ones begin anew by themselves."""

    def __init__(self, env: Any, spec: ForeignSpec, *, timed: bool) -> None:
        self.env, self.spec = env, spec
        if timed:
            time_inside(env)
        self._step = in_span(ENV_STEP, env.step, timed=timed)
        self._reset = in_span(ENV_RESET, env.reset, timed=timed)
        self._calls = self.resets = 0
        self._given: tuple[Any, ...] = ()
        self.observation: Any = None

    def reset(self) -> None:
        try:
            self.observation, _ = self._reset(self.spec.seed)
        except Exception as error:
            raise raised(self.spec.name, error) from error
        self.resets += self.spec.num_envs
        nothing = np.zeros(self.env.num_agents, np.float32)
        self._given = (self.observation, nothing, nothing != 0, nothing != 0)

    def step(self, actions: Any) -> None:
        try:
            self._given = given = self._step(actions)
        except Exception as error:
            raise raised(self.spec.name, error) from error
        self.observation = given[0]
        self._calls += 1
        ended = np.count_nonzero(np.logical_or(given[2], given[3]))
        self.resets += int(ended) // self.spec.agents

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        space, rows = self.env.single_action_space, self.env.num_agents
        choices = np.asarray(getattr(space, "nvec", getattr(space, "n", None)))
        shape = (calls, rows, *choices.shape)
        return list(random.integers(choices, size=shape, dtype=np.int32))

    @property
    def counters(self) -> dict[str, int]:
        steps = self._calls * self.spec.num_envs
        return {
            "foreign_steps": steps,
            "env_steps": steps,
            "agent_steps": steps * self.spec.agents,
            "resets": self.resets,
        }

    def answers(self) -> Mapping[str, NDArray[Any]]:
        names = ("observations", "rewards", "terminals", "truncations")
        envs, agents = self.spec.num_envs, self.spec.agents
        return {
            name: np.asarray(rows).reshape(envs, agents, *np.asarray(rows).shape[1:])
            for name, rows in zip(names, self._given, strict=False)
        }

    def phase_totals(self) -> dict[str, int]:
        return {}

    def close(self) -> None:
        self.env.close()
