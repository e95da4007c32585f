"""A peer as the lab's worker takes a batch: what it is, a step, and what it has done.

Runs inside the environment of every peer, so it needs the standard library only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSpec:
    """How many there are of what; actions are drawn uniformly."""

    num_envs: int
    agents: int
    num_actions: int


class PeerBatch:
    """Worlds behind one call, begun already, that go on by themselves."""

    def __init__(
        self,
        step: Callable[[Any], object],
        spec: PeerSpec,
        *,
        owned: object,
        tokens: Callable[[], float] | None = None,
    ) -> None:
        self.spec = spec
        self.owned = owned
        """What native code points to, kept alive."""
        self._step = step
        self._tokens = tokens
        self._calls = self._looked_at = 0
        self._used = 0.0

    def reset(self) -> None:
        """Nothing: the worlds stand at their beginning."""

    def step(self, actions: Any) -> None:
        self._step(actions)
        self._calls += 1

    @property
    def counters(self) -> dict[str, int]:
        """What was done; tokens are counted now, and taken for those of every step since the last time."""
        env_steps = self._calls * self.spec.num_envs
        done = {"env_steps": env_steps, "agent_steps": env_steps * self.spec.agents}
        if self._tokens is None:
            return done
        self._used += self._tokens() * (done["agent_steps"] - self._looked_at)
        self._looked_at = done["agent_steps"]
        return {**done, "tokens": round(self._used)}
