"""Vector envs over the game of vector_game.py that step all envs at once, in arrays."""

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vector_game import LENGTH, WIDTH, WORD, Batch, Five, seeds_of


class Arrays(Batch):
    """All envs at once in arrays; a subclass says what computes a step."""

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None or not hasattr(self, "seeds"):
            seeds = [one or 0 for one in seeds_of(seed or 0, self.num_envs)]
            self.seeds = np.array([one & WORD for one in seeds], np.uint32)
            self.episodes = np.zeros(self.num_envs, np.uint32)
        else:
            self.episodes += np.uint32(1)
        self.words = self.seeds * np.uint32(2654435761) + self.episodes * np.uint32(40503)
        self.ages = np.zeros(self.num_envs, np.int32)
        return observe(np, self.words), {}

    def step(self, actions: Any) -> Five:
        return (*self.advance(np.asarray(actions, np.uint32)), {})

    def advance(self, actions: NDArray[np.uint32]) -> tuple[Any, Any, Any, Any]:
        state = (self.words, self.ages, self.episodes)
        state, answers = advance(np, state, self.seeds, actions)
        self.words, self.ages, self.episodes = state
        return answers


def advance(xp: Any, state: tuple[Any, Any, Any], seeds: Any, actions: Any) -> tuple[Any, Any]:
    """Return the state after a step of all envs, and what the step answers; by NumPy or jax.numpy."""
    unsigned, (words, ages, episodes) = xp.uint32, state
    words = words * unsigned(1664525) + unsigned(1013904223) + actions
    ages = ages + 1
    ended = (words >> unsigned(9)) % unsigned(97) == 0
    cut = ages >= LENGTH
    rewards = ((words >> unsigned(16)) & unsigned(7)).astype(xp.float32)
    over = ended | cut
    episodes = xp.where(over, episodes + unsigned(1), episodes)
    words = xp.where(over, seeds * unsigned(2654435761) + episodes * unsigned(40503), words)
    ages = xp.where(over, 0, ages)
    return (words, ages, episodes), (observe(xp, words), rewards, ended, cut)


def observe(xp: Any, words: Any) -> Any:
    unsigned, columns = xp.uint32, []
    for _ in range(WIDTH):
        words = words * unsigned(69069) + unsigned(1)
        columns.append((words >> unsigned(8)).astype(xp.float32) * xp.float32(2**-24))
    return xp.stack(columns, axis=1)


class Jax(Arrays):
    """One compiled function of JAX; its results are waited for in the step."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        import jax

        self.compiled = jax.jit(lambda state, seeds, actions: advance(jax.numpy, state, seeds, actions))

    def advance(self, actions: NDArray[np.uint32]) -> tuple[Any, Any, Any, Any]:
        state, answers = self.compiled((self.words, self.ages, self.episodes), self.seeds, actions)
        self.words, self.ages, self.episodes = state
        return tuple(map(np.asarray, answers))

    def reset(self, *, seed: Any = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if hasattr(self, "episodes"):
            self.episodes = np.array(self.episodes)
        return super().reset(seed=seed, options=options)


def loop_over(words: Any, ages: Any, episodes: Any, seeds: Any, actions: Any, answers: Any) -> None:
    """Step env after env, in place, as Numba compiles it."""
    observations, rewards, ended, cut = answers
    for env in range(len(words)):
        word = (np.int64(words[env]) * 1664525 + 1013904223 + np.int64(actions[env])) & 0xFFFFFFFF
        ages[env] += 1
        ended[env], cut[env] = (word >> 9) % 97 == 0, ages[env] >= 200
        rewards[env] = (word >> 16) & 7
        if ended[env] or cut[env]:
            episodes[env] += 1
            word = (np.int64(seeds[env]) * 2654435761 + np.int64(episodes[env]) * 40503) & 0xFFFFFFFF
            ages[env] = 0
        words[env] = word
        for column in range(8):
            word = (word * 69069 + 1) & 0xFFFFFFFF
            observations[env, column] = np.float32(word >> 8) * np.float32(2**-24)


class InPlace(Arrays):
    """Arrays that compiled code changes in place; what it answers is new in every step."""

    def answers(self) -> tuple[Any, Any, Any, Any]:
        count = self.num_envs
        flags = np.empty(count, np.bool_), np.empty(count, np.bool_)
        return np.empty((count, WIDTH), np.float32), np.empty(count, np.float32), *flags


class Numba(InPlace):
    """A loop over the envs that Numba compiles at the first step."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        import numba

        self.compiled = numba.njit(loop_over)

    def advance(self, actions: NDArray[np.uint32]) -> tuple[Any, Any, Any, Any]:
        answers = self.answers()
        self.compiled(self.words, self.ages, self.episodes, self.seeds, actions, answers)
        return answers


SOURCE = """
#include <stdint.h>
void advance(int n, uint32_t *words, int32_t *ages, uint32_t *episodes, const uint32_t *seeds,
             const uint32_t *actions, float *observations, float *rewards, uint8_t *ended, uint8_t *cut) {
    for (int env = 0; env < n; env++) {
        uint32_t word = words[env] * 1664525u + 1013904223u + actions[env];
        ages[env] += 1;
        ended[env] = (word >> 9) % 97 == 0;
        cut[env] = ages[env] >= 200;
        rewards[env] = (float)((word >> 16) & 7);
        if (ended[env] || cut[env]) {
            episodes[env] += 1;
            word = seeds[env] * 2654435761u + episodes[env] * 40503u;
            ages[env] = 0;
        }
        words[env] = word;
        for (int column = 0; column < 8; column++) {
            word = word * 69069u + 1u;
            observations[env * 8 + column] = (float)(word >> 8) * (1.0f / 16777216.0f);
        }
    }
}
"""


class Compiled(InPlace):
    """A C function that ctypes calls once a step."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "advance.c"), Path(folder, "advance.so")
            source.write_text(SOURCE)
            subprocess.run(["gcc", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
            self.function = ctypes.CDLL(str(library)).advance

    def advance(self, actions: NDArray[np.uint32]) -> tuple[Any, Any, Any, Any]:
        answers = self.answers()
        arrays = (self.words, self.ages, self.episodes, self.seeds, actions, *answers)
        self.function(self.num_envs, *(ctypes.c_void_p(each.ctypes.data) for each in arrays))
        return answers


class Torch(Arrays):
    """The same arithmetic in torch, which has 64-bit integers where the others have 32."""

    def __init__(self, num_envs: int) -> None:
        super().__init__(num_envs)
        import torch

        torch.set_num_threads(1)
        self.torch = torch

    def advance(self, actions: NDArray[np.uint32]) -> tuple[Any, Any, Any, Any]:
        torch = self.torch
        names = (self.words, self.episodes, self.seeds, actions)
        words, episodes, seeds, moves = (torch.from_numpy(each.astype(np.int64)) for each in names)
        ages = torch.from_numpy(self.ages) + 1
        words = (words * 1664525 + 1013904223 + moves) & WORD
        ended, cut = (words >> 9) % 97 == 0, ages >= LENGTH
        rewards = ((words >> 16) & 7).float()
        over = ended | cut
        episodes = torch.where(over, episodes + 1, episodes)
        words = torch.where(over, (seeds * 2654435761 + episodes * 40503) & WORD, words)
        self.ages = torch.where(over, 0, ages).numpy()
        self.words, self.episodes = (each.numpy().astype(np.uint32) for each in (words, episodes))
        columns = []
        for _ in range(WIDTH):
            words = (words * 69069 + 1) & WORD
            columns.append((words >> 8).float() * 2**-24)
        return torch.stack(columns, 1).numpy(), rewards.numpy(), ended.numpy(), cut.numpy()
