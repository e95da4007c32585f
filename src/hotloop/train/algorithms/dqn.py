"""Deep Q-learning: what actions are worth by what came after them, after Mnih et al. and van Hasselt et al.

A network's logits are Q-values here: what it expects of each action, discounted. Nothing here knows a world.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from hotloop.train.algorithms.replay import Transitions
from hotloop.train.policy.policy import Student, allowed
from hotloop.train.settings import TrainSettings


def epsilon_at(steps: int, settings: TrainSettings) -> float:
    """The share of random actions after so many env-steps."""
    span = settings.exploration_fraction * settings.total_timesteps
    gone = min(steps / span, 1.0) if span else 1.0
    return settings.start_e + (settings.end_e - settings.start_e) * gone


def choose(q: Tensor, masks: Tensor | None, epsilon: float, uniforms: Tensor) -> Tensor:
    """Actions [rows] by Q-values [rows, actions]: the best, or with a chance any legal one.

    `uniforms` [2, rows] from [0, 1) decide whether it is any, and which.
    """
    return torch.where(uniforms[0] < epsilon, any_legal(q, masks, uniforms[1]), best(q, masks))


def best(q: Tensor, masks: Tensor | None) -> Tensor:
    """The action that is worth most, the first of several."""
    return allowed(q, masks).argmax(-1)


def any_legal(q: Tensor, masks: Tensor | None, uniforms: Tensor) -> Tensor:
    """Legal actions, all alike, at numbers from [0, 1)."""
    if masks is None:
        return (uniforms * q.shape[-1]).long()
    counted = masks.cumsum(-1)
    number = (uniforms * counted[:, -1]).long()
    return (counted > number[:, None]).int().argmax(-1)


@torch.no_grad()
def targets(part: Transitions, student: Student, target: Student, *, gamma: float, double: bool) -> Tensor:
    """What an action turned out to be worth: its reward, and what the target network expects after it.

    The target network's own maximum is as often too high as its errors are; double DQN lets the student
    choose the action, and the target network only says what that is worth.
    """
    after = target(part.next_observations, None, None)[0]
    chooser = student(part.next_observations, None, None)[0] if double else after
    worth = after.gather(-1, best(chooser, part.next_masks)[:, None])[:, 0]
    return part.rewards + gamma * (1 - part.ends) * worth


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What a minibatch is to teach."""

    total: Tensor
    expected: Tensor
    """What the student expected of the actions that were taken."""
    targets: Tensor


def td_loss(part: Transitions, student: Student, wanted: Tensor) -> Loss:
    """The mean squared error: ends are rare and far from what was expected, and have to pull the harder."""
    q = student(part.observations, None, None)[0]
    expected = q.gather(-1, part.actions[:, None])[:, 0]
    return Loss(total=mse_loss(expected, wanted), expected=expected.detach(), targets=wanted)
