"""A world of two agents whose observations have parts of every kind, and whose actions have masks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hotloop.core.settings import parameter
from hotloop.core.world import Array, Layout, Part, World

AGENTS, ACTIONS = 2, 4
PARTS = (
    Part(name="self", shape=(3,), low=0.0, high=1.0),
    Part(name="things", shape=(5, 2), kind="objects"),
    Part(name="view", shape=(2, 4, 4), kind="image"),
    Part(name="choices", shape=(ACTIONS, 2), kind="options"),
)
ROW = sum(part.size for part in PARTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """How long an episode is."""

    length: int = parameter(5, low=1, role="workload", help="Steps of an episode.")


class Twin:
    """An agent is rewarded for the one action that its mask leaves out least long ago."""

    def __init__(self, plan: Mapping[str, Any], out: Mapping[str, Any]) -> None:
        self.plan, self.out = plan, out
        self.chosen = [0] * AGENTS
        self.counters: dict[str, int] = {}

    def restart(self, episode_seed: int) -> None:
        self.age, self.seed = 0, episode_seed
        self.show()

    def act(self) -> None:
        self.out["rewards"][:] = [float(chosen == self.age % ACTIONS) for chosen in self.chosen]
        self.age += 1
        self.out["truncations"][()] = self.age == self.plan["length"]
        self.show()

    def show(self) -> None:
        for agent in range(AGENTS):
            row = self.out["observations"][agent]
            row[:] = np.arange(ROW) / ROW
            row[:3] = (self.age / 100, agent, self.seed % 7 / 7)
            self.out["masks"][agent] = np.arange(ACTIONS) != (self.age + 1 + agent) % ACTIONS

    def digest(self) -> int:
        return self.age * 1_000 + self.seed % 1_000

    def save(self) -> bytes:
        return f"{self.age} {self.seed}".encode()

    def load(self, saved: bytes) -> None:
        self.age, self.seed = map(int, saved.split())


def layout(_: Parameters) -> Layout:
    arrays = (
        Array(name="observations", dtype="float32", shape=(AGENTS, ROW)),
        Array(name="rewards", dtype="float32", shape=(AGENTS,)),
        Array(name="terminals", dtype="bool", shape=()),
        Array(name="truncations", dtype="bool", shape=()),
        Array(name="masks", dtype="bool", shape=(AGENTS, ACTIONS)),
    )
    return Layout(agents=AGENTS, num_actions=ACTIONS, arrays=arrays, parts=PARTS)


world = World(
    name="table",
    summary="Parts and masks.",
    parameters=Parameters,
    presets={"default": {}},
    phases=("act",),
    plan=lambda parameters: {"length": parameters.length},
    layout=layout,
    twin=lambda: Twin,  # type: ignore[arg-type, return-value]
)
