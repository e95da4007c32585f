"""Our worlds as Stable-Baselines3's VecEnv: all envs stepped by one native call."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from hotloop.core.errors import InputError
from hotloop.envs.adapters import views
from hotloop.envs.adapters.gymnasium import HotloopVectorEnv

Rows = NDArray[Any]


class HotloopVecEnv(VecEnv):
    """Many envs of a world behind one call; an env that ends begins anew in the same step, as theirs do."""

    def __init__(
        self, target: str, *, num_envs: int = 1, render_mode: str | None = None, **given: Any
    ) -> None:
        self._vector = HotloopVectorEnv(target, num_envs=num_envs, render_mode=render_mode, **given)
        self.render_mode = render_mode
        self._actions: Any = None
        super().__init__(num_envs, self._vector.single_observation_space, self._vector.single_action_space)

    def reset(self) -> views.Seen:
        seed = None if all(each is None for each in self._seeds) else self._seeds
        seen, infos = self._vector.reset(seed=seed)
        self.reset_infos = [self._info(infos, env) for env in range(self.num_envs)]
        self._reset_seeds()
        self._reset_options()
        return seen

    def step_async(self, actions: Rows) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[views.Seen, Rows, Rows, list[dict[str, Any]]]:
        seen, rewards, ended, cut, infos = self._vector.step(self._actions)
        over = ended | cut
        told = [self._info(infos, env) for env in range(self.num_envs)]
        for env in np.flatnonzero(over).tolist():
            final = {name: rows[env] for name, rows in infos["final_info"].items() if name[0] != "_"}
            last = {"terminal_observation": infos["final_obs"][env]}
            told[env] = {**final, **last, "TimeLimit.truncated": bool(cut[env] and not ended[env])}
        return seen, rewards, over, told

    def _info(self, infos: dict[str, Any], env: int) -> dict[str, Any]:
        return {name: rows[env] for name, rows in infos.items() if name[0] != "_" and name[:6] != "final_"}

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are legal now, a row an env."""
        return self._vector.action_masks()

    def close(self) -> None:
        self._vector.close()

    def get_images(self) -> Sequence[Any]:
        return list(self._vector.render() or ())

    def phase_totals(self) -> dict[str, int]:
        """Nanoseconds in each native phase so far; empty unless it was made with profile=True."""
        return self._vector.phase_totals()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """What every env has under a name: these are one object."""
        return [getattr(self._vector, attr_name)] * len(self._chosen(indices))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise InputError(f"{attr_name} cannot be set: the envs of a batch are made by their keys")

    def env_method(self, method_name: str, *given: Any, indices: Any = None, **more: Any) -> list[Any]:
        if method_name == "action_masks":
            masks = self.action_masks()
            return [masks[env] for env in self._chosen(indices)]
        raise InputError(f"the envs of a batch have no {method_name} of their own")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False] * len(self._chosen(indices))

    def has_attr(self, attr_name: str) -> bool:
        return attr_name == "action_masks" or hasattr(self._vector, attr_name)

    def _chosen(self, indices: int | Iterable[int] | None) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        return [indices] if isinstance(indices, int) else list(indices)
