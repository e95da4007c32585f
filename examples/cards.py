"""A card game for two whose illegal moves raise: which ones are legal is told by `info["action_mask"]`.

    hotloop bench examples/cards.py:make
    hotloop profile examples/cards.py:make
    hotloop compare examples/cards.py:make examples/cards.py:faster
    hotloop validate examples/cards.py:faster 2000 --against examples/cards.py:make
    hotloop sim examples/cards.py:make player=examples/cards.py:Highest episodes=100

Each player holds cards from 1 to 13. In turn they put one on the table; a card must be higher than the one
before, or the player passes. Whoever cannot play on loses the trick, and whoever has no cards left wins.
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete

CARDS, HAND, PASS = 13, 6, 13


class Cards(gymnasium.Env[Any, Any]):
    """One env for both players: the actions of a step are those of whoever's turn it is."""

    observation_space = Box(0, 4, (CARDS + 2,), np.int8)
    action_space = Discrete(CARDS + 1)

    def __init__(self) -> None:
        self.hands = np.zeros((2, CARDS), np.int8)
        self.turn = self.top = self.age = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        deck = self.np_random.permutation(np.repeat(np.arange(CARDS), 4))
        for player in range(2):
            dealt = deck[player * HAND : (player + 1) * HAND]
            self.hands[player] = np.bincount(dealt, minlength=CARDS)
        self.turn, self.top, self.age = int(self.np_random.integers(2)), -1, 0
        return self.observe(), self.infos()

    def step(self, action: Any) -> Any:
        if not self.legal()[action]:
            raise ValueError(f"illegal move {action}: the table shows {self.top}")
        player = self.turn
        if action == PASS:
            self.top = -1
        else:
            self.hands[player, action] -= 1
            self.top = int(action)
        won = not self.hands[player].any()
        self.turn, self.age = 1 - player, self.age + 1
        return self.observe(), float(won), won, self.age >= 200, self.infos()

    def observe(self) -> Any:
        return np.array([*self.hands[self.turn], self.turn, self.top >= 0], np.int8)

    def infos(self) -> dict[str, Any]:
        return {"action_mask": self.legal(), "player": self.turn}

    def legal(self) -> Any:
        mask = np.zeros(CARDS + 1, np.int8)
        for card in range(CARDS):
            mask[card] = self.hands[self.turn, card] > 0 and card > self.top
        mask[PASS] = not mask.any()
        return mask


class Faster(Cards):
    """The same, its legal moves found without a loop."""

    def legal(self) -> Any:
        mask = np.zeros(CARDS + 1, np.int8)
        mask[self.top + 1 : CARDS] = self.hands[self.turn, self.top + 1 :] > 0
        mask[PASS] = not mask.any()
        return mask


class Highest:
    """Plays the highest card it may."""

    def __call__(self, observation: Any, action_mask: Any) -> int:
        playable = np.flatnonzero(action_mask[:CARDS])
        return int(playable[-1]) if len(playable) else PASS


def make() -> Cards:
    return Cards()


def faster() -> Faster:
    return Faster()
