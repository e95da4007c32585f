"""Collecting on a GPU: envs and network are both there, and the host only says what is next.

The steps of a rollout are recorded once, one graph for what comes before an env's step and one for what comes
after it, so that nothing of a step is read, decided or launched piece by piece by the host. It waits for the
device once a rollout, to learn how many episodes were cut off.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from hotloop.envs.cuda import DeviceBatch
from hotloop.train.actions import allowed
from hotloop.train.arithmetic import Kernels
from hotloop.train.device.graphs import Recorded
from hotloop.train.imitation import Teacher
from hotloop.train.networks import WIDTH_UNIT, Memory, Student, forward_policy
from hotloop.train.normalize import ObservationScale, row_shape
from hotloop.train.rollout import LOOK_EVERY, Rollout, TruncatedSteps
from hotloop.train.settings import TrainSettings
from hotloop.train.timing import mark, span
from hotloop.train.windows import Watcher


class DeviceCollector:
    """See `Collector`: the same rollouts, from a batch whose arrays are tensors."""

    def __init__(
        self,
        batch: DeviceBatch,
        *,
        settings: TrainSettings,
        device: torch.device,
        scale: ObservationScale,
        kernels: Kernels,
        generator: torch.Generator,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        self.batch, self.settings, self.device = batch, settings, device
        self.scale, self.kernels, self.generator = scale, kernels, generator
        self.watchers = tuple(watchers)
        envs, agents = batch.spec.num_envs, batch.spec.agents
        self.steps, self.agents, self.rows = settings.num_steps, agents, envs * agents
        arrays: Any = batch
        self.raw: Tensor = arrays.observations.reshape(self.rows, *row_shape(batch))
        self.final: Tensor = arrays.final_observations.reshape(self.raw.shape)
        self.allowed: Tensor | None = None if batch.masks is None else arrays.masks.reshape(self.rows, -1)
        self.acting = torch.zeros((envs, agents), dtype=torch.int32, device=device)
        self.chosen = self.acting.reshape(self.rows)
        self.uniforms = self.room(torch.float32)
        self.cut = self.room(torch.bool)
        """Where a limit cut an episode off."""
        self.begins = torch.ones(self.rows, dtype=torch.bool, device=device)
        self.memory: Memory | None = None
        self.rollout = self.make_rollout()
        self.last = torch.zeros_like(self.rollout.observations)
        """What was seen last in the episodes that a step ended, where it ended one."""
        self.after: Memory | None = None
        """The memory after every step, [steps, rows, width]; None where there is none."""
        self.parts: dict[bool, list[tuple[Recorded, Recorded]]] = {}
        """What comes before and after each step of the envs, by whether a teacher labels."""
        self.ahead: Recorded | None = None
        self.decide, self.write_down = decide, write_down
        if settings.compile:
            self.decide = torch.compile(decide, dynamic=False)
            self.write_down = torch.compile(write_down, dynamic=False)

    def room(self, dtype: torch.dtype, *shape: int) -> Tensor:
        return torch.zeros((self.steps, self.rows, *shape), dtype=dtype, device=self.device)

    def make_rollout(self) -> Rollout:
        # Rows of bfloat16 are filled up with columns of 0: see `WIDTH_UNIT`.
        *axes, columns = self.raw.shape[1:]
        spare = -columns % WIDTH_UNIT if self.seen_type == torch.bfloat16 else 0
        return Rollout(
            observations=self.room(self.seen_type, *axes, columns + spare),
            actions=self.room(torch.int64),
            log_probs=self.room(torch.float32),
            values=self.room(torch.float32),
            rewards=self.room(torch.float32),
            dones=self.room(torch.float32),
            begins=self.room(torch.bool),
            masks=None if self.allowed is None else self.room(torch.bool, self.allowed.shape[1]),
            last_values=torch.zeros(self.rows, device=self.device),
        )

    @property
    def seen_type(self) -> torch.dtype:
        """Scaled observations are kept in the precision that the network reads them in."""
        if not self.scale.active:
            return self.raw.dtype
        return torch.bfloat16 if self.settings.mixed_precision else torch.float32

    @torch.no_grad()
    def collect(self, student: Student, teacher: Teacher | None = None) -> Rollout:
        """Fill the rollout with steps of the student, labelled by a teacher where there is one."""
        kept = self.rollout
        with span("rollout"):
            self.begin(labelled=teacher is not None)
            for step, part in enumerate(self.parts_for(student, labelled=teacher is not None)):
                self.one_step(step, part, teacher)
            if self.ahead is None:
                self.ahead = self.recorded(partial(self.look_ahead, student))
            self.ahead()
            mark("student")
            kept.cuts = self.find_cuts()
            self.scale.adopt()
            mark("store")
        return kept

    def begin(self, *, labelled: bool) -> None:
        """Draw what decides the actions, and keep the memory as it is before the first step."""
        kept = self.rollout
        self.uniforms.uniform_(generator=self.generator)
        if labelled and kept.greedy_actions is None:
            kept.greedy_actions, kept.labels = self.room(torch.int64), self.room(torch.int64)
        if not labelled:
            kept.greedy_actions = kept.labels = None
        if self.memory is None:
            return
        if kept.memory is None or self.after is None:
            kept.memory = (torch.empty_like(self.memory[0]), torch.empty_like(self.memory[1]))
            width = self.memory[0].shape[-1]
            self.after = (self.room(torch.float32, width), self.room(torch.float32, width))
        copy_memory(self.memory, kept.memory)

    def parts_for(self, student: Student, *, labelled: bool) -> list[tuple[Recorded, Recorded]]:
        if labelled not in self.parts:
            self.parts[labelled] = [
                (self.recorded(partial(self.think, step, student)), self.recorded(partial(self.keep, step)))
                for step in range(self.steps)
            ]
        return self.parts[labelled]

    def recorded(self, work: Any) -> Recorded:
        return Recorded(work, self.device if self.kernels.records else torch.device("cpu"))

    def one_step(self, step: int, part: tuple[Recorded, Recorded], teacher: Teacher | None) -> None:
        think, keep = part
        think()
        mark("student")
        if teacher and self.rollout.labels is not None:
            with span("teacher"):
                labels: Any = teacher()
                mark("calls")
                self.rollout.labels[step].copy_(labels.reshape(self.rows))
                mark("stack and back")
        acting: Any = self.acting
        self.batch.step(acting)
        mark("environment")
        keep()
        mark("store")
        for watcher in self.watchers:
            watcher.step(self.batch)
        mark("watch")

    def think(self, step: int, student: Student) -> None:
        """Scale what is seen, choose actions for it, and keep what they were chosen by."""
        kept = self.rollout
        if step % LOOK_EVERY == 0:
            self.scale.look(self.raw)
        masks = None
        if self.allowed is not None and kept.masks is not None:
            masks = kept.masks[step].copy_(self.allowed)
        logits = self.decide(
            student,
            self.kernels,
            (self.scale, self.raw, kept.observations[step]),
            (self.memory, self.begins),
            masks,
            self.uniforms[step],
            (self.chosen, kept.actions[step], kept.log_probs[step], kept.values[step]),
        )
        if kept.greedy_actions is not None:
            kept.greedy_actions[step].copy_(allowed(logits, masks).argmax(-1))

    def keep(self, step: int) -> None:
        """Keep what the step brought; what was seen last, whether or not an episode ended."""
        arrays: Any = self.batch
        kept = self.rollout
        self.write_down(
            (arrays.rewards, arrays.terminals, arrays.truncations),
            (kept.rewards[step], kept.dones[step], self.cut[step]),
            (self.scale, self.final, self.last[step]),
        )
        if self.memory is not None and self.after is not None:
            kept.begins[step].copy_(self.begins)
            self.begins.copy_(kept.dones[step])
            copy_memory(self.memory, (self.after[0][step], self.after[1][step]))

    def look_ahead(self, student: Student) -> None:
        """Keep the values of what is seen after the last step; a memory stays as it is."""
        seen = torch.zeros_like(self.rollout.observations[0])
        scale_into(self.scale, self.raw, seen)
        _, values, _ = forward_policy(student, seen, self.memory, self.begins)
        self.rollout.last_values.copy_(values)

    def find_cuts(self) -> list[TruncatedSteps]:
        """What was seen last in the episodes that were cut off; this waits for the device."""
        steps, rows = self.cut.nonzero().unbind(-1)
        if not len(rows):
            return []
        memory = None if self.after is None else (self.after[0][steps, rows], self.after[1][steps, rows])
        return [TruncatedSteps(steps=steps, rows=rows, observations=self.last[steps, rows], memory=memory)]


def decide(
    student: Student,
    kernels: Kernels,
    sight: tuple[ObservationScale, Tensor, Tensor],
    remembered: tuple[Memory | None, Tensor],
    masks: Tensor | None,
    uniforms: Tensor,
    out: tuple[Tensor, Tensor, Tensor, Tensor],
) -> Tensor:
    """Scale what is seen, pass it forward and choose by it, all into their places; returns the logits.

    A memory moves on by one step.
    """
    scale_into(*sight)
    seen = sight[2]
    memory, begins = remembered
    logits, values, after = forward_policy(student, seen, memory, begins)
    acting, actions, log_probs, kept_values = out
    kernels.choose(logits, masks, uniforms, acting=acting, actions=actions, log_probs=log_probs)
    kept_values.copy_(values)
    if memory is not None and after is not None:
        copy_memory(after, memory)
    return logits


def write_down(
    brought: tuple[Tensor, Tensor, Tensor],
    kept: tuple[Tensor, Tensor, Tensor],
    last: tuple[ObservationScale, Tensor, Tensor],
) -> None:
    """Keep rewards, ends and cuts of a step [rows], and what was seen last; flags are those of envs."""
    rewards, terminals, truncations = brought
    kept_rewards, ends, cut = kept
    kept_rewards.copy_(rewards.reshape(-1))
    agents = len(kept_rewards) // len(terminals)
    ends.view(-1, agents).copy_((terminals | truncations)[:, None].expand(-1, agents))
    cut.view(-1, agents).copy_((truncations & ~terminals)[:, None].expand(-1, agents))
    scale_into(*last)


def scale_into(scale: ObservationScale, raw: Tensor, out: Tensor) -> None:
    """Write scaled observations into rows that may be wider."""
    scale.write(raw, out[..., : raw.shape[-1]])


def copy_memory(source: Memory, to: Memory) -> None:
    for one, other in zip(source, to, strict=True):
        other.copy_(one)
