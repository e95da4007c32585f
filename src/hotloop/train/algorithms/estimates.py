"""What a Q-network expects, held against what then comes: how much it overestimates."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hotloop.envs.batch import Batch
from hotloop.train.algorithms.dqn import best
from hotloop.train.evaluation import Policy
from hotloop.train.policy.inputs import Sight
from hotloop.train.policy.networks import ByType
from hotloop.train.rollout import Presence


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Of every step that somebody made: what the best action was thought to be worth, and was."""

    estimated: NDArray[np.float64]
    realised: NDArray[np.float64]
    """Discounted, of the same policy from there on."""

    @property
    def overestimate(self) -> float:
        return float((self.estimated - self.realised).mean())


@torch.inference_mode()
def estimates(policy: Policy, batch: Batch, *, gamma: float, steps: int, horizon: int) -> Estimates:
    """Play the best actions for so many steps and the horizon beyond, after which rewards count no more.

    The batch has been reset; its episodes must end by their own rules, since what a limit cuts off would
    have brought more.
    """
    sight = Sight(batch, by_type=isinstance(policy.network, ByType))
    lives = Presence(batch, 1) if batch.spec.has_empty_rows else None
    shape = (steps + horizon, batch.spec.num_envs * batch.spec.agents)
    expected, rewards = np.full(shape, np.nan), np.zeros(shape)
    ends = np.zeros(shape, np.bool_)
    acting = np.zeros((batch.spec.num_envs, batch.spec.agents), np.int32)
    for step in range(shape[0]):
        rows = torch.arange(shape[1]) if lives is None else lives.now()
        q, masks = q_values(policy, sight, rows), masks_of(batch, rows)
        chosen = best(q, masks)
        expected[step, rows.numpy()] = q.gather(-1, chosen[:, None])[:, 0].numpy()
        acting.reshape(-1)[rows.numpy()] = chosen.int().numpy()
        batch.step(acting)
        rewards[step] = batch.rewards.reshape(-1)
        ends[step] = np.repeat(batch.terminals | batch.truncations, batch.spec.agents)
        if lives is not None:
            ends[step] |= batch.infos["died"].reshape(-1)
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


def q_values(policy: Policy, sight: Sight, rows: torch.Tensor) -> torch.Tensor:
    seen = sight.now(rows).to(policy.device)
    if policy.observation_scale.active:
        policy.observation_scale.write(sight.columns(seen), sight.columns(seen))
    found: torch.Tensor = policy.student(seen, None, None)[0]
    return found.cpu()


def masks_of(batch: Batch, rows: torch.Tensor) -> torch.Tensor | None:
    if batch.masks is None:
        return None
    return torch.from_numpy(batch.masks).reshape(-1, batch.spec.num_actions).index_select(0, rows)
