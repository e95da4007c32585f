"""One env of a trainer's batch: it writes what it shows into its own rows of the batch's arrays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.process import lifeline
from hotloop.core.world import Array, Layout
from hotloop.envs.foreign.actions import MASK, flat, mask_in, mask_method
from hotloop.envs.foreign.single import check_given, five
from hotloop.envs.foreign.spec import BROKEN, attribute, plain, raised
from hotloop.envs.foreign.subject import close_env, earned
from hotloop.envs.foreign.trainable.spaces import Doing, Reader, doing_of, reader_of

EXPECTED = (
    "hotloop train takes envs of Gymnasium, one agent each, batches of them, and parallel envs of PettingZoo"
)

Arrays = Mapping[str, NDArray[Any]]
"""By name, each [num_envs, ...]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How envs that are all alike are read and acted on."""

    name: str
    reader: Reader
    doing: Doing
    agents: tuple[str, ...] = ()
    """Names of those who act, of a parallel env."""
    masked: bool = False
    """Whether they say what is legal."""

    @property
    def layout(self) -> Layout:
        """What the trainer sees of one; agents of a parallel env may leave it before its end."""
        count = max(1, len(self.agents))
        row = (self.reader.size,) if not self.agents else (count, self.reader.size)
        arrays = [
            Array(name="observations", dtype="float32", shape=row),
            Array(name="rewards", dtype="float32", shape=(count,)),
            Array(name="terminals", dtype="bool", shape=()),
            Array(name="truncations", dtype="bool", shape=()),
        ]
        if self.masked:
            arrays.append(Array(name="masks", dtype="bool", shape=(count, self.doing.outputs)))
        if self.agents:
            arrays += [Array(name=name, dtype="bool", shape=(count,)) for name in ("alive", "died")]
            arrays.append(Array(name="lives", dtype="int32", shape=()))
        return Layout(
            agents=count, num_actions=self.doing.outputs, arrays=tuple(arrays), acts=self.doing.acts
        )

    def member(self, env: Any, arrays: Arrays, place: int) -> "Member":
        return (TeamMember if self.agents else SoloMember)(self, env, arrays, place)


def form_of(name: str, env: Any, gymnasium: Any) -> Form:
    """How an env, which is reset once for that, is read and acted on; InputError where it cannot be."""
    if isinstance(env, gymnasium.Env):
        reader, doing = reader_of(name, env.observation_space), doing_of(name, env.action_space)
        _, info = first_reset(name, env)
        told = says_mask(env.observation_space, info) or mask_method(env) is not None
        return Form(name=name, reader=reader, doing=doing, masked=told and maskable(doing))
    agents = attribute(env, "possible_agents")
    if not agents or not callable(attribute(env, "observation_space")):
        raise InputError(f"{name} is a {type(env).__name__}: {EXPECTED}")
    first = agents[0]
    for space in ("observation_space", "action_space"):
        check_alike(name, agents, [getattr(env, space)(agent) for agent in agents], space)
    seen = env.observation_space(first)
    reader, doing = reader_of(name, seen), doing_of(name, env.action_space(first))
    given = first_reset(name, env)
    told = says_mask(seen, given[1].get(first) if isinstance(given, tuple) else None)
    return Form(
        name=name,
        reader=reader,
        doing=doing,
        agents=tuple(map(str, agents)),
        masked=told and maskable(doing),
    )


def first_reset(name: str, env: Any) -> Any:
    """What it shows before there is a batch that would say that it is asked."""
    with lifeline.doing(lifeline.Doing.RESET):
        return ask(name, partial(env.reset, seed=0))


def check_alike(name: str, agents: Sequence[Any], spaces: Sequence[Any], what: str) -> None:
    """Refuse agents that one network cannot play."""
    for agent, space in zip(agents, spaces, strict=True):
        if space != spaces[0]:
            raise InputError(
                f"{name}: {what} of {agent} is {plain(space)} and of {agents[0]} {plain(spaces[0])}: "
                "one network plays all agents, so they have to be alike; a wrapper can make them so"
            )


def says_mask(space: Any, info: Any) -> bool:
    return mask_in(info) is not None or MASK in (attribute(space, "spaces") or {})


def maskable(doing: Doing) -> bool:
    return doing.bounds is None


class Member(Protocol):
    """One env, at its place in a batch."""

    def begin(self, seed: int | None = None) -> None:
        """Begin an episode."""

    def step(self, action: NDArray[Any]) -> None:
        """Step, and begin the next episode where one ends."""

    def close(self) -> None: ...


class SoloMember:
    """An env of Gymnasium."""

    def __init__(self, form: Form, env: Any, arrays: Arrays, place: int) -> None:
        self._form, self.env, self._arrays, self._place = form, env, arrays, place
        self._mask_method = mask_method(env) if form.masked else None

    def begin(self, seed: int | None = None) -> None:
        seen, info = ask(self._form.name, partial(self.env.reset, seed=seed))
        self._show("observations", seen)
        self._tell_mask(seen, info)

    def step(self, action: NDArray[Any]) -> None:
        arrays, place = self._arrays, self._place
        taken = self._form.doing.own(action[0])
        given = five(ask(self._form.name, partial(self.env.step, taken)))
        check_given(given, self.env)
        seen, reward, ended, cut, info = given
        arrays["rewards"][place, 0] = earned(reward, self.env)
        arrays["terminals"][place], arrays["truncations"][place] = ended, cut
        if ended or cut:
            self._show("final_observations", seen)
            self.begin()
        else:
            self._show("observations", seen)
            self._tell_mask(seen, info)

    def _show(self, name: str, seen: Any) -> None:
        show(self._form, seen, self._arrays[name][self._place])

    def _tell_mask(self, seen: Any, info: Any) -> None:
        if self._form.masked:
            mask = mask_in(info, seen)
            found = self._mask_method() if mask is None and self._mask_method else mask
            tell_mask(self._form, found, self._arrays["masks"][self._place, 0])

    def close(self) -> None:
        close_env(self.env)


class TeamMember:
    """A parallel env of PettingZoo: a row an agent, and nobody's while an agent is not there."""

    def __init__(self, form: Form, env: Any, arrays: Arrays, place: int) -> None:
        self._form, self.env, self._place = form, env, place
        self._rows = {name: array[place : place + 1] for name, array in arrays.items()}
        self._agents = list(env.possible_agents)
        self._number = {agent: number for number, agent in enumerate(self._agents)}
        self._began = 0

    def begin(self, seed: int | None = None) -> None:
        given = ask(self._form.name, partial(self.env.reset, seed=seed))
        seen, infos = given if isinstance(given, tuple) else (given, {})
        self._began = len(self.env.agents)
        self._show("observations", seen, infos)
        self._rows["alive"][0] = [agent in self.env.agents for agent in self._agents]
        self._rows["lives"][0] = self._began

    def step(self, action: NDArray[Any]) -> None:
        rows, living = self._rows, list(self.env.agents)
        taken = {agent: self._form.doing.own(action[self._number[agent]]) for agent in living}
        seen, rewards, ended, cut, infos = ask(self._form.name, partial(self.env.step, taken))
        rows["rewards"][0] = [float(rewards.get(agent, 0.0)) for agent in self._agents]
        over = {agent: bool(ended.get(agent) or cut.get(agent)) for agent in living}
        left = [agent for agent in living if not over[agent]]
        rows["died"][0] = [
            over.get(agent, False) if left else bool(ended.get(agent)) for agent in self._agents
        ]
        rows["terminals"][0] = not left and all(ended.get(agent) for agent in living)
        rows["truncations"][0] = not left and not rows["terminals"][0]
        if left:
            self._show("observations", seen, infos)
            rows["alive"][0] = [agent in left for agent in self._agents]
        else:
            self._show("final_observations", seen, infos)
            lives = self._began
            self.begin()
            rows["lives"][0] = lives

    def _show(self, name: str, seen: Mapping[Any, Any], infos: Mapping[Any, Any]) -> None:
        for agent, shown in seen.items():
            number = self._number[agent]
            show(self._form, shown, self._rows[name][0, number])
            if self._form.masked and name == "observations":
                mask = mask_in(infos.get(agent), shown)
                tell_mask(self._form, mask, self._rows["masks"][0, number])

    def close(self) -> None:
        close_env(self.env)


def show(form: Form, seen: Any, row: NDArray[np.float32]) -> None:
    """Write an observation into its row."""
    try:
        form.reader.write(seen, row)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise InputError(f"{form.name} observed {error}") from None


def tell_mask(form: Form, mask: Any, row: NDArray[np.bool_]) -> None:
    """Write what is legal into its row; everything where nothing is said."""
    given = None if mask is None else flat(mask)
    if given is not None and given.shape != row.shape:
        raise InputError(
            f"{form.name} has a mask of {given.size}: its actions need {row.size}, one behind the other"
        )
    row[:] = True if given is None else given


def ask(name: str, call: Callable[[], Any]) -> Any:
    """What an env answers; its own last words where it raises."""
    try:
        return call()
    except BROKEN as error:
        raise raised(name, error) from error
