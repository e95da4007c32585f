"""Small games of two seats, and players for them."""

from typing import Any

import gymnasium as gym
import numpy as np


class Race(gym.Env):  # type: ignore[type-arg]
    """Seats take turns adding their action; who makes the sum reach the goal wins."""

    def __init__(
        self,
        goal: int = 6,
        winner: str = "info",
        labels: str = "",
        rest: bool = False,
        draw: bool = False,
        third: int = 0,
    ) -> None:
        self.observation_space = gym.spaces.Box(0, 100, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(2, start=1)
        self._goal, self._winner, self._rest, self._draw = goal, winner, rest, draw
        self._third = third
        self._labels = labels.split("-") if labels else [0, 1]
        if labels:
            self.seats = lambda: self._labels

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._sum = self._turn = 0
        return self._seen(), self._info()

    def step(self, action: Any) -> Any:
        assert action in (1, 2)
        self._sum += int(action)
        over, mover = self._sum >= self._goal, self._turn
        if not over:
            self._turn = 1 - self._turn
        info = self._info()
        if over and self._winner in ("info", "array"):
            winner = None if self._draw else self._labels[mover]
            info["winner"] = np.array(winner) if self._winner == "array" else winner
        reward = {"reward": 1.0, "loss": -1.0}.get(self._winner, 0.0) if over else 0.0
        return self._seen(), reward, over, False, info

    def _seen(self) -> Any:
        return np.array([self._sum, self._turn], np.float32)

    def _info(self) -> dict[str, Any]:
        if self._third and self._sum > 2:
            return {"player": self._third}
        return {} if self._rest else {"player": self._labels[self._turn]}


def one(obs: Any, info: Any) -> int:
    return 1


def two(seen: Any, whatever: Any) -> int:
    assert isinstance(whatever, dict)
    return 2


def first_legal(observations: Any, action_mask: Any) -> Any:
    """Play the first legal action of each game of a batch."""
    return np.argmax(action_mask, axis=-1)


def broken(obs: Any, info: Any) -> int:
    raise ValueError("out of ideas")


def far(obs: Any, info: Any) -> int:
    return 99


class Half:
    """A model that cannot select."""

    def forward(self, obs: Any) -> Any:
        return obs


HALF = Half()


class Whole(Half):
    """A model that counts its moves, and takes 2 from the second on."""

    def __init__(self) -> None:
        self.moves = 0

    def select(self, output: Any) -> int:
        self.moves += 1
        return min(self.moves, 2)


WHOLE = Whole()


class Model:
    """Draws from its own generator and from NumPy's global one."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def forward(self, obs: Any) -> Any:
        return self._random.random() + np.random.random()  # noqa: NPY002

    def select(self, output: float) -> int:
        return 1 if output < 1 else 2


def spiel_game() -> Any:
    """Kuhn poker, whose cards are dealt by chance moves."""
    import pyspiel

    return pyspiel.load_game("kuhn_poker")


def spiel_environment() -> Any:
    from open_spiel.python import rl_environment

    return rl_environment.Environment("kuhn_poker")
