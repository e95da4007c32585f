"""Collecting: the policy acts, a teacher labels if there is one, and all goes into tensors made once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotloop.envs.batch import Batch
from hotloop.train.actions import NUMBERED, Actions, actions_of
from hotloop.train.arithmetic import Kernels
from hotloop.train.imitation import Teacher
from hotloop.train.networks import Memory, Student, forward_policy
from hotloop.train.normalize import ObservationScale, ObservationView
from hotloop.train.opponents import NoOpponents
from hotloop.train.timing import mark, span
from hotloop.train.windows import Watcher

LOOK_EVERY = 8  # Observations of one step in so many count for their scale: neighboring steps look alike


@dataclass(slots=True, kw_only=True)
class TruncatedSteps:
    """Steps in which a limit cut episodes off, and the last observations of those."""

    steps: Tensor
    rows: Tensor
    observations: Tensor
    memory: Memory | None


@dataclass(slots=True, kw_only=True)
class Experience:
    """What agents saw and did, [steps, rows, ...], or [samples, ...] once it is flattened."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor  # Of the chosen actions
    masks: Tensor | None = None
    labels: Tensor | None = None  # The teacher's actions; None while it is off
    # Whether the row held an agent when the step began, and the learner chose; None if all always do.
    alive: Tensor | None = None
    memory: Memory | None = None  # As it was before the first step
    acts: Actions = NUMBERED  # How actions are read from the outputs of a network


@dataclass(slots=True, kw_only=True)
class Rollout(Experience):
    """What one collection leaves; the tensors are rewritten by the next."""

    values: Tensor
    rewards: Tensor
    dones: Tensor  # 1 if the step ended its episode, however it ended
    begins: Tensor  # Whether the observation is the first of its episode, as far as a memory is concerned
    last_values: Tensor
    greedy_actions: Tensor | None = None  # The policy's most likely actions; None without labels
    cuts: list[TruncatedSteps] = field(default_factory=list)
    # 1 if the next row is the same player's, -1 if it is the other's of two; None for one player.
    turns: Tensor | None = None

    @property
    def agent_steps(self) -> int:
        """Return the steps of living agents."""
        return self.log_probs.numel() if self.alive is None else int(self.alive.sum())

    @property
    def agreement(self) -> float | None:
        """Return the share of labels that were the policy's most likely action.

        None while the teacher is off, and for real numbers, of which none is ever quite another.
        """
        if self.labels is None or self.greedy_actions is None or self.labels.is_floating_point():
            return None
        agreed = self.labels == self.greedy_actions
        agreed = agreed.all(-1) if self.acts.shape else agreed
        return float((agreed if self.alive is None else agreed[self.alive]).float().mean())


class AllAlive:
    """See `AliveMask`: every row always holds an agent."""

    def __init__(self, rows: int) -> None:
        self._every, self._unchanged = torch.arange(rows), torch.zeros(rows, dtype=torch.bool)

    def begin(self, step: int) -> None:
        """Keep which rows hold an agent when a step begins."""

    def end(self, step: int) -> None:
        """Keep which agents died in a step."""

    def indices(self) -> Tensor:
        """Return the rows that hold an agent now."""
        return self._every

    def select(self, rows: Tensor) -> Tensor:
        """Return those of all rows [rows, ...] that hold an agent now."""
        return rows

    def forward(
        self, student: Student, observations: Tensor, memory: Memory | None, begins: Tensor
    ) -> tuple[Tensor, Tensor, Memory | None]:
        """Return logits and values of all rows, and the memory after them."""
        return forward_policy(student, observations, memory, begins)

    def changed(self, step: int) -> Tensor:
        """Return whether a row holds another agent, or none, after a step."""
        return self._unchanged

    def finish(self, rollout: Rollout) -> None:
        """Write into a rollout which rows held an agent, and where one died."""


class AliveMask(AllAlive):
    """Which rows [steps, envs, agents] hold an agent, in worlds whose agents come and go."""

    def __init__(self, batch: Batch, steps: int) -> None:
        self._alive, self._died_now = batch.infos["alive"], batch.infos["died"]
        self._lived = np.zeros((steps, *self._alive.shape), np.bool_)
        self._died = np.zeros_like(self._lived)

    def begin(self, step: int) -> None:
        self._lived[step] = self._alive

    def end(self, step: int) -> None:
        self._died[step] = self._died_now

    def indices(self) -> Tensor:
        return torch.from_numpy(np.flatnonzero(self._alive))

    def select(self, rows: Tensor) -> Tensor:
        return rows[self.indices().to(rows.device)]

    def forward(
        self, student: Student, observations: Tensor, memory: Memory | None, begins: Tensor
    ) -> tuple[Tensor, Tensor, Memory | None]:
        if memory is not None:
            return forward_policy(student, observations, memory, begins)
        rows = self.indices().to(observations.device)
        logits, values, _ = student(observations.index_select(0, rows), None, None)
        all_logits = logits.new_zeros((len(observations), logits.shape[-1])).index_copy_(0, rows, logits)
        return all_logits, values.new_zeros(len(observations)).index_copy_(0, rows, values), None

    def changed(self, step: int) -> Tensor:
        return torch.from_numpy(self._died[step] | ~self._lived[step]).flatten()

    def finish(self, rollout: Rollout) -> None:
        shape, device = rollout.dones.shape, rollout.dones.device
        rollout.alive = torch.from_numpy(self._lived).reshape(shape).to(device)
        rollout.dones[torch.from_numpy(self._died).reshape(shape).to(device)] = 1


def alive_mask(batch: Batch, steps: int = 1) -> AllAlive:
    """Return the mask of a batch that keeps so many steps."""
    if batch.spec.has_empty_rows:
        return AliveMask(batch, steps)
    return AllAlive(batch.spec.num_envs * batch.spec.agents)


class Collector:
    """Steps a batch with a policy, straight from the batch's buffers.

    What comes from the batch is kept in host arrays and becomes tensors once a rollout: an operation of torch
    costs a few microseconds however little it does, and a step of small envs not much more.
    """

    def __init__(
        self,
        batch: Batch,
        *,
        steps: int,
        device: torch.device,
        scale: ObservationScale,
        kernels: Kernels,
        generator: torch.Generator,
        watchers: Sequence[Watcher] = (),
        by_type: bool = False,
    ) -> None:
        self.batch, self.device, self.scale, self.generator = batch, device, scale, generator
        self.kernels, self.watchers, self.opponents = kernels, tuple(watchers), NoOpponents()
        envs, agents = batch.spec.num_envs, batch.spec.agents
        self.envs, self.agents, self.steps, self.rows = envs, agents, steps, envs * agents
        self.view = ObservationView(batch, by_type=by_type)
        self.raw = self.view.raw
        self.alive = alive_mask(batch, steps)
        self.allowed = None if batch.masks is None else torch.from_numpy(batch.masks).reshape(self.rows, -1)
        self.rewards = np.zeros((steps, envs, agents), np.float32)
        self.ended = np.zeros((steps, envs), np.bool_)
        self.acts = actions_of(batch.spec.layout.acts)
        self.acting = batch.new_actions()
        self.labels = np.zeros((steps, *self.acting.shape), self.acting.dtype)
        self.chosen = torch.from_numpy(self.acting).reshape(self.rows, *self.acts.shape)
        """The same memory as `acting`, which is what the batch is stepped with."""
        self.picked = self.chosen
        """The tensor that actions are drawn into."""
        self.uniforms = torch.zeros(0)
        """The random numbers that decide the actions, [steps, rows, ...]."""
        self.memory: Memory | None = None
        self.begins = torch.ones(self.rows, dtype=torch.bool, device=device)
        """Whether the present observation is the first of an episode."""
        self.rollout = self.make_rollout()

    def make_rollout(self) -> Rollout:
        def room(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.zeros((self.steps, self.rows, *shape), dtype=dtype, device=self.device)

        return Rollout(
            observations=room(torch.float32 if self.scale.active else self.raw.dtype, *self.view.shape),
            actions=room(self.acts.dtype, *self.acts.shape),
            acts=self.acts,
            log_probs=room(torch.float32),
            values=room(torch.float32),
            rewards=room(torch.float32),
            dones=room(torch.float32),
            begins=room(torch.bool),
            masks=None if self.allowed is None else room(torch.bool, self.allowed.shape[1]),
            last_values=torch.zeros(self.rows, device=self.device),
        )

    @torch.no_grad()
    def collect(self, student: Student, teacher: Teacher | None = None) -> Rollout:
        """Fill the rollout with steps of the policy, labeled by the teacher if there is one."""
        rollout, batch = self.rollout, self.batch
        with span("rollout"):
            self.begin(labelled=teacher is not None)
            for step in range(self.steps):
                self.alive.begin(step)
                self.decide(step, student)
                if teacher:
                    with span("teacher"):
                        labels = teacher()  # reads the batch's own observations: nothing is reshaped or moved
                        mark("calls")
                        self.labels[step] = labels
                        mark("stack and back")
                self.opponents.answer(step, rollout.observations[step], self.acting)
                batch.step(self.acting)
                mark("environment")
                self.store(step)
                mark("store")
                for watcher in self.watchers:
                    watcher.step(batch)
                mark("watch")
            rollout.last_values.copy_(self.look_ahead(student))
            mark("student")
            self.finish(labelled=teacher is not None)
            mark("store")
        return rollout

    def begin(self, *, labelled: bool) -> None:
        """Draw what decides the actions, and keep the memory as it is before the first step."""
        rollout = self.rollout
        rollout.cuts, rollout.memory, rollout.labels = [], self.memory, None
        rollout.greedy_actions = torch.zeros_like(rollout.actions) if labelled else None
        shape = (self.steps, self.rows, *self.acts.shape)
        self.uniforms = torch.rand(shape, generator=self.generator, device=self.device)

    def decide(self, step: int, student: Student) -> None:
        """Write the actions of a step where the batch reads them."""
        self.observe(step, self.raw)
        mark("store")
        self.act(step, student)
        mark("student")

    def observe(self, step: int, raw: Tensor) -> None:
        """Put observations into the rollout, scaled."""
        if step % LOOK_EVERY == 0:
            self.scale.look(self.alive.select(raw))
        self.write_scaled(raw, self.rollout.observations[step])

    def write_scaled(self, raw: Tensor, out: Tensor) -> None:
        """Write observations of all rows into their place, scaled if they are to be, with their types."""
        self.kernels.scale(self.scale, raw, self.view.columns(out))
        self.view.write_types(out)

    def act(self, step: int, student: Student) -> None:
        """Choose the actions of a step and keep what they were chosen by; a memory moves on."""
        rollout, masks = self.rollout, None
        logits, values, memory = self.forward(student, rollout.observations[step])
        if memory is not None:
            self.remember(memory)
        if self.allowed is not None and rollout.masks is not None:
            masks = rollout.masks[step].copy_(self.allowed)
        self.kernels.choose(
            logits,
            masks,
            self.uniforms[step],
            acting=self.picked,
            actions=rollout.actions[step],
            log_probs=rollout.log_probs[step],
        )
        rollout.values[step].copy_(values)
        if rollout.greedy_actions is not None:
            rollout.greedy_actions[step].copy_(self.acts.likeliest(logits, masks))

    def forward(self, student: Student, observations: Tensor) -> tuple[Tensor, Tensor, Memory | None]:
        """Return logits and values of all rows, and the memory after them; 0 for rows without an agent."""
        return self.alive.forward(student, observations, self.memory, self.begins)

    def remember(self, memory: Memory) -> None:
        self.memory = memory

    def store(self, step: int) -> None:
        """Keep what the step brought."""
        batch = self.batch
        self.rewards[step] = batch.rewards.reshape(self.envs, self.agents)
        np.logical_or(batch.terminals, batch.truncations, out=self.ended[step])
        self.opponents.note(step)
        self.alive.end(step)
        if self.memory is not None:
            self.rollout.begins[step].copy_(self.begins)
            self.begins.copy_(self.per_row(self.ended[step]) | self.alive.changed(step))
        if batch.truncations.any():
            self.keep_truncated(step)

    def keep_truncated(self, step: int) -> None:
        """Keep the last observations of the episodes that the step truncated and did not terminate."""
        truncated = self.per_row(self.batch.truncations & ~self.batch.terminals) & ~self.alive.changed(step)
        rows = truncated.nonzero()[:, 0]
        last = self.view.final[rows].to(self.device)
        rows = rows.to(self.device)
        observations = self.rollout.observations[step].index_select(0, rows)
        self.kernels.scale(self.scale, last, self.view.columns(observations))
        memory = None if self.memory is None else (self.memory[0][rows], self.memory[1][rows])
        steps = torch.full_like(rows, step)
        self.rollout.cuts.append(
            TruncatedSteps(steps=steps, rows=rows, observations=observations, memory=memory)
        )

    def look_ahead(self, student: Student) -> Tensor:
        """Return the values of the observations after the last step; a memory stays as it is."""
        observations = torch.empty_like(self.rollout.observations[0])
        self.write_scaled(self.raw.to(self.device), observations)
        return self.forward(student, observations)[1]

    def finish(self, *, labelled: bool) -> None:
        """Turn what the batch gave into tensors, and scale by it from the next rollout on."""
        rollout, shape = self.rollout, (self.steps, self.rows)
        rollout.rewards.copy_(torch.from_numpy(self.rewards).reshape(shape), non_blocking=True)
        rollout.dones.copy_(self.per_row(self.ended))
        self.opponents.finish(rollout)
        self.alive.finish(rollout)
        if labelled:
            labels = torch.from_numpy(self.labels).reshape(*shape, *self.acts.shape)
            rollout.labels = labels.to(self.device, self.acts.dtype)
        self.scale.adopt()

    def per_row(self, per_env: NDArray[np.bool_]) -> Tensor:
        """Return flags of envs [..., envs] as flags of their agents [..., rows]."""
        flags = torch.from_numpy(per_env)
        return flags if self.agents == 1 else flags.repeat_interleave(self.agents, dim=-1)


def stagger(batch: Batch, steps: int) -> None:
    """Play at random for so many steps, and begin the envs anew in turn, spread evenly over them."""
    turns = np.arange(batch.spec.num_envs) * steps // batch.spec.num_envs
    for step in range(steps):
        batch.step(batch.choose("random"))
        batch.reset_many(np.flatnonzero(turns == step))
