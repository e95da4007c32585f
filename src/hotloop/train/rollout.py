"""Collecting: the student acts on the batch, a teacher labels if asked, and all goes into tensors made once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotloop.envs.batch import Batch
from hotloop.train.networks import Memory
from hotloop.train.normalise import ObservationScale
from hotloop.train.policy import chosen, log_probabilities, sample
from hotloop.train.regions import mark, span
from hotloop.train.windows import Watcher

LOOK_EVERY = 8
"""Observations of one step in so many count for their scale: neighbouring steps look alike."""

Student = Callable[[Tensor, Memory | None, Tensor | None], tuple[Tensor, Tensor, Memory | None]]


@dataclass(slots=True, kw_only=True)
class Cut:
    """Episodes that a limit cut off in one step, and what was seen last in them."""

    step: int
    rows: Tensor
    observations: Tensor
    memory: Memory | None


@dataclass(slots=True, kw_only=True)
class Rollout:
    """What one collection leaves, [steps, rows, ...]; the tensors are rewritten by the next."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    """Of the chosen actions."""
    values: Tensor
    rewards: Tensor
    ends: Tensor
    """1 where the step ended its episode."""
    begins: Tensor
    """Whether the observation is the first of its episode, as far as a memory is concerned."""
    masks: Tensor | None
    labels: Tensor | None
    """What the teacher would have done."""
    last_values: Tensor
    memory: Memory | None = None
    """As it was before the first step."""
    cuts: list[Cut] = field(default_factory=list)
    agreed: Tensor | None = None
    """How many labels were the student's most likely action."""


class Collector:
    """Steps a batch with a student, straight from the batch's buffers."""

    def __init__(
        self,
        batch: Batch,
        *,
        steps: int,
        device: torch.device,
        scale: ObservationScale,
        generator: torch.Generator,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.batch, self.device, self.scale, self.generator = batch, device, scale, generator
        self.watchers = tuple(watchers)
        spec = batch.spec
        self.envs, self.agents, self.steps = spec.num_envs, spec.agents, steps
        self.rows = spec.num_envs * spec.agents
        self.raw = torch.from_numpy(batch.observations).reshape(self.rows, *row_shape(batch))
        self.final = torch.from_numpy(batch.final_observations).reshape(self.raw.shape)
        self.masks = None if batch.masks is None else torch.from_numpy(batch.masks).reshape(self.rows, -1)
        self.rewards = torch.from_numpy(batch.rewards).reshape(self.rows)
        self.actions = np.zeros((spec.num_envs, spec.agents), np.int32)
        self.actions_there = torch.from_numpy(self.actions).reshape(self.rows)
        self.memory: Memory | None = None
        self.begins = torch.ones(self.rows, dtype=torch.bool, device=device)
        self.rollout = self.make_rollout()

    def make_rollout(self) -> Rollout:
        def room(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.zeros((self.steps, self.rows, *shape), dtype=dtype, device=self.device)

        seen = torch.float32 if self.scale.active else self.raw.dtype
        return Rollout(
            observations=room(seen, *self.raw.shape[1:]),
            actions=room(torch.int64),
            log_probs=room(torch.float32),
            values=room(torch.float32),
            rewards=room(torch.float32),
            ends=room(torch.float32),
            begins=room(torch.bool),
            masks=None if self.masks is None else room(torch.bool, self.masks.shape[1]),
            labels=None,
            last_values=torch.zeros(self.rows, device=self.device),
        )

    @torch.no_grad()
    def collect(self, student: Student, teacher: str | None = None) -> Rollout:
        """Fill the rollout with steps of the student, labelled by a teacher where one is named."""
        kept = self.rollout
        kept.cuts, kept.memory = [], self.memory
        if teacher and kept.labels is None:
            kept.labels = torch.zeros_like(kept.actions)
        kept.agreed = torch.zeros((), dtype=torch.int64, device=self.device) if teacher else None
        with span("rollout"):
            for step in range(self.steps):
                self.one_step(step, student, teacher)
            kept.last_values.copy_(self.look_ahead(student))
            mark("student")
            self.scale.adopt()
            mark("store")
        return kept

    def one_step(self, step: int, student: Student, teacher: str | None) -> None:
        kept = self.rollout
        if step % LOOK_EVERY == 0:
            self.scale.look(self.on_device(self.raw))
        self.scale.write(self.on_device(self.raw), kept.observations[step])
        mark("store")
        log_probs = self.act(step, student)
        mark("student")
        if teacher:
            with span("teacher"):
                self.ask(teacher, step, log_probs)
        self.batch.step(self.actions)
        mark("environment")
        self.store(step)
        mark("store")
        for watcher in self.watchers:
            watcher.step(self.batch)
        mark("watch")

    def act(self, step: int, student: Student) -> Tensor:
        """Choose actions for the observations of a step, and keep what they were chosen by."""
        kept = self.rollout
        masks = self.keep_masks(step)
        logits, values = self.think(student, kept.observations[step])
        log_probs = log_probabilities(logits, masks)
        uniforms = torch.rand(self.rows, generator=self.generator, device=self.device)
        actions = sample(log_probs, uniforms)
        kept.actions[step], kept.values[step] = actions, values
        kept.log_probs[step] = chosen(log_probs, actions)
        self.actions_there.copy_(actions)
        return log_probs

    def keep_masks(self, step: int) -> Tensor | None:
        if self.masks is None:
            return None
        masks: Tensor = self.rollout.masks[step]  # type: ignore[index]
        return masks.copy_(self.masks)

    def think(self, student: Student, observations: Tensor) -> tuple[Tensor, Tensor]:
        """One forward pass; a memory moves on by one step."""
        if self.memory is None:
            logits, values, _ = student(observations, None, None)
            return logits, values
        logits, values, self.memory = student(observations[None], self.memory, self.begins[None])
        return logits[0], values[0]

    def ask(self, teacher: str, step: int, log_probs: Tensor) -> None:
        """Keep the teacher's labels; it reads the batch's own observations, so nothing is reshaped or moved."""
        kept = self.rollout
        mark("reshape")
        mark("device to host")
        labels = torch.from_numpy(self.batch.choose(teacher)).reshape(self.rows)
        mark("calls")
        kept.labels[step].copy_(labels)  # type: ignore[index]
        kept.agreed += (log_probs.argmax(-1) == kept.labels[step]).sum()  # type: ignore[index]
        mark("stack and back")

    def store(self, step: int) -> None:
        """Keep what the step brought."""
        kept, batch = self.rollout, self.batch
        kept.begins[step] = self.begins
        kept.rewards[step].copy_(self.rewards)
        ended = batch.terminals | batch.truncations
        self.begins.copy_(self.per_row(ended))
        kept.ends[step].copy_(self.begins)
        if batch.truncations.any():
            self.keep_cut(step)

    def keep_cut(self, step: int) -> None:
        """Keep the last observations of the episodes that the step truncated and did not terminate."""
        cut = self.batch.truncations & ~self.batch.terminals
        rows = self.per_row(cut).nonzero()[:, 0].to(self.device)
        final = self.on_device(self.final)[rows]
        observations = torch.empty_like(self.rollout.observations[0, : len(rows)])
        self.scale.write(final, observations)
        memory = None if self.memory is None else (self.memory[0][rows], self.memory[1][rows])
        self.rollout.cuts.append(Cut(step=step, rows=rows, observations=observations, memory=memory))

    def look_ahead(self, student: Student) -> Tensor:
        """The values of what is seen after the last step; a memory stays as it is."""
        observations = torch.empty_like(self.rollout.observations[0])
        self.scale.write(self.on_device(self.raw), observations)
        before = self.memory
        _, values = self.think(student, observations)
        self.memory = before
        return values

    def on_device(self, host: Tensor) -> Tensor:
        return host if self.device.type == "cpu" else host.to(self.device)

    def per_row(self, per_env: Any) -> Tensor:
        """Flags of envs, as flags of their agents."""
        flags = torch.from_numpy(per_env)
        return flags if self.agents == 1 else flags.repeat_interleave(self.agents)


def row_shape(batch: Batch) -> tuple[int, ...]:
    """What one agent sees; observations are [num_envs, agents, ...], or [num_envs, ...] of one agent."""
    shape = batch.observations.shape
    return shape[2:] if len(shape) > 2 else shape[1:]


def stagger(batch: Batch, steps: int) -> None:
    """Play at random for so many steps, and begin the envs anew in turn, spread evenly over them."""
    turns = np.arange(batch.spec.num_envs) * steps // batch.spec.num_envs
    for step in range(steps):
        batch.step(batch.choose("random"))
        batch.reset_many(np.flatnonzero(turns == step))


def bootstrap(student: Student, kept: Rollout, rewards: Tensor, gamma: float) -> Tensor:
    """Rewards to which, in truncated steps, what the values promise beyond them is added."""
    if not kept.cuts:
        return rewards
    values = values_at(student, kept.cuts)
    steps = torch.cat([torch.full_like(cut.rows, cut.step) for cut in kept.cuts])
    rows = torch.cat([cut.rows for cut in kept.cuts])
    return rewards.index_put((steps, rows), gamma * values, accumulate=True)


def values_at(student: Student, cuts: Sequence[Cut]) -> Tensor:
    """The values of what was seen last in episodes that were cut off."""
    observations = torch.cat([cut.observations for cut in cuts])
    if cuts[0].memory is None:
        return student(observations, None, None)[1]
    hidden = torch.cat([cut.memory[0] for cut in cuts if cut.memory])
    cell = torch.cat([cut.memory[1] for cut in cuts if cut.memory])
    begins = torch.zeros(1, len(observations), dtype=torch.bool, device=observations.device)
    return student(observations[None], (hidden, cell), begins)[1][0]
