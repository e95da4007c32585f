"""An env of Gymnasium whose observations are of a kind of space that Gymnasium does not know."""

from typing import Any

import gymnasium
from gymnasium.spaces import Dict, Discrete, Space


class Words(Space[str]):
    """What somebody is told to do."""

    def __init__(self) -> None:
        super().__init__((), str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        return "go there"

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words)

    def __hash__(self) -> int:
        return 1


class Worded(gymnasium.Env[Any, Any]):
    """Says what to do, and counts."""

    observation_space = Dict({"at": Discrete(5), "words": Words()})
    action_space = Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        super().reset(seed=seed)
        return {"at": 0, "words": "go there"}, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return {"at": int(action), "words": "go there"}, 1.0, False, False, {}
