"""What a Q-network expects of its best actions, beside the discounted returns that come."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hotloop.envs.batch import Batch
from hotloop.train.actions import NUMBERED
from hotloop.train.algorithm import Policy
from hotloop.train.networks import ByType
from hotloop.train.normalize import ObservationView
from hotloop.train.rollout import alive_mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """The Q-value of the best action in every step of a living agent, and its return."""

    estimated: NDArray[np.float64]
    realised: NDArray[np.float64]  # Discounted, of the same policy from there on

    @property
    def overestimate(self) -> float:
        return float((self.estimated - self.realised).mean())


@torch.inference_mode()
def estimates(policy: Policy, batch: Batch, *, gamma: float, steps: int, horizon: int) -> Estimates:
    """Play the best actions for so many steps and the horizon beyond, after which rewards count no more.

    The batch has been reset; its episodes must end by their own rules, since what a limit cuts off would
    have brought more.
    """
    view = ObservationView(batch, by_type=isinstance(policy.network, ByType))
    alive = alive_mask(batch)
    shape = (steps + horizon, batch.spec.num_envs * batch.spec.agents)
    every_mask = None if batch.masks is None else torch.from_numpy(batch.masks).reshape(shape[1], -1)
    expected, rewards = np.full(shape, np.nan), np.zeros(shape)
    ends = np.zeros(shape, np.bool_)
    acting = np.zeros((batch.spec.num_envs, batch.spec.agents), np.int32)
    for step in range(shape[0]):
        alive.begin(0)
        rows = alive.indices()
        obs = view.now(rows).to(policy.device)
        if policy.observation_scale.active:
            policy.observation_scale.write(view.columns(obs), view.columns(obs))
        q = policy.student(obs, None, None)[0].cpu()
        masks = None if every_mask is None else every_mask.index_select(0, rows)
        chosen = NUMBERED.likeliest(q, masks)
        expected[step, rows.numpy()] = q.gather(-1, chosen[:, None])[:, 0].numpy()
        acting.reshape(-1)[rows.numpy()] = chosen.int().numpy()
        batch.step(acting)
        rewards[step] = batch.rewards.reshape(-1)
        alive.end(0)
        over = np.repeat(batch.terminals | batch.truncations, batch.spec.agents)
        ends[step] = over | alive.changed(0).numpy()
    found, there = realised(rewards, ends, gamma)[:steps], ~np.isnan(expected[:steps])
    return Estimates(estimated=expected[:steps][there], realised=found[there])


def realised(rewards: NDArray[np.float64], ends: NDArray[np.bool_], gamma: float) -> NDArray[np.float64]:
    """Discounted returns [steps, rows] from each step to the end of its row's episode or life."""
    returns = np.zeros_like(rewards)
    after = np.zeros(rewards.shape[1])
    for step in reversed(range(len(rewards))):
        after = rewards[step] + gamma * np.where(ends[step], 0.0, after)
        returns[step] = after
    return returns
