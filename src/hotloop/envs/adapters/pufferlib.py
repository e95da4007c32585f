"""Our worlds as PufferLib's: every agent of every env is a row of flat buffers that the caller may own.

`PufferRows` has all that PufferLib asks of an env and does without the package; `puffer_env` makes it a
PufferEnv where the package is installed.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.machine import need
from hotloop.envs.adapters import views
from hotloop.envs.adapters.views import EpisodeSeeds, one_each

Rows = NDArray[Any]


class PufferRows(views.BatchAdapter):
    """Rows are agents, [num_envs * agents, ...]; an env that ends begins its next episode in that step."""

    observations: Rows
    rewards: Rows
    terminals: Rows
    truncations: Rows
    masks: Rows
    actions: Rows

    def __init__(
        self,
        target: str,
        *,
        num_envs: int = 1,
        buf: Mapping[str, Rows] | None = None,
        render_mode: str | None = None,
        **given: Any,
    ) -> None:
        self._batch = views.open_batch(target, given, num_envs=num_envs, render_mode=render_mode)
        spec = self._batch.spec
        self.num_agents = num_envs * spec.agents
        seen = self._batch.observations
        row = seen.shape[2:] if views.has_agent_axis(self._batch) else seen.shape[1:]
        self._seen = seen.reshape(self.num_agents, *row)  # flat rows, also of a world with parts
        self.single_observation_space = views.box(self._batch, self._batch.spec.layout.observation, row)
        self.single_action_space: Discrete[Any] = Discrete(spec.num_actions)
        self.render_mode = render_mode
        self._seeds = EpisodeSeeds(num_envs)
        self._actions = np.zeros((num_envs, spec.agents), np.int32)
        space, rows = self.single_observation_space, self.num_agents
        own = {
            "observations": np.zeros((rows, *space.shape), space.dtype),
            "rewards": np.zeros(rows, np.float32),
            "terminals": np.zeros(rows, np.bool_),
            "truncations": np.zeros(rows, np.bool_),
            "masks": np.ones(rows, np.bool_),
            "actions": np.zeros(rows, np.int32),
        }
        for name, made in own.items():  # written into the caller's buffers, if there are any
            buffer = made if buf is None else buf[name]
            if buffer.shape != made.shape:
                raise InputError(f"buf[{name!r}] has the shape {buffer.shape}: expected {made.shape}")
            setattr(self, name, buffer)

    def reset(self, seed: int | None = None) -> tuple[Rows, list[dict[str, float]]]:
        envs = np.arange(self._batch.spec.num_envs)
        seeds = self._seeds.begin(envs, one_each(seed, len(envs)), np.random.default_rng())
        self._batch.reset(seeds)
        self._show()
        for rows in (self.rewards, self.terminals, self.truncations):
            rows[:] = 0
        return self.observations, []

    def step(self, actions: Rows) -> tuple[Rows, Rows, Rows, Rows, list[dict[str, float]]]:
        """Step every row; infos are one summary of the episodes that ended, or nothing."""
        batch = self._batch
        np.copyto(self._actions.reshape(-1), actions, casting="same_kind")
        batch.step(self._actions)
        agents = batch.spec.agents
        self.rewards[:] = batch.rewards.reshape(-1)
        self.terminals[:] = np.repeat(batch.terminals, agents)
        if batch.spec.has_empty_rows:
            self.terminals |= batch.infos["died"].reshape(-1)
        self.truncations[:] = np.repeat(batch.truncations, agents)
        finished = np.flatnonzero(batch.terminals | batch.truncations)
        infos = []
        if finished.size:
            told = {name: rows for name, rows in batch.infos.items() if name.startswith("episode_")}
            infos = [{name: float(rows[finished].mean()) for name, rows in told.items()}]
            batch.reset_many(finished, self._seeds.follow(finished))
        self._show()
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def _show(self) -> None:
        """Write what is seen now; a mask is False where a row is empty."""
        self.observations[:] = self._seen
        if self._batch.spec.has_empty_rows:
            self.masks[:] = self._batch.infos["alive"].reshape(-1)


def puffer_env(target: str, **given: Any) -> Any:
    """A PufferEnv of a preset; SetupError where PufferLib is not installed."""
    base = need("pufferlib").PufferEnv

    class HotloopPufferEnv(PufferRows, base):  # type: ignore[misc, valid-type]
        """The rows above, with PufferLib's own bookkeeping around them."""

        def __init__(self, buf: Any = None, **rest: Any) -> None:
            PufferRows.__init__(self, target, **rest)
            base.__init__(self, buf)

    return HotloopPufferEnv(**given)
