"""Our worlds as Gymnasium's: one env, plain Env, of any preset.

An env with one agent has Discrete actions and the agent's observation. One with several is played as a
whole: an action for each agent (MultiDiscrete), all their observations, the sum of their rewards; each
agent's own reward is `info["agent_rewards"]`.
"""

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.envs.adapters import facets
from hotloop.envs.adapters.seeds import EpisodeSeeds


class HotloopEnv(gymnasium.Env[Any, Any]):
    """One env of a world; it does not reset itself, and what it returns is the caller's to keep."""

    metadata = {"render_modes": list(facets.RENDER_MODES), "render_fps": facets.RENDER_FPS}  # noqa: RUF012 - theirs

    def __init__(self, target: str, *, render_mode: str | None = None, **given: Any) -> None:
        self._batch = facets.open_batch(target, given, num_envs=1, render_mode=render_mode)
        self.metadata = {**self.metadata, "render_modes": facets.render_modes(self._batch)}
        self.render_mode = render_mode
        self.observation_space = facets.whole_observation_space(self._batch)
        self.action_space = facets.whole_action_space(self._batch)
        self._seen = facets.whole_observations(self._batch)
        self._told = facets.infos_of(self._batch)
        self._seeds = EpisodeSeeds(1)
        self._actions = np.zeros((1, self._batch.spec.agents), np.int32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: the one of this seed, or the next after it."""
        super().reset(seed=seed)
        self._batch.reset(self._seeds.begin(np.zeros(1, np.int64), [seed], self.np_random))
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._actions[0] = self._accept(action)
        batch = self._batch
        batch.step(self._actions)
        reward = float(facets.whole_rewards(batch)[0])
        ended, cut = bool(batch.terminals[0]), bool(batch.truncations[0])
        return self._observation(), reward, ended, cut, self._info()

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, a copy; all of them where the world has no masks."""
        masks = self._batch.masks
        return (
            np.ones(self._batch.spec.agents * self._batch.spec.num_actions, np.bool_)
            if masks is None
            else masks[0].reshape(-1).copy()
        )

    def phase_totals(self) -> dict[str, int]:
        """Nanoseconds in each native phase so far; empty unless it was made with profile=True."""
        return self._batch.phase_totals()

    def render(self) -> Any:
        return None if self.render_mode is None else self._batch.render(0)

    def close(self) -> None:
        self._batch.close()

    def _observation(self) -> facets.Seen:
        return facets.each(self._seen, lambda rows: rows[0].copy())

    def _info(self) -> dict[str, Any]:
        return {name: rows[0].copy() for name, rows in self._told.items()}

    def _accept(self, action: Any) -> NDArray[Any]:
        spec = self._batch.spec
        chosen = np.asarray(action).reshape(-1)
        fits = chosen.dtype.kind in "iu" and chosen.size == spec.agents
        if not fits or chosen.min() < 0 or chosen.max() >= spec.num_actions:
            raise InputError(f"action {action!r} does not fit: expected {self.action_space}")
        return chosen
