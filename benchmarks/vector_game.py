"""One small game, as envs of three costs, and what all vector envs over it share."""

import zlib
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

WORD = 0xFFFFFFFF
WIDTH, LENGTH = 8, 200
HEAVY_ROUNDS = 3_000
"""Of Python's arithmetic: about 200 us."""
BLOCK = bytes(range(256)) * 800
"""zlib sums it up in 100 to 300 us, and other threads run meanwhile."""

Five = tuple[Any, Any, Any, Any, dict[str, Any]]


def first_word(seed: int, episode: int) -> int:
    return (seed * 2654435761 + episode * 40503) & WORD


class Light(gymnasium.Env):
    """A 32-bit word that each step scrambles; a step takes a few microseconds."""

    observation_space = Box(0, 1, (WIDTH,), np.float32)
    action_space = Discrete(4)

    def __init__(self) -> None:
        self.first_seed, self.episode = 0, -1

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self.first_seed, self.episode = int(seed), -1
        self.episode += 1
        self.word, self.age = first_word(self.first_seed, self.episode), 0
        return self.observe(self.word), {}

    def step(self, action: Any) -> Five:
        self.word = (self.word * 1664525 + 1013904223 + int(action)) & WORD
        self.age += 1
        ended = (self.word >> 9) % 97 == 0
        return self.observe(self.word), float(self.word >> 16 & 7), ended, self.age >= LENGTH, {}

    def observe(self, word: int) -> NDArray[np.float32]:
        values = []
        for _ in range(WIDTH):
            word = (word * 69069 + 1) & WORD
            values.append((word >> 8) / (1 << 24))  # exact in 32 bits
        return np.array(values, np.float32)


class Heavy(Light):
    """The same game; an observation takes long, and Python's lock is held meanwhile."""

    def observe(self, word: int) -> NDArray[np.float32]:
        for _ in range(HEAVY_ROUNDS):
            word = (word * 69069 + 1) & WORD
        return super().observe(word)


class Summing(Light):
    """The same game; an observation takes long, and other threads may run meanwhile."""

    def observe(self, word: int) -> NDArray[np.float32]:
        return super().observe(zlib.crc32(BLOCK, word))


COSTS: dict[str, type[Light]] = {"light": Light, "heavy": Heavy, "summing": Summing}


class Batch(VectorEnv):
    """What all own kinds share: the spaces, and that an episode begins in the step that ends another."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.single_observation_space = Light.observation_space
        self.single_action_space = Light.action_space
        self.observation_space = batch_space(Light.observation_space, num_envs)
        self.action_space = batch_space(Light.action_space, num_envs)
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}


def seeds_of(seed: Any, count: int) -> list[int | None]:
    """Return the seed of each env: as given, or counted up from the first."""
    if seed is None or isinstance(seed, (list, tuple)):
        return [None] * count if seed is None else list(seed)
    return [int(seed) + env for env in range(count)]
