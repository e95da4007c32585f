"""DQN and double DQN as the trainer's algorithm: act, put it into the replay, and learn from a draw of it."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hotloop.core.errors import InputError
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Doing
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.train.algorithms.algorithm import DivergedError, Learned, load_optimiser, set_learning_rate
from hotloop.train.algorithms.dqn import Loss, choose, epsilon_at, targets, td_loss
from hotloop.train.algorithms.replay import Replay, Steps, Transitions
from hotloop.train.kernels.kernels import Move
from hotloop.train.kernels.native import find_kernels
from hotloop.train.normalise import ObservationScale, scales_observations
from hotloop.train.policy.inputs import Sight, row_shape
from hotloop.train.policy.networks import ByType, Network, TheirNetwork, default_network, is_by_type
from hotloop.train.policy.policy import make_student
from hotloop.train.rollout import LOOK_EVERY, Presence
from hotloop.train.settings import TrainSettings
from hotloop.train.threads import use_fitting
from hotloop.train.timing import mark, span
from hotloop.train.windows import Watcher


class OffPolicy:
    """See `Algorithm`: what was seen is learned from again, whichever policy it was of."""

    draws = False

    def __init__(
        self, batch: Batch, settings: TrainSettings, device: torch.device, watchers: Sequence[Watcher]
    ) -> None:
        check_possible(batch, settings)
        self.batch, self.settings, self.device, self.watchers = batch, settings, device, tuple(watchers)
        spec, shape = batch.spec, row_shape(batch)
        self.envs, self.agents, self.rows = spec.num_envs, spec.agents, spec.num_envs * spec.agents
        self.everybody = torch.arange(self.rows)
        network = default_network(spec, shape, settings)
        self.sight = Sight(batch, by_type=is_by_type(spec, settings))
        kernels_now = partial(find_kernels, settings, spec.num_actions, fixed_shapes=False)
        seen = torch.zeros_like(self.sight.now(self.everybody))
        self.threads = use_fitting(network, seen, settings, lambda copy: kernels_now().adopt(copy, settings))
        self.network: nn.Module = without_values(network, self.sight.shape).to(device)
        self.target = deepcopy(self.network).requires_grad_(False)
        self.student, self.judge = make_student(self.network, settings), make_student(self.target, settings)
        self.kernels = kernels_now()
        for each in (self.network, self.target):
            self.kernels.adopt(each, settings)
        active = scales_observations(spec.layout, settings)
        self.observation_scale = ObservationScale(shape, device, active=active)
        self.allowed = None if batch.masks is None else torch.from_numpy(batch.masks).reshape(self.rows, -1)
        self.lives = Presence(batch, 1) if spec.has_empty_rows else None
        self.acting = np.zeros((self.envs, self.agents), np.int32)
        self.replay = self.make_replay()
        self.deciding, self.drawing = (torch.Generator().manual_seed(settings.seed) for _ in range(2))
        self.learning = [each for each in self.network.parameters() if each.requires_grad]
        self.optimiser = torch.optim.Adam(self.learning, lr=settings.learning_rate, fused=True)
        self.learned = 0

    def make_replay(self) -> Replay:
        sight = self.sight
        return Replay(
            self.settings.buffer_size,
            self.rows,
            sight.shape,
            sight.raw.numpy().dtype,
            num_actions=self.batch.spec.num_actions,
            masked=self.allowed is not None,
        )

    def advance(self, steps: int) -> Learned:
        rate = set_learning_rate(self.optimiser, self.settings, steps)
        told: dict[str, list[float]] = defaultdict(list)
        move = self.kernels.mover(self.optimiser, self.settings.max_grad_norm or math.inf)
        agent_steps = 0
        uniforms = self.draw_uniforms()
        for step in range(self.settings.num_steps):
            agent_steps += self.one_step(step, steps, uniforms[step])
            if self.is_due(steps // self.envs + step + 1):
                self.learn(move, told)
        self.observation_scale.adopt()
        learned = {name: math.fsum(each) / len(each) for name, each in told.items()}
        state = {"epsilon": epsilon_at(steps, self.settings), "replay": float(self.replay.drawable)}
        phase: Any = self.settings.algorithm if learned else "explore"
        return Learned(phase=phase, agent_steps=agent_steps, losses=learned | state, learning_rate=rate)

    def collect(self, steps: int) -> None:
        uniforms = self.draw_uniforms()
        for step in range(self.settings.num_steps):
            self.one_step(step, steps, uniforms[step])
        self.observation_scale.adopt()

    def draw_uniforms(self) -> Tensor:
        """What decides the actions of a rollout, a pair of numbers for every row, whoever is in it."""
        return torch.rand(self.settings.num_steps, 2, self.rows, generator=self.deciding)

    def is_due(self, calls: int) -> bool:
        """Whether to learn after so many steps of every env."""
        settings = self.settings
        return calls % settings.train_frequency == 0 and self.replay.drawable >= settings.learning_starts

    @torch.no_grad()
    def one_step(self, step: int, steps: int, uniforms: Tensor) -> int:
        """Act, step the envs, and keep what came of it; how many acted."""
        with span("rollout"):
            rows = self.everybody if self.lives is None else self.lives.now()
            seen = self.sight.now(rows)
            masks = None if self.allowed is None else self.allowed.index_select(0, rows)
            if step % LOOK_EVERY == 0 and len(rows):
                self.observation_scale.look(self.sight.raw.index_select(0, rows).to(self.device))
            if self.lives is not None:
                self.lives.begin(0)
            mark("store")
            epsilon = epsilon_at(steps + step * self.envs, self.settings)
            q = self.think(self.scaled(seen.to(self.device, copy=True))).cpu()
            actions = choose(q, masks, epsilon, uniforms[:, rows]).int().numpy()
            self.acting.reshape(-1)[rows.numpy()] = actions
            mark("student")
            self.batch.step(self.acting)
            mark("environment")
            self.replay.add(self.steps_of(rows, seen, masks, actions))
            mark("insert")
            for watcher in self.watchers:
                watcher.step(self.batch)
            mark("watch")
        return len(rows)

    def think(self, seen: Tensor) -> Tensor:
        """The Q-values of rows: in one pass, or a pass a row."""
        if self.settings.batched or not len(seen):
            return self.student(seen, None, None)[0]
        return torch.cat([self.student(row[None], None, None)[0] for row in seen])

    def scaled(self, seen: Tensor) -> Tensor:
        """Rows, scaled where they lie; their types stay as they are."""
        if self.observation_scale.active:
            part = self.sight.columns(seen)
            self.observation_scale.write(part, part)
        return seen

    def steps_of(self, rows: Tensor, seen: Tensor, masks: Tensor | None, actions: NDArray[np.int32]) -> Steps:
        """What the step that was just made brought to those who made it."""
        batch, there = self.batch, rows.numpy()
        ended, cut = self.per_row(batch.terminals, there), self.per_row(batch.truncations, there)
        if self.lives is not None:
            self.lives.end(0)
            ended = ended | self.lives.died[0].reshape(-1)[there]
        cut = cut & ~ended
        limited = torch.from_numpy(cut)
        return Steps(
            rows=there,
            observations=seen.numpy(),
            masks=None if masks is None else masks.numpy(),
            actions=actions,
            rewards=batch.rewards.reshape(-1)[there],
            ended=ended,
            cut=cut,
            last=self.sight.last(rows[limited], seen[limited]).numpy(),
        )

    def per_row(self, per_env: NDArray[np.bool_], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        return per_env[rows // self.agents]

    def learn(self, move: Move, told: dict[str, list[float]]) -> None:
        """Learn from as many minibatches as are due; what each came to is added to what is told."""
        with lifeline.doing(Doing.OURS), span("learn"):
            for _ in range(self.settings.gradient_steps):
                part = self.sample()
                mark("sample")
                wanted = targets(
                    part,
                    self.student,
                    self.judge,
                    gamma=self.settings.gamma,
                    double=self.settings.algorithm == "double_dqn",
                )
                loss = td_loss(part, self.student, wanted)
                mark("forward")
                torch.autograd.backward((loss.total,))
                mark("backward")
                terms = terms_of(loss) | {"grad_norm": float(move())}
                self.check_finite(terms, part)
                for name, term in terms.items():
                    told[name].append(term)
                self.learned += 1
                mark("optimiser")
                if self.learned % self.settings.target_network_frequency == 0:
                    self.target.load_state_dict(self.network.state_dict())
                    mark("target")

    def sample(self) -> Transitions:
        """A minibatch on the network's device, scaled as the network reads it now."""
        part = self.replay.take(self.replay.draw(self.settings.minibatch_size, self.drawing))
        device = self.device
        return replace(
            part,
            observations=self.scaled(part.observations.to(device)),
            next_observations=self.scaled(part.next_observations.to(device)),
            actions=part.actions.to(device),
            rewards=part.rewards.to(device),
            ends=part.ends.to(device),
            next_masks=None if part.next_masks is None else part.next_masks.to(device),
        )

    def check_finite(self, terms: Mapping[str, float], part: Transitions) -> None:
        """Stop at the first loss or gradient norm that is no number."""
        if math.isfinite(terms["total"] + terms["grad_norm"]):
            return
        samples = {name: getattr(part, name) for name in part.__slots__ if getattr(part, name) is not None}
        first = next((name for name, each in samples.items() if not torch.isfinite(each).all()), "total")
        raise DivergedError(
            f"gradient step {self.learned}: first in {first}",
            {"first": first, "samples": samples, "losses": dict(terms), "network": self.network.state_dict()},
        )

    def state(self) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "target_network": self.target.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "observation_scale": self.observation_scale.state(),
            "acting": self.deciding.get_state(),
            "shuffling": self.drawing.get_state(),
            "replay": self.replay.state(),
            "learned": self.learned,
        }

    def restore(self, content: Mapping[str, Any], *, same_episodes: bool) -> None:
        self.target.load_state_dict(content["target_network"])
        load_optimiser(self.optimiser, content["optimiser"])
        self.observation_scale.restore(content["observation_scale"])
        self.deciding.set_state(content["acting"])
        self.drawing.set_state(content["shuffling"])
        self.replay.restore(content["replay"])
        self.learned = int(content["learned"])
        if not same_episodes or not self.batch.can_save:
            self.replay.forget_pending()


def check_possible(batch: Batch, settings: TrainSettings) -> None:
    """Refuse what DQN cannot do here."""
    typed = f"algorithm={settings.algorithm}"
    if isinstance(batch, DeviceBatch):
        raise InputError(f"{typed} collects on the host: add host_views=true, or use algorithm=ppo")
    acts = batch.spec.layout.acts
    if acts is not None:
        what = f"{len(acts.choices)} choices at once" if acts.choices else "real numbers"
        raise InputError(f"{typed} is for one numbered action, and {batch.spec.name} acts by {what}: use ppo")
    if settings.lstm:
        raise InputError(f"{typed} has no memory: leave lstm out, or use algorithm=ppo")
    if settings.kernels == "graphs":
        raise InputError(f"{typed} is not recorded: use kernels=torch, or leave it out")


def without_values(network: Network, shape: tuple[int, ...]) -> Network:
    """The network without a critic to train: its policy's logits are Q-values."""
    if isinstance(network, TheirNetwork):
        return only_logits(network, shape)
    for each in network.each if isinstance(network, ByType) else [network]:
        each.value.requires_grad_(False)
    return network


def only_logits(network: TheirNetwork, shape: tuple[int, ...]) -> TheirNetwork:
    """Somebody's network, of which only what makes its logits is trained: a pass tells what that is."""
    torch.autograd.backward((network(torch.zeros(2, *shape))[0].sum(),))
    for each in network.parameters():
        each.requires_grad_(each.grad is not None)
        each.grad = None
    return network


def terms_of(loss: Loss) -> dict[str, float]:
    return {
        "total": float(loss.total.detach()),
        "q": float(loss.expected.mean()),
        "target": float(loss.targets.mean()),
    }
