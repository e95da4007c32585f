"""A batch small enough to be followed by hand, for the trainer's tests."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.world import Array, Layout


@dataclass
class ToyBatch:
    """Envs that count: an observation is [time, env, agent], a reward the action taken.

    Env e's episodes end after `lengths[e]` steps, by truncation or, where `terminal[e]`, by termination.
    """

    num_envs: int = 3
    agents: int = 2
    lengths: tuple[int, ...] = (2, 3, 100)
    terminal: tuple[bool, ...] = (False, True, False)
    num_actions: int = 4
    mask: tuple[bool, ...] | None = None
    taken: list[NDArray[np.int32]] = field(default_factory=list)
    asked: int = 0

    def __post_init__(self) -> None:
        shape = (self.num_envs, self.agents)
        self.times = np.zeros(self.num_envs, np.int64)
        self.observations = np.zeros((*shape, 3), np.float32)
        self.final_observations = np.zeros_like(self.observations)
        self.rewards = np.zeros(shape, np.float32)
        self.terminals = np.zeros(self.num_envs, np.bool_)
        self.truncations = np.zeros(self.num_envs, np.bool_)
        self.masks = None if self.mask is None else np.tile(np.array(self.mask), (*shape, 1))
        self.infos: dict[str, NDArray[Any]] = {}
        self.players = ("random", "first")
        layout = Layout(
            agents=self.agents,
            num_actions=self.num_actions,
            arrays=(Array(name="observations", dtype="float32", shape=(self.agents, 3)),),
        )
        self.spec = SimpleNamespace(
            has_empty_rows=False,
            num_envs=self.num_envs,
            agents=self.agents,
            num_actions=self.num_actions,
            name="toy",
            layout=layout,
            world=SimpleNamespace(name="toy", layout=lambda parameters: layout),
            parameters=None,
        )

    def reset(self) -> None:
        self.times[:] = 0
        self.show(self.observations)

    def reset_many(self, envs: NDArray[np.int64]) -> None:
        self.times[envs] = 0
        self.show(self.observations)

    def show(self, out: NDArray[np.float32]) -> None:
        out[..., 0] = self.times[:, None]
        out[..., 1] = np.arange(self.num_envs)[:, None]
        out[..., 2] = np.arange(self.agents)

    def step(self, actions: NDArray[np.int32]) -> None:
        self.taken.append(actions.copy())
        self.rewards[:] = actions
        self.times += 1
        over = self.times >= np.array(self.lengths)
        self.terminals[:] = over & np.array(self.terminal)
        self.truncations[:] = over & ~np.array(self.terminal)
        last = np.zeros_like(self.observations)
        self.show(last)
        self.final_observations[over] = last[over]
        self.times[over] = 0
        self.show(self.observations)

    def new_actions(self) -> NDArray[np.int32]:
        return np.zeros((self.num_envs, self.agents), np.int32)

    def choose(self, player: str) -> NDArray[np.int32]:
        self.asked += 1
        return np.full((self.num_envs, self.agents), 1, np.int32)

    def save(self, env: int) -> bytes:
        return bytes([int(self.times[env])])

    def load(self, env: int, saved: bytes) -> None:
        self.times[env] = saved[0]
        self.show(self.observations)
