"""Seeds of episodes by Gymnasium's conventions: a seeded env gives the same episodes, one after another."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.exact.random import GOLDEN

MAX_SEED = 2**64 - 1

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
        fresh = np.array([seed is not None for seed in seeds], np.bool_)
        unseeded = ~fresh & ~self._seeded[envs]
        given = np.array([checked(seed) for seed in seeds], np.uint64)
        given[unseeded] = random.integers(2**63, size=int(unseeded.sum()), dtype=np.uint64)
        anew = fresh | unseeded
        self._given[envs[anew]] = given[anew]
        self._episodes[envs[anew]] = 0
        self._seeded[envs] = True
        if not anew.all():
            given[~anew] = self.follow(envs[~anew])
        return given


def checked(seed: int | None) -> int:
    """The seed, 0 in the place of None; InputError where it is out of range."""
    if seed is not None and not 0 <= seed <= MAX_SEED:
        raise InputError(f"seed {seed} is out of range: expected 0 to 2**64 - 1")
    return seed or 0


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
