"""PettingZoo's envs: all agents at once (parallel), or one after another (AEC)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.isolate import lifeline
from hotloop.core.isolate.lifeline import STEPS, Doing
from hotloop.envs.foreign.actions import Sample, from_space
from hotloop.envs.foreign.answering import NAMES, Answering, plain_action, plainly
from hotloop.envs.foreign.single import first_of, second_of, seeded
from hotloop.envs.foreign.spec import ForeignSpec, in_span, raised

MASK = "action_mask"


class ZooSubject(Answering):
    """An env with agents that have names, each with actions of its own to draw."""

    def __init__(self, env: Any, spec: ForeignSpec, *, timed: bool) -> None:
        super().__init__(env, spec, timed=timed)
        self._samples: dict[str, Sample] = {
            agent: from_space(env.action_space(agent)) for agent in env.possible_agents
        }

    def draw_by_agent(self, random: np.random.Generator, calls: int) -> list[dict[str, Any]]:
        """An action for every agent there can be, for each call."""
        drawn = {agent: sample(random, calls) for agent, sample in self._samples.items()}
        return [{agent: actions[call] for agent, actions in drawn.items()} for call in range(calls)]


class ParallelSubject(ZooSubject):
    """A parallel env: one call steps all living agents; when none is left, the next episode begins."""

    def __init__(self, env: Any, spec: ForeignSpec, *, timed: bool) -> None:
        super().__init__(env, spec, timed=timed)
        self._agent_steps = 0

    def reset(self) -> None:
        try:
            with lifeline.doing(Doing.RESET, Doing.STEP):
                given = seeded(self._reset, self.spec.seed)
        except BaseException as error:
            raise raised(self.spec.name, error) from error
        self.observation = first_of(given)
        self.resets += 1
        nothing = dict.fromkeys(self.env.agents, 0.0)
        not_yet = dict.fromkeys(self.env.agents, False)
        self._given = (self.observation, nothing, not_yet, not_yet, second_of(given))
        self._answers.begin(self._parts())

    def step(self, actions: Mapping[str, Any]) -> None:
        self._pulse[STEPS] = self._steps
        try:
            living = self.env.agents
            self._agent_steps += len(living)
            if len(living) != len(actions):
                actions = {agent: actions[agent] for agent in living}
            self._given = given = self._step(actions)
            self._steps += 1
            self.observation = given[0]
            if not self.env.agents:
                self.observation = first_of(self._reset())
                self.resets += 1
        except BaseException as error:
            raise raised(self.spec.name, error) from error

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        """A step takes the actions of the living."""
        return self.draw_by_agent(random, calls)

    def unfold(self, row: NDArray[Any]) -> dict[str, Any]:
        return dict(zip(self.env.possible_agents, map(plain_action, row[0]), strict=True))

    @property
    def agent_steps(self) -> int:
        return self._agent_steps

    def _parts(self) -> dict[str, Any]:
        return {**super()._parts(), "next_observations": self.observation}


class TurnSubject(ZooSubject):
    """An AEC env: one call is the turn of one agent, and counts as one env-step and one agent-step.

    Which actions are legal is known only when a turn comes, so what is drawn beforehand is a number from
    0 to 1 that picks one of them; an env without a mask gets an action drawn from its space.
    """

    def __init__(self, env: Any, spec: ForeignSpec, *, timed: bool) -> None:
        super().__init__(env, spec, timed=timed)
        self._last = in_span("env.last", env.last, timed=timed)
        self._pick = in_span("action selection", self._choose, timed=timed)

    def reset(self) -> None:
        try:
            with lifeline.doing(Doing.RESET, Doing.STEP):
                self._begin(seed=self.spec.seed)
        except BaseException as error:
            raise raised(self.spec.name, error) from error
        self._answers.begin(self._parts())

    def step(self, actions: Any) -> None:
        """Take a turn: `actions` is a number that picks a legal action, or a policy's action by agent."""
        _, _, ended, cut, info = self._given
        self._pulse[STEPS] = self._steps
        try:
            self._step(None if ended or cut else self._pick(actions, info))
            self._steps += 1
            if self.env.agents:
                self._look()
            else:
                self._begin()
        except BaseException as error:
            raise raised(self.spec.name, error) from error

    def draw(self, random: np.random.Generator, calls: int) -> Sequence[Any]:
        drawn = self.draw_by_agent(random, calls)
        return list(zip(random.random(calls).tolist(), drawn, strict=True))

    def _choose(self, drawn: Any, info: Mapping[str, Any]) -> Any:
        if not isinstance(drawn, tuple):
            return drawn
        chance, by_agent = drawn
        mask = self._mask(info)
        if mask is None:
            return by_agent[self.env.agent_selection]
        legal = np.flatnonzero(mask)
        return int(legal[int(chance * len(legal))])

    def _mask(self, info: Mapping[str, Any]) -> Any:
        """Which actions are legal in this turn, as the infos or the observation say it."""
        mask = info.get(MASK)
        if mask is None and isinstance(self.observation, Mapping):
            mask = self.observation.get(MASK)
        return mask

    @property
    def masks(self) -> NDArray[np.bool_] | None:
        mask = self._mask(self._given[4])
        return None if mask is None else np.asarray(mask, np.bool_).reshape(1, 1, -1)

    def _begin(self, seed: int | None = None) -> None:
        if seed is None:
            self._reset()
        else:
            seeded(self._reset, seed)
        self.resets += 1
        self._look()

    def _look(self) -> None:
        self._given = self._last()
        self.observation = self._given[0]

    def _parts(self) -> dict[str, Any]:
        """What the agent whose turn it is sees."""
        return dict(zip(NAMES, plainly(self._given), strict=True))
