"""Our worlds as Gymnasium's: one env, or many behind one native call.

An env with one agent has Discrete actions and the agent's observation. One with several is played as a
whole: an action for each agent (MultiDiscrete), all their observations, the sum of their rewards; each
agent's own reward is `info["agent_rewards"]`.
"""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.envs.adapters import views
from hotloop.envs.adapters.views import EpisodeSeeds, one_each


class HotloopEnv(views.BatchAdapter, gymnasium.Env[Any, Any]):
    """One env of a world; it does not reset itself, and what it returns is the caller's to keep."""

    metadata = {"render_modes": list(views.RENDER_MODES), "render_fps": views.RENDER_FPS}  # noqa: RUF012 - theirs

    def __init__(self, target: str, *, render_mode: str | None = None, **given: Any) -> None:
        self._batch = views.open_batch(target, given, num_envs=1, render_mode=render_mode)
        self.metadata = {**self.metadata, "render_modes": views.render_modes(self._batch)}
        self.render_mode = render_mode
        self._seen = views.whole_observations(self._batch)
        self.observation_space = views.observation_space(self._batch, self._seen, 1)
        self.action_space = views.whole_action_space(self._batch)
        self._told = views.infos_of(self._batch)
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
        reward = float(views.whole_rewards(batch)[0])
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

    def _observation(self) -> views.Seen:
        return views.each(self._seen, lambda rows: rows[0].copy())

    def _info(self) -> dict[str, Any]:
        return {name: rows[0].copy() for name, rows in self._told.items()}

    def _accept(self, action: Any) -> NDArray[Any]:
        spec = self._batch.spec
        chosen = np.asarray(action).reshape(-1)
        fits = chosen.dtype.kind in "iu" and chosen.size == spec.agents
        if not fits or chosen.min() < 0 or chosen.max() >= spec.num_actions:
            raise InputError(f"action {action!r} does not fit: expected {self.action_space}")
        return chosen


Rows = NDArray[Any]


class HotloopVectorEnv(VectorEnv[Any, Rows, Rows]):
    """Many envs of a world behind one call.

    With `copy=False` observations and infos are views of the batch's memory, rewritten by the next step.
    """

    metadata = {  # noqa: RUF012 - theirs
        "render_modes": list(views.RENDER_MODES),
        "render_fps": views.RENDER_FPS,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        target: str,
        *,
        num_envs: int = 1,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.SAME_STEP,
        copy: bool = True,
        **given: Any,
    ) -> None:
        self.num_envs = num_envs
        self._batch = views.open_batch(target, given, num_envs=num_envs, render_mode=render_mode)
        self._autoreset = mode_of(autoreset_mode)
        modes = views.render_modes(self._batch)
        self.metadata = {**self.metadata, "render_modes": modes, "autoreset_mode": self._autoreset}
        self.render_mode = render_mode
        self.copy = copy
        self._seen = views.whole_observations(self._batch)
        self.single_observation_space = views.observation_space(self._batch, self._seen, 1)
        self.single_action_space = views.whole_action_space(self._batch)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._told = views.infos_of(self._batch)
        self._seeds = EpisodeSeeds(num_envs)
        self._everyone = np.ones(num_envs, np.bool_)
        self._everyone.flags.writeable = False
        self._told_by_all = dict.fromkeys((f"_{name}" for name in self._told), self._everyone)
        self._actions = np.zeros((num_envs, self._batch.spec.agents), np.int32)
        self._chosen = self._actions[:, 0] if self._batch.spec.agents == 1 else self._actions

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[views.Seen, dict[str, Any]]:
        """Begin an episode in every env, or in those of `options["reset_mask"]`."""
        if isinstance(seed, (int, np.integer)):
            super().reset(seed=int(seed))
        seeds = one_each(seed, self.num_envs)
        mask = (options or {}).get("reset_mask")
        if mask is None:
            everyone = np.arange(self.num_envs)
            self._batch.reset(self._seeds.begin(everyone, seeds, self.np_random))
        else:  # checked as Gymnasium's own vector envs do
            if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
                raise InputError(f"reset_mask must be a NumPy array of {self.num_envs} bools")
            if not mask.any():
                raise InputError("reset_mask is False everywhere: name at least one env")
            envs = np.flatnonzero(mask)
            chosen = [seeds[env] for env in envs.tolist()]
            self._batch.reset_many(envs, self._seeds.begin(envs, chosen, self.np_random))
        return self._lend_or_copy(self._seen), self._infos()

    def step(self, actions: Rows) -> tuple[views.Seen, Rows, Rows, Rows, dict[str, Any]]:
        batch = self._batch
        shape = getattr(actions, "shape", None)
        if shape != self._chosen.shape or actions.dtype.kind not in "iu":
            raise InputError(f"actions do not fit: expected integers of the shape {self._chosen.shape}")
        np.copyto(self._chosen, actions, casting="unsafe")  # into what native code reads in place
        if np.count_nonzero(self._chosen != actions):
            raise InputError("an action does not fit into int32")
        batch.step(self._actions)
        rewards = np.array(views.whole_rewards(batch))
        ended, cut = batch.terminals.copy(), batch.truncations.copy()
        if self._autoreset is AutoresetMode.SAME_STEP:
            finished = ended | cut
            if np.count_nonzero(finished):  # which costs a fraction of finished.any()
                final = self._final(finished)
                envs = np.flatnonzero(finished)
                batch.reset_many(envs, self._seeds.follow(envs))
                return self._lend_or_copy(self._seen), rewards, ended, cut, {**self._infos(), **final}
        return self._lend_or_copy(self._seen), rewards, ended, cut, self._infos()

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, a row an env; all of them where the world has no masks."""
        batch = self._batch
        if batch.masks is None:
            return np.ones((self.num_envs, batch.spec.agents * batch.spec.num_actions), np.bool_)
        return batch.masks.reshape(self.num_envs, -1).copy()

    def phase_totals(self) -> dict[str, int]:
        """Nanoseconds in each native phase so far; empty unless it was made with profile=True."""
        return self._batch.phase_totals()

    def render(self) -> Any:
        if self.render_mode is None:
            return None
        return tuple(self._batch.render(env) for env in range(self.num_envs))

    def close_extras(self, **_: Any) -> None:
        self._batch.close()

    def _final(self, finished: NDArray[np.bool_]) -> dict[str, Any]:
        """What finished envs said last, before their next episode overwrites it."""
        last = np.full(self.num_envs, None, object)
        envs = np.flatnonzero(finished)
        kept = views.each(self._seen, lambda rows: rows[envs])
        for row, env in enumerate(envs.tolist()):
            last[env] = views.each(kept, lambda rows, row=row: rows[row])  # type: ignore[misc]
        told = {name: rows.copy() for name, rows in self._told.items()}
        info = {**told, **{f"_{name}": finished for name in told}}
        return {"final_obs": last, "_final_obs": finished, "final_info": info, "_final_info": finished}

    def _infos(self) -> dict[str, Any]:
        """Every info as an array; that all envs have it is the same in every step."""
        told = {name: rows.copy() for name, rows in self._told.items()} if self.copy else self._told
        return told | self._told_by_all

    def _lend_or_copy(self, seen: views.Seen) -> views.Seen:
        return views.each(seen, lambda rows: rows.copy()) if self.copy else seen


def mode_of(given: str | AutoresetMode) -> AutoresetMode:
    """The autoreset mode of a name; a batch steps all its envs, so none can sit out a step to be reset."""
    known = {mode.value: mode for mode in (AutoresetMode.SAME_STEP, AutoresetMode.DISABLED)}
    name = given.value if isinstance(given, AutoresetMode) else given
    if name not in known:
        raise InputError(f"autoreset_mode is {name!r}: expected {' or '.join(known)}")
    return known[name]
