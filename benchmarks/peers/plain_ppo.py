"""PPO in one file, in CleanRL's manner: a Gymnasium vector env, tensors by step, GAE by a loop over time.

Written for this comparison. It does what such scripts do and no more: no normalisation, no masks, no logging
but the returns of finished episodes.
"""

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn
from torch.distributions.categorical import Categorical


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What all sides are told."""

    target: str
    num_envs: int
    num_steps: int
    minibatch_size: int
    update_epochs: int
    hidden: tuple[int, ...]
    threads: int
    learning_rate: float = 1e-3
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    seed: int = 1

    @property
    def batch_size(self) -> int:
        return self.num_envs * self.num_steps


def initialised(layer: nn.Linear, gain: float = 2**0.5) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.constant_(layer.bias, 0.0)
    return layer


def trunk(width: int, hidden: tuple[int, ...]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [initialised(nn.Linear(width, size)), nn.ReLU()]
        width = size
    return nn.Sequential(*layers)


class Agent(nn.Module):
    """A trunk that policy and value share."""

    def __init__(self, observations: int, actions: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.trunk = trunk(observations, hidden)
        self.actor = initialised(nn.Linear(hidden[-1], actions), 0.01)
        self.critic = initialised(nn.Linear(hidden[-1], 1), 1.0)

    def get_value(self, x: torch.Tensor) -> torch.Tensor:
        return self.critic(self.trunk(x))

    def get_action_and_value(self, x: torch.Tensor, action: torch.Tensor | None = None) -> Any:
        features = self.trunk(x)
        chances = Categorical(logits=self.actor(features))
        if action is None:
            action = chances.sample()
        return action, chances.log_prob(action), chances.entropy(), self.critic(features)


class PlainPPO:
    """The loop, one update at a time."""

    def __init__(self, asked: Asked) -> None:
        import hotloop  # noqa: F401 - registers our envs

        torch.manual_seed(asked.seed)
        self.asked = asked
        name = f"hotloop/{asked.target.replace('/', '-')}-v0"
        self.envs = gymnasium.make_vec(name, num_envs=asked.num_envs, threads=asked.threads)
        width = int(np.prod(self.envs.single_observation_space.shape))
        self.agent = Agent(width, int(self.envs.single_action_space.n), asked.hidden)
        self.optimizer = torch.optim.Adam(self.agent.parameters(), lr=asked.learning_rate, eps=1e-5)
        shape = (asked.num_steps, asked.num_envs)
        self.obs = torch.zeros(*shape, width)
        self.actions = torch.zeros(*shape)
        self.logprobs, self.rewards = torch.zeros(*shape), torch.zeros(*shape)
        self.dones, self.values = torch.zeros(*shape), torch.zeros(*shape)
        self.next_obs = torch.Tensor(self.envs.reset(seed=asked.seed)[0])
        self.next_done = torch.zeros(asked.num_envs)
        self.returns = np.zeros(asked.num_envs)
        self.finished: list[float] = []
        self.random = np.random.default_rng(asked.seed)

    def update(self) -> None:
        self.collect()
        self.learn(*self.advantages())

    def collect(self) -> None:
        for step in range(self.asked.num_steps):
            self.obs[step] = self.next_obs
            self.dones[step] = self.next_done
            with torch.no_grad():
                action, logprob, _, value = self.agent.get_action_and_value(self.next_obs)
                self.values[step] = value.flatten()
            self.actions[step] = action
            self.logprobs[step] = logprob
            next_obs, reward, terminations, truncations, _ = self.envs.step(action.cpu().numpy())
            next_done = np.logical_or(terminations, truncations)
            self.rewards[step] = torch.tensor(reward).view(-1)
            self.next_obs, self.next_done = torch.Tensor(next_obs), torch.Tensor(next_done)
            self.note(reward, next_done)

    def note(self, reward: Any, done: Any) -> None:
        self.returns += reward
        for env in np.flatnonzero(done):
            self.finished.append(float(self.returns[env]))
            self.returns[env] = 0.0

    def advantages(self) -> tuple[torch.Tensor, torch.Tensor]:
        asked = self.asked
        with torch.no_grad():
            next_value = self.agent.get_value(self.next_obs).reshape(1, -1)
            advantages = torch.zeros_like(self.rewards)
            last = 0.0
            for t in reversed(range(asked.num_steps)):
                is_last = t == asked.num_steps - 1
                goes_on = 1.0 - (self.next_done if is_last else self.dones[t + 1])
                following = next_value if is_last else self.values[t + 1]
                delta = self.rewards[t] + asked.gamma * following * goes_on - self.values[t]
                advantages[t] = last = delta + asked.gamma * asked.gae_lambda * goes_on * last
            return advantages, advantages + self.values

    def learn(self, advantages: torch.Tensor, returns: torch.Tensor) -> None:
        asked = self.asked
        flat = {
            "obs": self.obs.reshape((-1, self.obs.shape[-1])),
            "logprobs": self.logprobs.reshape(-1),
            "actions": self.actions.reshape(-1),
            "advantages": advantages.reshape(-1),
            "returns": returns.reshape(-1),
            "values": self.values.reshape(-1),
        }
        indices = np.arange(asked.batch_size)
        for _ in range(asked.update_epochs):
            self.random.shuffle(indices)
            for start in range(0, asked.batch_size, asked.minibatch_size):
                chosen = indices[start : start + asked.minibatch_size]
                loss = self.loss({name: rows[chosen] for name, rows in flat.items()})
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(self.agent.parameters(), asked.max_grad_norm)
                self.optimizer.step()

    def loss(self, mini: dict[str, torch.Tensor]) -> torch.Tensor:
        asked = self.asked
        _, newlogprob, entropy, newvalue = self.agent.get_action_and_value(
            mini["obs"], mini["actions"].long()
        )
        ratio = (newlogprob - mini["logprobs"]).exp()
        advantages = mini["advantages"]
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        clipped = torch.clamp(ratio, 1 - asked.clip_coef, 1 + asked.clip_coef)
        policy = torch.max(-advantages * ratio, -advantages * clipped).mean()
        newvalue = newvalue.view(-1)
        near = mini["values"] + torch.clamp(newvalue - mini["values"], -asked.clip_coef, asked.clip_coef)
        value = 0.5 * torch.max((newvalue - mini["returns"]) ** 2, (near - mini["returns"]) ** 2).mean()
        return policy - asked.ent_coef * entropy.mean() + asked.vf_coef * value
