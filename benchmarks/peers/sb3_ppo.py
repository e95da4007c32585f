"""Stable-baselines3's PPO on one of our batches, with the network that all sides have."""

from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv

import hotloop
from plain_ppo import Asked, trunk


class BatchVecEnv(VecEnv):
    """A batch of a world with one agent as stable-baselines3 wants it: infos only where an episode ended."""

    def __init__(self, asked: Asked) -> None:
        self.batch = hotloop.make(
            asked.target, num_envs=asked.num_envs, threads=asked.threads, seed=asked.seed
        )
        shape = self.batch.observations.shape[2:]
        super().__init__(
            asked.num_envs,
            gymnasium.spaces.Box(-np.inf, np.inf, shape, np.float32),
            gymnasium.spaces.Discrete(self.batch.spec.num_actions),
        )
        self._nothing: list[dict[str, Any]] = [{} for _ in range(asked.num_envs)]

    def reset(self) -> Any:
        self.batch.reset()
        return self.batch.observations[:, 0].copy()

    def step_async(self, actions: Any) -> None:
        self._actions = np.ascontiguousarray(actions, np.int32)

    def step_wait(self) -> Any:
        batch = self.batch
        batch.step(self._actions)
        done = batch.terminals | batch.truncations
        infos = self._nothing
        if done.any():
            infos = [{} for _ in range(self.num_envs)]
            for env in np.flatnonzero(done):
                cut = bool(batch.truncations[env] and not batch.terminals[env])
                infos[env] = {
                    "terminal_observation": batch.final_observations[env, 0].copy(),
                    "TimeLimit.truncated": cut,
                }
        return batch.observations[:, 0].copy(), batch.rewards[:, 0].copy(), done, infos

    def close(self) -> None:
        self.batch.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Nothing of the kind is kept here."""

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        return [None] * self.num_envs

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * self.num_envs


class Trunk(BaseFeaturesExtractor):
    """The shared trunk; their own `net_arch` would give policy and value one each."""

    def __init__(self, observation_space: Any, hidden: tuple[int, ...]) -> None:
        super().__init__(observation_space, hidden[-1])
        self.layers = trunk(int(np.prod(observation_space.shape)), hidden)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return self.layers(observations)


class TheirPPO:
    """Their loop, one update at a time."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.model = PPO(
            "MlpPolicy",
            BatchVecEnv(asked),
            learning_rate=asked.learning_rate,
            n_steps=asked.num_steps,
            batch_size=asked.minibatch_size,
            n_epochs=asked.update_epochs,
            gamma=asked.gamma,
            gae_lambda=asked.gae_lambda,
            clip_range=asked.clip_coef,
            ent_coef=asked.ent_coef,
            vf_coef=asked.vf_coef,
            max_grad_norm=asked.max_grad_norm,
            policy_kwargs={
                "features_extractor_class": Trunk,
                "features_extractor_kwargs": {"hidden": asked.hidden},
                "net_arch": [],
            },
            seed=asked.seed,
            device="cpu",
        )

    def update(self) -> None:
        self.model.learn(self.asked.batch_size, reset_num_timesteps=False)
