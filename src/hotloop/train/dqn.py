"""Deep Q-learning: what actions are worth by what came after them, after Mnih et al. and van Hasselt et al.

A network's logits are Q-values here: what it expects of each action, discounted. Nothing here knows a world.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from hotloop.core.errors import InputError
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Activity
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.train.actions import allowed
from hotloop.train.algorithm import DivergedError, Update, fit_threads, load_optimiser, set_learning_rate
from hotloop.train.arithmetic import Move, find_kernels, use_threads
from hotloop.train.networks import (
    ByType,
    Network,
    Student,
    UserNetwork,
    default_network,
    is_by_type,
    make_student,
)
from hotloop.train.normalize import ObservationScale, ObservationView, row_shape, scales_observations
from hotloop.train.rollout import LOOK_EVERY, alive_mask
from hotloop.train.settings import TrainSettings
from hotloop.train.timing import mark, span
from hotloop.train.windows import Watcher

MOST_BYTES = 2**30  # Of a replay, in memory and so in a checkpoint


NONE = -1


# What an entry has; masks only where a world has some.
ARRAYS = ("observations", "masks", "actions", "rewards", "next", "may_draw")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """Drawn entries, and what came after each."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    ends: Tensor  # 1 where nothing came after
    next_observations: Tensor  # Of an end, anything
    next_masks: Tensor | None

    def arrays(self) -> dict[str, Tensor | None]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSteps:
    """One step of some rows, as it goes into the replay."""

    rows: NDArray[np.int64]
    observations: NDArray[Any]
    masks: NDArray[np.bool_] | None
    actions: NDArray[np.int32]
    rewards: NDArray[np.float32]
    ended: NDArray[np.bool_]  # Whether the step ended the row's episode, or its agent's life
    cut: NDArray[np.bool_]  # Whether a limit cut it off instead, so that it would have gone on
    last: NDArray[Any]  # What was seen last by those that were cut off


class ReplayBuffer:
    """A ring of entries, in arrays that are made once: the last steps of agents, to be learned from again.

    An entry is one agent's step. What it saw next is the entry of its next step, and nothing is kept twice:

        entry        0      1      2      3      4      5
        of           a t0   b t0   a t1   b t1   a t2   a's last observation, if a limit cut it off
        next         2      3      4      none   5      -
        may be drawn yes    yes    yes    yes    yes    no

    An entry may be drawn once its next is known, or if the step ended its episode or its agent's life.
    Entries are overwritten in the order they came in, and what came next always came later: a next is
    never lost before the entry that needs it.
    """

    def __init__(
        self, size: int, rows: int, shape: tuple[int, ...], dtype: Any, *, num_actions: int, masked: bool
    ) -> None:
        row = int(np.prod(shape)) * np.dtype(dtype).itemsize + (num_actions if masked else 0) + 25
        if size * row > MOST_BYTES:
            raise InputError(
                f"buffer_size={size}: the replay would have {size * row / 2**30:.1f} GiB, as every "
                f"checkpoint: use at most {MOST_BYTES // row}"
            )
        self.size = size
        self.observations = np.zeros((size, *shape), dtype)
        self.masks = np.zeros((size, num_actions), np.bool_) if masked else None
        self.actions = np.zeros(size, np.int32)
        self.rewards = np.zeros(size, np.float32)
        self.next = np.full(size, NONE, np.int64)
        self.may_draw = np.zeros(size, np.bool_)
        self.pending = np.full(rows, NONE, np.int64)
        """The entry of each row whose next is not known yet."""
        self.head = self.filled = self.drawable = 0

    def add(self, steps: StoredSteps) -> None:
        """Put in a step of some rows; it is the next of those that they made before."""
        places = self.take_places(len(steps.rows))
        self.observations[places] = steps.observations
        if self.masks is not None and steps.masks is not None:
            self.masks[places] = steps.masks
        self.actions[places], self.rewards[places] = steps.actions, steps.rewards
        before = self.pending[steps.rows]
        known = before != NONE
        self.link(before[known], places[known])
        self.release(places[steps.ended])
        self.pending[:] = NONE
        going = ~(steps.ended | steps.cut)
        self.pending[steps.rows[going]] = places[going]
        if self.masks is None and steps.cut.any():
            # What was seen last by those that were cut off: nothing was done there. If actions have masks,
            # those of the last observations are not known, and such steps are never drawn.
            lasts = self.take_places(len(steps.last))
            self.observations[lasts] = steps.last
            self.link(places[steps.cut], lasts)

    def take_places(self, count: int) -> NDArray[np.int64]:
        """The next places of the ring, whose entries are no more."""
        places = (self.head + np.arange(count)) % self.size
        self.drawable -= int(self.may_draw[places].sum())
        self.may_draw[places] = False
        self.next[places] = NONE
        self.head = (self.head + count) % self.size
        self.filled = min(self.filled + count, self.size)
        return places

    def link(self, entries: NDArray[np.int64], nexts: NDArray[np.int64]) -> None:
        self.next[entries] = nexts
        self.release(entries)

    def release(self, entries: NDArray[np.int64]) -> None:
        """Let entries be drawn from now on."""
        self.may_draw[entries] = True
        self.drawable += len(entries)

    def draw(self, count: int, generator: torch.Generator) -> NDArray[np.int64]:
        """Entries that may be drawn, all alike and some perhaps twice; there must be one."""
        chosen = self.numbers(count, generator)
        while (wrong := np.flatnonzero(~self.may_draw[chosen])).size:
            chosen[wrong] = self.numbers(wrong.size, generator)
        return chosen

    def numbers(self, count: int, generator: torch.Generator) -> NDArray[np.int64]:
        drawn: NDArray[np.int64] = torch.randint(self.filled, (count,), generator=generator).numpy()
        return drawn

    def take(self, entries: NDArray[np.int64]) -> Transitions:
        """What some entries have to teach."""
        nexts = self.next[entries]
        ends = nexts == NONE
        nexts = np.where(ends, entries, nexts)
        return Transitions(
            observations=torch.from_numpy(self.observations.take(entries, axis=0)),
            actions=torch.from_numpy(self.actions[entries].astype(np.int64)),
            rewards=torch.from_numpy(self.rewards[entries]),
            ends=torch.from_numpy(ends.astype(np.float32)),
            next_observations=torch.from_numpy(self.observations.take(nexts, axis=0)),
            next_masks=None if self.masks is None else torch.from_numpy(self.masks[nexts]),
        )

    def state(self) -> dict[str, Any]:
        """All of it; places that were never filled are left out."""
        return {
            "head": self.head,
            "pending": torch.from_numpy(self.pending.copy()),
            **{name: torch.from_numpy(array[: self.filled].copy()) for name, array in self.arrays().items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over a state; ValueError where it is of another size or shape."""
        for name, array in self.arrays().items():
            kept = state[name].numpy()
            if len(kept) > self.size or kept.shape[1:] != array.shape[1:]:
                raise ValueError(f"its replay has {name} {kept.shape}, and this run {array.shape}")
            array[: len(kept)] = kept
            self.filled = len(kept)
        self.pending[:] = state["pending"].numpy()
        self.head, self.drawable = int(state["head"]), int(self.may_draw.sum())

    def arrays(self) -> dict[str, NDArray[Any]]:
        named = {name: getattr(self, name) for name in ARRAYS}
        return {name: array for name, array in named.items() if array is not None}


def epsilon_at(steps: int, settings: TrainSettings) -> float:
    """The share of random actions after so many env-steps."""
    span = settings.exploration_fraction * settings.total_timesteps
    gone = min(steps / span, 1.0) if span else 1.0
    return settings.start_e + (settings.end_e - settings.start_e) * gone


def choose(q: Tensor, masks: Tensor | None, epsilon: float, uniforms: Tensor) -> Tensor:
    """Actions [rows] by Q-values [rows, actions]: the best, or with a chance any legal one.

    `uniforms` [2, rows] from [0, 1) decide whether it is any, and which.
    """
    if masks is None:
        drawn = (uniforms[1] * q.shape[-1]).long()
    else:
        counted = masks.cumsum(-1)
        number = (uniforms[1] * counted[:, -1]).long()
        drawn = (counted > number[:, None]).int().argmax(-1)
    return torch.where(uniforms[0] < epsilon, drawn, best(q, masks))


def best(q: Tensor, masks: Tensor | None) -> Tensor:
    """The action that is worth most, the first of several."""
    return allowed(q, masks).argmax(-1)


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


def td_loss(part: Transitions, student: Student, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean squared error, and the Q-values of the actions that were taken.

    Ends are rare and far from what was expected: they have to pull the harder.
    """
    q = student(part.observations, None, None)[0]
    q_taken = q.gather(-1, part.actions[:, None])[:, 0]
    return mse_loss(q_taken, wanted), q_taken.detach()


class DQN:
    """Learns from what was seen again, whichever policy it was of; see `PPO`."""

    draws = False

    def __init__(
        self, batch: Batch, settings: TrainSettings, device: torch.device, watchers: Sequence[Watcher]
    ) -> None:
        check_possible(batch, settings)
        self.batch, self.settings, self.device, self.watchers = batch, settings, device, tuple(watchers)
        spec, shape = batch.spec, row_shape(batch)
        self.envs, self.agents, self.rows = spec.num_envs, spec.agents, spec.num_envs * spec.agents
        network = default_network(spec, shape, settings)
        self.view = ObservationView(batch, by_type=is_by_type(spec, settings))
        kernels_now = partial(find_kernels, settings, spec.num_actions, fixed_shapes=False)
        seen = torch.zeros_like(self.view.now(torch.arange(self.rows)))
        self.threads = fit_threads(network, seen, settings, lambda copy: kernels_now().adopt(copy, settings))
        use_threads(self.threads.threads)
        self.network: nn.Module = without_values(network, self.view.shape).to(device)
        self.target = deepcopy(self.network).requires_grad_(False)
        self.student = make_student(self.network, settings)
        self.target_student = make_student(self.target, settings)
        self.kernels = kernels_now()
        for each in (self.network, self.target):
            self.kernels.adopt(each, settings)
        active = scales_observations(spec.layout, settings)
        self.observation_scale = ObservationScale(shape, device, active=active)
        self.allowed = None if batch.masks is None else torch.from_numpy(batch.masks).reshape(self.rows, -1)
        self.alive = alive_mask(batch)
        self.acting = np.zeros((self.envs, self.agents), np.int32)
        self.replay = ReplayBuffer(
            settings.buffer_size,
            self.rows,
            self.view.shape,
            self.view.raw.numpy().dtype,
            num_actions=spec.num_actions,
            masked=self.allowed is not None,
        )
        self.deciding, self.drawing = (torch.Generator().manual_seed(settings.seed) for _ in range(2))
        self.learning = [each for each in self.network.parameters() if each.requires_grad]
        self.optimiser = torch.optim.Adam(self.learning, lr=settings.learning_rate, fused=True)
        self.learned = 0

    def advance(self, steps: int) -> Update:
        rate = set_learning_rate(self.optimiser, self.settings, steps)
        terms: dict[str, list[float]] = defaultdict(list)
        move = self.kernels.mover(self.optimiser, self.settings.max_grad_norm or math.inf)
        agent_steps = self.collect(steps, lambda: self.learn(move, terms))
        means = {name: math.fsum(each) / len(each) for name, each in terms.items()}
        state = {"epsilon": epsilon_at(steps, self.settings), "replay": float(self.replay.drawable)}
        phase: Any = self.settings.algorithm if means else "explore"
        return Update(phase=phase, agent_steps=agent_steps, losses=means | state, learning_rate=rate)

    def collect(self, steps: int, learn: Callable[[], None] = lambda: None) -> int:
        """Collect one rollout, and learn whenever it is due; return the steps of living agents."""
        settings, agent_steps = self.settings, 0
        uniforms = torch.rand(settings.num_steps, 2, self.rows, generator=self.deciding)
        for step in range(settings.num_steps):
            agent_steps += self.one_step(step, steps, uniforms[step])
            calls = steps // self.envs + step + 1
            if calls % settings.train_frequency == 0 and self.replay.drawable >= settings.learning_starts:
                learn()
        self.observation_scale.adopt()
        return agent_steps

    @torch.no_grad()
    def one_step(self, step: int, steps: int, uniforms: Tensor) -> int:
        """Act, step the envs, and keep the step in the replay; return how many agents acted."""
        with span("rollout"):
            rows = self.alive.indices()
            seen = self.view.now(rows)
            masks = None if self.allowed is None else self.allowed.index_select(0, rows)
            if step % LOOK_EVERY == 0 and len(rows):
                self.observation_scale.look(self.view.raw.index_select(0, rows).to(self.device))
            self.alive.begin(0)
            mark("store")
            epsilon = epsilon_at(steps + step * self.envs, self.settings)
            obs = self.scale_rows(seen.to(self.device, copy=True))
            parts = [obs] if self.settings.batched or not len(obs) else obs[:, None]
            q = torch.cat([self.student(part, None, None)[0] for part in parts]).cpu()
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

    def scale_rows(self, seen: Tensor) -> Tensor:
        """Rows, scaled where they lie; their types stay as they are."""
        if self.observation_scale.active:
            part = self.view.columns(seen)
            self.observation_scale.write(part, part)
        return seen

    def steps_of(
        self, rows: Tensor, seen: Tensor, masks: Tensor | None, actions: NDArray[np.int32]
    ) -> StoredSteps:
        """What the step that was just made brought to those who made it."""
        batch, there = self.batch, rows.numpy()
        self.alive.end(0)
        ended = batch.terminals[there // self.agents] | self.alive.changed(0).numpy()[there]
        cut = batch.truncations[there // self.agents] & ~ended
        limited = torch.from_numpy(cut)
        return StoredSteps(
            rows=there,
            observations=seen.numpy(),
            masks=None if masks is None else masks.numpy(),
            actions=actions,
            rewards=batch.rewards.reshape(-1)[there],
            ended=ended,
            cut=cut,
            last=self.view.last(rows[limited], seen[limited]).numpy(),
        )

    def learn(self, move: Move, sums: dict[str, list[float]]) -> None:
        """Learn from as many minibatches as are due, and append the terms of each."""
        gamma, double = self.settings.gamma, self.settings.algorithm == "double_dqn"
        with lifeline.doing(Activity.OURS), span("learn"):
            for _ in range(self.settings.gradient_steps):
                part = self.sample()
                mark("sample")
                wanted = targets(part, self.student, self.target_student, gamma=gamma, double=double)
                loss, q_taken = td_loss(part, self.student, wanted)
                mark("forward")
                torch.autograd.backward((loss,))
                mark("backward")
                terms = {
                    "total": float(loss.detach()),
                    "q": float(q_taken.mean()),
                    "target": float(wanted.mean()),
                    "grad_norm": float(move()),
                }
                if not math.isfinite(terms["total"] + terms["grad_norm"]):
                    raise self.diverged(terms, part)
                for name, term in terms.items():
                    sums[name].append(term)
                self.learned += 1
                mark("optimiser")
                if self.learned % self.settings.target_network_frequency == 0:
                    self.target.load_state_dict(self.network.state_dict())
                    mark("target")

    def sample(self) -> Transitions:
        """A minibatch on the network's device, scaled as the network reads it now."""
        part = self.replay.take(self.replay.draw(self.settings.minibatch_size, self.drawing))
        there: dict[str, Any] = {
            name: None if array is None else array.to(self.device) for name, array in part.arrays().items()
        }
        for name in ("observations", "next_observations"):
            there[name] = self.scale_rows(there[name])
        return Transitions(**there)

    def diverged(self, terms: Mapping[str, float], part: Transitions) -> DivergedError:
        """Return the error for a loss or gradient norm that is not finite; it names the first array."""
        samples = {name: array for name, array in part.arrays().items() if array is not None}
        first = next((name for name, each in samples.items() if not torch.isfinite(each).all()), "total")
        evidence = {
            "first": first,
            "samples": samples,
            "losses": dict(terms),
            "network": self.network.state_dict(),
        }
        return DivergedError(f"gradient step {self.learned}: first in {first}", evidence)

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
            self.replay.pending[:] = NONE  # what came next in episodes under way will never be known


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
    """Return the network without a critic to train: its policy's logits are Q-values."""
    if isinstance(network, UserNetwork):  # of user code, a pass tells which weights make the logits
        torch.autograd.backward((network(torch.zeros(2, *shape))[0].sum(),))
        for weight in network.parameters():
            weight.requires_grad_(weight.grad is not None)
            weight.grad = None
        return network
    for each in network.each if isinstance(network, ByType) else [network]:
        each.value.requires_grad_(False)
    return network
