"""What the adapters share: spaces, arrays in the shapes of other libraries, and seeds of episodes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.exact_math import GOLDEN
from hotloop.core.world import Array, Part
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import require_host
from hotloop.envs.open import make
from hotloop.envs.spec import MAX_SEED

RENDER_MODES = ("rgb_array", "ansi")

RENDER_FPS = 10

Seen = NDArray[Any] | dict[str, NDArray[Any]]  # One array, or one for each part of a row
# Keys of a batch that the library's own arguments decide.
OURS = ("num_envs", "autoreset", "seed", "render_mode")


def open_batch(
    target: str, given: dict[str, Any], *, num_envs: int, render_mode: str | None, autoreset: bool = False
) -> Batch:
    """Make the batch behind an env of another library."""
    for key in OURS:
        if key in given:
            raise InputError(
                f"leave out {key}: the library decides it (num_envs, reset(seed=...), render_mode)"
            )
    if render_mode not in (None, *RENDER_MODES):
        raise InputError(f"render_mode is {render_mode!r}: expected None, {' or '.join(RENDER_MODES)}")
    shown = render_mode or "none"
    batch = make(target, num_envs=num_envs, autoreset=autoreset, render_mode=shown, **given)
    require_host(batch, "an env of another library")
    return batch


class BatchAdapter:
    """What every env in front of a batch has."""

    _batch: Batch
    render_mode: str | None

    def render(self) -> Any:
        return None if self.render_mode is None else self._batch.render(0)

    def close(self) -> None:
        self._batch.close()


def render_modes(batch: Batch) -> list[str]:
    return list(RENDER_MODES) if batch.spec.world.drawer else []


def box(batch: Batch, declared: Array | Part, shape: tuple[int, ...]) -> Box:
    """What numbers of a shape can be: as the world declares, or all that their type can hold."""
    dtype = batch.observations.dtype
    low, high = (-np.inf, np.inf) if dtype.kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    return Box(
        low if declared.low is None else declared.low,
        high if declared.high is None else declared.high,
        shape,
        dtype.type,
    )


def observation_space(batch: Batch, seen: Seen, axes: int) -> Box | Dict:
    """The space of what is seen, without its first axes: by parts where the world declares them."""
    layout = batch.spec.layout
    if not isinstance(seen, dict):
        return box(batch, layout.observation, seen.shape[axes:])
    return Dict({part.name: box(batch, part, seen[part.name].shape[axes:]) for part in layout.parts})


def has_agent_axis(batch: Batch) -> bool:
    """Whether observations are [num_envs, agents, ...] rather than [num_envs, ...]."""
    shape = batch.observations.shape
    return len(shape) > 2 and shape[1] == batch.spec.agents


def whole_observations(batch: Batch) -> Seen:
    """Views of the observations, [num_envs, ...], without an axis for an agent that is alone."""
    alone = batch.spec.agents == 1 and has_agent_axis(batch)
    return each(batch.parts or batch.observations, lambda rows: rows[:, 0] if alone else rows)


def agent_observations(batch: Batch) -> Seen:
    """Views of the observations, [num_envs, agents, ...]."""
    has_axis = has_agent_axis(batch)
    return each(batch.parts or batch.observations, lambda rows: rows if has_axis else rows[:, None])


def each(seen: Seen, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Seen:
    """What is seen, with every array changed."""
    return {name: change(rows) for name, rows in seen.items()} if isinstance(seen, dict) else change(seen)


def whole_rewards(batch: Batch) -> NDArray[np.float32]:
    """The rewards of an env, [num_envs]: those of its agents added up."""
    rewards = batch.rewards.reshape(batch.spec.num_envs, -1)
    total: NDArray[np.float32] = rewards[:, 0] if rewards.shape[1] == 1 else rewards.sum(axis=1)
    return total


def whole_action_space(batch: Batch) -> Discrete[Any] | MultiDiscrete:
    """A number, or one for each agent."""
    spec = batch.spec
    return Discrete(spec.num_actions) if spec.agents == 1 else MultiDiscrete([spec.num_actions] * spec.agents)


def infos_of(batch: Batch) -> dict[str, NDArray[Any]]:
    """The infos of a batch, and what Gymnasium's users look for there: masks, and each agent's reward."""
    more: dict[str, NDArray[Any]] = {}
    if batch.masks is not None:
        alone = batch.spec.agents == 1 and batch.masks.ndim > 2
        more["action_mask"] = batch.masks[:, 0] if alone else batch.masks
    if batch.spec.agents > 1:
        more["agent_rewards"] = batch.rewards
    return {**batch.infos, **more}


Words = NDArray[np.uint64]


class EpisodeSeeds:
    """The seed of each env's next episode.

    An env's first episode has the seed it was given, the k-th after it `mix(seed, k)`: what the other
    envs of a batch do changes nothing.
    """

    def __init__(self, num_envs: int) -> None:
        self._given = np.zeros(num_envs, np.uint64)
        self._seeded = np.zeros(num_envs, np.bool_)
        self._episodes = np.zeros(num_envs, np.uint64)

    def follow(self, envs: NDArray[np.int64]) -> Words:
        """The next seeds of envs that have all been given one."""
        self._episodes[envs] += np.uint64(1)
        return mix_rows(self._given[envs], self._episodes[envs])

    def begin(
        self, envs: NDArray[np.int64], seeds: Sequence[int | None], random: np.random.Generator
    ) -> Words:
        """Seed envs anew; one that is given None goes on, or gets a random seed where it never had one."""
        for seed in seeds:
            if seed is not None and not 0 <= seed <= MAX_SEED:
                raise InputError(f"seed {seed} is out of range: expected 0 to 2**64 - 1")
        fresh = np.array([seed is not None for seed in seeds], np.bool_)
        unseeded = ~fresh & ~self._seeded[envs]
        given = np.array([seed or 0 for seed in seeds], np.uint64)
        given[unseeded] = random.integers(2**63, size=int(unseeded.sum()), dtype=np.uint64)
        anew = fresh | unseeded
        self._given[envs[anew]] = given[anew]
        self._episodes[envs[anew]] = 0
        self._seeded[envs] = True
        if not anew.all():
            given[~anew] = self.follow(envs[~anew])
        return given


def mix_rows(*words: Words) -> Words:
    """`core.random.mix` of each row."""
    mixed = np.zeros_like(words[0])
    for word in words:
        mixed = (mixed + np.uint64(GOLDEN)) ^ word
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed


def one_each(seed: int | Sequence[int | None] | None, num_envs: int) -> list[int | None]:
    """A seed for each env as Gymnasium's vector envs understand one: seed, seed + 1, ..., or a list."""
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, (int, np.integer)):
        return [int(seed) + env for env in range(num_envs)]
    if len(seed) != num_envs:
        raise InputError(f"{len(seed)} seeds for {num_envs} envs: give one an env")
    return [None if each is None else int(each) for each in seed]
