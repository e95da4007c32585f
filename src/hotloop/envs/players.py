"""The players of a batch of twins: a random one in every world, and those the world declares."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.random import Draws, mix
from hotloop.core.world import Plan, PlayerTwin, World

RANDOM = "random"
RANDOM_STREAM = 0x72616E646F6D
"""Sets the random player's draws apart from the seeds of episodes; players.h has the same."""
SEEN = ("observations", "masks")
"""The arrays an agent sees."""


def random_actions(seed: int, env: int, asked: int, agents: int, bound: int) -> list[int]:
    """Uniform over the first `bound` actions, a function of the seed, the env and how often it was asked."""
    draws = Draws(mix(seed, env, RANDOM_STREAM), asked)
    return [draws.below(agent, bound) for agent in range(agents)]


class Players:
    """Who can choose the actions of a batch; a player's memory is made when it is first asked."""

    def __init__(
        self, world: World, plan: Plan, rows: Mapping[str, NDArray[Any]], *, seed: int, drawn_actions: int
    ) -> None:
        self.world, self.plan, self.rows, self.seed = world, plan, rows, seed
        self.drawn_actions = drawn_actions
        self.names = (RANDOM, *world.players)
        self.asked = dict.fromkeys(self.names, 0)
        self.twins: dict[str, list[PlayerTwin]] = {}
        self.met: dict[str, list[int]] = {}

    def choose(self, name: str, begun: Sequence[int], actions: NDArray[np.int32]) -> None:
        """Fill in every env's actions; `begun` numbers each env's episode, from 1."""
        self.asked[name] += 1
        if name != RANDOM and name not in self.twins:
            self.sit(name, len(begun))
        for env, episode in enumerate(begun):
            actions[env] = self.choose_one(name, env, episode, actions.shape[1])

    def sit(self, name: str, num_envs: int) -> None:
        twin = self.world.players[name]()
        seen = {array: rows for array, rows in self.rows.items() if array in SEEN}
        self.twins[name] = [
            twin(self.plan, {array: rows[env] for array, rows in seen.items()}) for env in range(num_envs)
        ]
        self.met[name] = [0] * num_envs

    def choose_one(self, name: str, env: int, episode: int, agents: int) -> Sequence[int]:
        if name == RANDOM:
            return random_actions(self.seed, env, self.asked[name], agents, self.drawn_actions)
        if self.met[name][env] != episode:
            self.twins[name][env].restart()
            self.met[name][env] = episode
        return self.twins[name][env].choose()

    def counters(self, decisions: int) -> list[tuple[str, int]]:
        """How many decisions each player made; `decisions` are those of one asking."""
        return [(f"decisions.{name}", asked * decisions) for name, asked in self.asked.items()]
