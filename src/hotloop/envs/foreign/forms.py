"""How a trainer reads the user's envs and acts on them: observations become rows, actions come from rows.

A member is one env, which writes what it shows into its own rows of the batch's arrays. A batch of the user's
is stepped as a whole.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.process import lifeline
from hotloop.core.world import Acts, Array, Layout
from hotloop.envs.foreign.inside import (
    BROKEN,
    MASK,
    attribute,
    flat,
    is_a,
    mask_in,
    mask_method,
    plain,
    raised,
)
from hotloop.envs.foreign.single import check_given, five
from hotloop.envs.foreign.subject import close_env, reward_of, seeded, split_reset
from hotloop.envs.foreign.vector import SAME_STEP, autoreset_of, single_space

SEEN = (
    "expected Box, Discrete, MultiDiscrete, MultiBinary, or a Dict or Tuple of them; a wrapper can make it so"
)

DONE = "expected Discrete, MultiDiscrete, MultiBinary or a Box of real numbers"


class Bounds:
    """Real numbers of an action: for two finite ends a policy has -1 and 1, else they are as they are."""

    def __init__(self, acts: Acts) -> None:
        self._low, self._high = (np.array(ends, np.float32) for ends in (acts.low, acts.high))
        finite = np.isfinite(self._low) & np.isfinite(self._high)
        with np.errstate(invalid="ignore"):
            middle, half = (self._high + self._low) / 2, (self._high - self._low) / 2
        self._middle = np.where(finite, middle, 0).astype(np.float32)
        self._half = np.where(finite & (half > 0), half, 1).astype(np.float32)

    def own(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        """In the env's own terms, cut to what it takes."""
        within: NDArray[np.float32] = np.clip(rows * self._half + self._middle, self._low, self._high)
        return within

    def scaled(self, own: NDArray[Any]) -> NDArray[np.float32]:
        """In a policy's terms."""
        found: NDArray[np.float32] = (own - self._middle) / self._half
        return found


@dataclass(frozen=True, slots=True)
class Numbers:
    """Write a box, or several numbers that are 0 or 1, into a row as they are."""

    size: int

    def write(self, seen: Any, row: NDArray[np.float32]) -> None:
        given = np.asarray(seen).reshape(-1)
        if given.size != self.size:
            raise ValueError(f"{given.size} numbers: its space says {self.size}")
        row[:] = given


@dataclass(frozen=True, slots=True)
class OneHot:
    """Write numbered choices into a row: a 1 in the place of each."""

    sizes: NDArray[np.int64]
    start: Any

    @property
    def size(self) -> int:
        return int(self.sizes.sum())

    def write(self, seen: Any, row: NDArray[np.float32]) -> None:
        given = (np.asarray(seen) - self.start).reshape(-1)
        if given.shape != self.sizes.shape or (given < 0).any() or (given >= self.sizes).any():
            raise ValueError(f"{np.asarray(seen).tolist()}, which is not in its space")
        row[:] = 0
        row[given + np.cumsum(self.sizes) - self.sizes] = 1


@dataclass(frozen=True, slots=True)
class RowParts:
    """Write parts by name or place into a row, one behind the other."""

    parts: Sequence[tuple[Any, "Reader"]]

    @property
    def size(self) -> int:
        return sum(reader.size for _, reader in self.parts)

    def write(self, seen: Any, row: NDArray[np.float32]) -> None:
        first = 0
        for key, reader in self.parts:
            reader.write(seen[key], row[first : first + reader.size])
            first += reader.size


Reader = Numbers | OneHot | RowParts  # Of what an env shows; ValueError where that does not fit its space


def observation_reader(name: str, space: Any) -> Reader:
    """How observations of a space become rows; the mask that some have among them is left out."""
    match type(space).__name__:
        case "Box" | "MultiBinary":
            return Numbers(int(np.prod(space.shape)))
        case "Discrete":
            return OneHot(np.array([space.n]), int(space.start))
        case "MultiDiscrete":
            return OneHot(np.ravel(space.nvec).astype(np.int64), space.start)
        case "Dict":
            kept = [(key, part) for key, part in space.spaces.items() if key != MASK]
            return RowParts([(key, observation_reader(name, part)) for key, part in kept])
        case "Tuple":
            return RowParts([(at, observation_reader(name, part)) for at, part in enumerate(space.spaces)])
    raise InputError(f"{name} observes {plain(space)}: {SEEN}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionReader:
    """From a row of a policy's actions to what an env's step takes."""

    outputs: int  # Of a policy over these actions
    acts: Acts | None  # None is one numbered action
    shape: tuple[int, ...] = ()
    start: Any = 0
    dtype: Any = np.int64
    bounds: Bounds | None = None

    def own(self, row: NDArray[Any]) -> Any:
        """`row` is one number, or as many as an action has."""
        if self.acts is None:
            return int(row) + self.start
        if self.bounds is None:
            return (row.reshape(self.shape) + self.start).astype(self.dtype)
        return self.bounds.own(row).reshape(self.shape).astype(self.dtype)


def action_reader(name: str, space: Any) -> ActionReader:
    """How actions of a space are made; InputError where no policy of ours can choose them."""
    match type(space).__name__:
        case "Discrete":
            return ActionReader(outputs=int(space.n), acts=None, start=int(space.start))
        case "MultiDiscrete" | "MultiBinary":
            of_each = getattr(space, "nvec", None)
            sizes = np.full(space.shape, 2) if of_each is None else of_each
            acts = Acts(choices=tuple(int(size) for size in np.ravel(sizes)))
            start = getattr(space, "start", 0)
            return ActionReader(
                outputs=sum(acts.choices), acts=acts, shape=space.shape, start=start, dtype=space.dtype
            )
        case "Box" if np.issubdtype(space.dtype, np.floating) and np.prod(space.shape):
            low, high = (tuple(np.ravel(ends).tolist()) for ends in (space.low, space.high))
            acts = Acts(low=low, high=high)
            return ActionReader(
                outputs=2 * acts.width, acts=acts, shape=space.shape, dtype=space.dtype, bounds=Bounds(acts)
            )
    raise InputError(f"{name} acts by {plain(space)}: {DONE}")


TRAINABLE = (
    "hotloop train takes envs of Gymnasium, one agent each, batches of them, and parallel envs of PettingZoo"
)

Arrays = Mapping[str, NDArray[Any]]  # By name, each [num_envs, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """How envs that are all alike are read and acted on."""

    name: str
    reader: Reader
    doing: ActionReader
    agents: tuple[str, ...] = ()  # Names of a parallel env's agents
    masked: bool = False  # Whether they say what is legal

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

    def with_masks(self, *, told: bool) -> "Form":
        """Return the same form; if the envs say what is legal and their actions can be masked, with masks."""
        return replace(self, masked=told and self.doing.bounds is None)

    def member(self, env: Any, arrays: Arrays, place: int) -> "Member":
        return (TeamMember if self.agents else SoloMember)(self, env, arrays, place)


def form_from(name: str, seen: Any, done: Any, agents: Sequence[Any] = ()) -> Form:
    """Return how envs of an observation space and an action space are read and acted on."""
    reader, doing = observation_reader(name, seen), action_reader(name, done)
    return Form(name=name, reader=reader, doing=doing, agents=tuple(map(str, agents)))


def form_of(name: str, env: Any, gymnasium: Any) -> Form:
    """Return how an env, which is reset once for that, is read and acted on; InputError if it cannot be."""
    if isinstance(env, gymnasium.Env):
        form = form_from(name, env.observation_space, env.action_space)
        _, info = first_reset(name, env)
        return form.with_masks(told=says_mask(env.observation_space, info) or mask_method(env) is not None)
    agents = attribute(env, "possible_agents")
    if not agents or not callable(attribute(env, "observation_space")):
        raise InputError(f"{name} is a {type(env).__name__}: {TRAINABLE}")
    for what in ("observation_space", "action_space"):
        spaces = [getattr(env, what)(agent) for agent in agents]
        for agent, space in zip(agents, spaces, strict=True):
            if space != spaces[0]:
                raise InputError(
                    f"{name}: {what} of {agent} is {plain(space)} and of {agents[0]} {plain(spaces[0])}: "
                    "one network plays all agents, so they have to be alike; a wrapper can make them so"
                )
    seen = env.observation_space(agents[0])
    form = form_from(name, seen, env.action_space(agents[0]), agents)
    given = first_reset(name, env)
    info = given[1].get(agents[0]) if isinstance(given, tuple) else None
    return form.with_masks(told=says_mask(seen, info))


def first_reset(name: str, env: Any) -> Any:
    """What it shows before there is a batch that would say that it is asked."""
    with lifeline.doing(lifeline.Activity.RESET):
        return ask(name, partial(env.reset, seed=0))


def says_mask(space: Any, info: Any) -> bool:
    return mask_in(info) is not None or MASK in (attribute(space, "spaces") or {})


class SoloMember:
    """An env of Gymnasium at its place in a batch; a step begins the next episode where one ends."""

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
        arrays["rewards"][place, 0] = reward_of(reward, self.env)
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
    """A parallel env of PettingZoo: a row per agent, empty while the agent is not there."""

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


Member = SoloMember | TeamMember


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


Begun = Sequence[tuple[int, int | None]]  # Envs, and the seed that each begins an episode with

# Where a batch of Gymnasium's kind says what an env showed at the end of its episode.
LAST_SEEN = ("final_obs", "final_observation")


def counts_envs(env: Any) -> bool:
    """Whether an object is several envs behind one step."""
    number = attribute(env, "num_envs")
    return (
        isinstance(number, (int, np.integer))
        and not isinstance(number, bool)
        and not is_a(env, "gymnasium", "Env")
    )


def form_of_batch(name: str, env: Any) -> Form:
    """How a batch, which is reset once for that, is read and acted on; InputError where it cannot be."""
    if autoreset_of(env) != SAME_STEP:
        raise InputError(
            f"{name} begins the next episode in the step after an end: a training takes batches that begin "
            "it in the same step, such as autoreset_mode=AutoresetMode.SAME_STEP of Gymnasium's"
        )
    observed = attribute(env, "single_observation_space") or attribute(env, "observation_space")
    acted = attribute(env, "single_action_space") or single_space(env)
    if observed is None or acted is None:
        raise InputError(f"{name} is a {type(env).__name__} without the spaces of one env: give it both")
    form = form_from(name, observed, acted)
    given = first_reset(name, env) if not is_vec_env(env) else ask(name, env.reset)
    seen, infos = split_reset(given)
    if isinstance(seen, (Mapping, tuple)) or len(seen) != env.num_envs:
        raise InputError(
            f"{name}: expected observations as one array with a row for each of {env.num_envs} envs"
        )
    if mask_in(infos, seen) is not None:
        raise InputError(f"{name} says which actions are legal: train on single envs with masks instead")
    return form


def is_vec_env(env: Any) -> bool:
    return is_a(env, "stable_baselines3.common.vec_env", "VecEnv")


class Whole:
    """One batch that steps all envs of a training, and begins their next episodes by itself."""

    def __init__(self, form: Form, env: Any, arrays: Arrays, actions: NDArray[Any]) -> None:
        self.form, self.env, self.arrays, self.actions = form, env, arrays, actions
        self._seen = np.zeros_like(arrays["observations"])

    def begin(self, begun: Begun) -> None:
        """Begin all envs, env i by the batch's own rule from the first seed."""
        if len(begun) != self.env.num_envs:
            raise InputError(
                f"{self.form.name} can only be reset as a whole: leave out what resets single envs"
            )
        seed = begun[0][1]
        if is_vec_env(self.env):
            if seed is not None:
                self.env.seed(seed)
            given = ask(self.form.name, self.env.reset)
        elif seed is None:
            given = ask(self.form.name, self.env.reset)
        else:
            given = ask(self.form.name, partial(seeded, self.env.reset, seed))
        self._show("observations", split_reset(given)[0])

    def step(self) -> None:
        arrays = self.arrays
        self._seen[...] = arrays["observations"]
        seen, rewards, ended, cut, infos = five(ask(self.form.name, partial(self.env.step, self._own())))
        arrays["rewards"][...] = np.asarray(rewards).reshape(arrays["rewards"].shape)
        over = np.asarray(ended, bool)
        limits = np.zeros(len(over), bool)
        if not isinstance(infos, Mapping):  # Stable-Baselines3 says env by env which ends are a time limit's
            limits = np.array([bool(info.get("TimeLimit.truncated")) for info in infos])
        arrays["terminals"][...] = over & ~limits
        arrays["truncations"][...] = np.asarray(cut, bool) | (over & limits)
        self._show("observations", seen)
        for place in np.flatnonzero(over | arrays["truncations"]).tolist():
            if isinstance(infos, Mapping):
                lasts = next((infos[name] for name in LAST_SEEN if name in infos), None)
                last = None if lasts is None else lasts[place]
            else:
                last = infos[place].get("terminal_observation")
            row = arrays["final_observations"][place]
            if last is None:  # it says nothing: what was seen before the last action stands for it
                row[...] = self._seen[place]
            else:
                show(self.form, last, row)
        lifeline.end_copy()

    def _own(self) -> NDArray[Any]:
        """The actions as the batch takes them."""
        doing, rows = self.form.doing, self.actions[:, 0]
        if doing.acts is None:
            return np.asarray(rows.astype(np.int64) + doing.start)
        return np.array([doing.own(row) for row in rows])

    def _show(self, name: str, seen: Any) -> None:
        rows = self.arrays[name]
        given = np.asarray(seen)
        if isinstance(self.form.reader, Numbers) and given.size == rows.size:
            rows[...] = given.reshape(rows.shape)
            return
        for place, row in enumerate(rows):
            show(self.form, given[place], row)

    def close(self) -> None:
        close_env(self.env)
