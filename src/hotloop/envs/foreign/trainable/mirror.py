"""Somebody's env that is measured, as the batch that the trainer has of it: what was trained sits there."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.target import Target
from hotloop.envs.foreign.single import SingleSubject
from hotloop.envs.foreign.subject import ForeignSubject
from hotloop.envs.foreign.trainable.crew import Begun
from hotloop.envs.foreign.trainable.members import Form, maskable, show, tell_mask
from hotloop.envs.foreign.trainable.spaces import doing_of, reader_of
from hotloop.envs.foreign.trainable.trainable import EnvsBatch, EnvsEngine, envs_spec, make_arrays
from hotloop.envs.foreign.vector import VectorSubject
from hotloop.envs.foreign.zoo import ParallelSubject
from hotloop.envs.spec import BatchSettings

EXPECTED = "runs play envs of Gymnasium, alone or in a vector, and parallel envs of PettingZoo"


class Nobody:
    """Steps nothing: the env is stepped by whoever measures it."""

    def begin(self, begun: Begun) -> None: ...

    def step(self) -> None: ...

    def close(self) -> None: ...


class Mirror:
    """What a subject shows in the arrays of a batch, and a batch's actions in the env's own terms."""

    def __init__(self, subject: ForeignSubject) -> None:
        self._subject, self._env = subject, subject.env
        self._form = form = form_of(subject)
        settings = BatchSettings(num_envs=subject.spec.num_envs, seed=subject.spec.seed)
        spec = envs_spec(Target(form.name), form, settings, {}, {})
        self._arrays, actions = make_arrays(spec)
        self.batch = EnvsBatch(EnvsEngine(form.name, Nobody(), self._arrays, actions, spec), spec, Nobody())
        self._resets = subject.resets
        self._look = self._look_at_team if form.agents else self._look_at_envs
        self.own: Callable[[NDArray[Any]], Any] = self._own_of_team if form.agents else self._own_of_envs
        """From a batch's actions to what the env's step takes."""

    def look(self) -> list[int]:
        """Take over what is shown now; returns the envs that began an episode since the last look."""
        self._look()
        begun, self._resets = self._subject.resets != self._resets, self._subject.resets
        return list(range(self.batch.spec.num_envs)) if begun else []

    def _look_at_envs(self) -> None:
        seen, masks = self._subject.observation, self._subject.told.get("action_mask")
        alone = isinstance(self._subject, SingleSubject)
        for env in range(self.batch.spec.num_envs):
            show(self._form, seen if alone else part_of(seen, env), self._arrays["observations"][env])
            if self._form.masked:
                mask = masks if alone or masks is None else part_of(masks, env)
                tell_mask(self._form, mask, self._arrays["masks"][env, 0])

    def _look_at_team(self) -> None:
        masks = self._subject.told.get("action_mask") or {}
        for number, agent in enumerate(self._env.possible_agents):
            alive = agent in self._env.agents
            self._arrays["alive"][0, number] = alive
            if alive:
                show(self._form, self._subject.observation[agent], self._arrays["observations"][0, number])
                if self._form.masked:
                    tell_mask(self._form, masks.get(agent), self._arrays["masks"][0, number])

    def _own_of_envs(self, actions: NDArray[Any]) -> Any:
        taken = [self._form.doing.own(row[0]) for row in actions]
        return taken[0] if isinstance(self._subject, SingleSubject) else np.array(taken)

    def _own_of_team(self, actions: NDArray[Any]) -> Any:
        agents = enumerate(self._env.possible_agents)
        return {agent: self._form.doing.own(actions[0, number]) for number, agent in agents}


def form_of(subject: ForeignSubject) -> Form:
    """How a subject is read and acted on, by its spaces alone; InputError where no run can."""
    name, env = subject.spec.name, subject.env
    agents: Sequence[Any] = ()
    if isinstance(subject, ParallelSubject):
        agents = env.possible_agents
        seen, done = env.observation_space(agents[0]), env.action_space(agents[0])
    elif isinstance(subject, VectorSubject) and hasattr(env, "single_observation_space"):
        seen, done = env.single_observation_space, env.single_action_space
    elif isinstance(subject, SingleSubject) and hasattr(env, "observation_space"):
        seen, done = env.observation_space, env.action_space
    else:
        raise InputError(
            f"{name} is a {type(env).__name__}: {EXPECTED}; give a policy of its own, module:callable"
        )
    doing = doing_of(name, done)
    return Form(
        name=name,
        reader=reader_of(name, seen),
        doing=doing,
        agents=tuple(map(str, agents)),
        masked=maskable(doing),
    )


def part_of(batched: Any, env: int) -> Any:
    """What one env of several shows: arrays by env, in a mapping or a tuple where it shows several things."""
    if isinstance(batched, Mapping):
        return {key: part_of(value, env) for key, value in batched.items()}
    if isinstance(batched, tuple):
        return tuple(part_of(value, env) for value in batched)
    return batched[env]
