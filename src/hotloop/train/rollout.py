"""Collecting: the student acts, a teacher labels if asked, and all goes into tensors made once."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotloop.envs.batch import Batch
from hotloop.train.actions import NUMBERED, Actions, actions_of
from hotloop.train.imitation import Teacher
from hotloop.train.kernels.kernels import Kernels
from hotloop.train.networks import Memory, Student
from hotloop.train.normalize import ObservationScale, Sight
from hotloop.train.opponents import Opponents
from hotloop.train.timing import mark, span
from hotloop.train.windows import Watcher

LOOK_EVERY = 8
"""Observations of one step in so many count for their scale: neighbouring steps look alike."""


@dataclass(slots=True, kw_only=True)
class Cut:
    """Episodes that a limit cut off, in which steps, and what was seen last in them."""

    steps: Tensor
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
    last_values: Tensor
    masks: Tensor | None = None
    labels: Tensor | None = None
    """What the teacher would have done; None while it is off."""
    favourites: Tensor | None = None
    """The student's most likely actions, where there are labels."""
    memory: Memory | None = None
    """As it was before the first step."""
    cuts: list[Cut] = field(default_factory=list)
    lives: Tensor | None = None
    """Whether a row was somebody's when the step began, and the learner chose; None where each always is."""
    acts: Actions = NUMBERED
    """How actions are read from what a network says."""
    turns: Tensor | None = None
    """1 where the next row is the same player's, -1 where it is the other's of two; None where each is."""

    @property
    def agent_steps(self) -> int:
        """Steps of those who lived."""
        return self.log_probs.numel() if self.lives is None else int(self.lives.sum())

    @property
    def agreement(self) -> float | None:
        """The share of labels that were the student's most likely action; None while the teacher is off.

        Of real numbers none is ever quite another.
        """
        if self.labels is None or self.favourites is None or self.labels.is_floating_point():
            return None
        agreed = self.labels == self.favourites
        agreed = agreed.all(-1) if self.acts.shape else agreed
        return float((agreed if self.lives is None else agreed[self.lives]).float().mean())


class Presence:
    """Who is in which row, where agents come and go: what a rollout keeps of it, [steps, envs, agents]."""

    def __init__(self, batch: Batch, steps: int) -> None:
        self._alive, self._died = batch.infos["alive"], batch.infos["died"]
        self.lived = np.zeros((steps, *self._alive.shape), np.bool_)
        """When the step began."""
        self.died = np.zeros_like(self.lived)

    def begin(self, step: int) -> None:
        self.lived[step] = self._alive

    def end(self, step: int) -> None:
        self.died[step] = self._died

    def now(self) -> Tensor:
        """The rows that are somebody's."""
        return torch.from_numpy(np.flatnonzero(self._alive))

    def ends(self, step: int) -> Tensor:
        """Rows that are nobody's after the step, or another's than before it."""
        return torch.from_numpy(self.died[step] | ~self.lived[step]).flatten()


class Collector:
    """Steps a batch with a student, straight from the batch's buffers.

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
        self.kernels, self.watchers = kernels, tuple(watchers)
        envs, agents = batch.spec.num_envs, batch.spec.agents
        self.envs, self.agents, self.steps, self.rows = envs, agents, steps, envs * agents
        self.sight = Sight(batch, by_type=by_type)
        self.raw = self.sight.raw
        self.allowed = None if batch.masks is None else torch.from_numpy(batch.masks).reshape(self.rows, -1)
        self.rewards = np.zeros((steps, envs, agents), np.float32)
        self.ended = np.zeros((steps, envs), np.bool_)
        self.acts = actions_of(batch.spec.layout.acts)
        self.acting = batch.new_actions()
        self.labels = np.zeros((steps, *self.acting.shape), self.acting.dtype)
        self.lives = Presence(batch, steps) if batch.spec.has_empty_rows else None
        self.chosen = torch.from_numpy(self.acting).reshape(self.rows, *self.acts.shape)
        """The same memory as `acting`, which is what the batch is stepped with."""
        self.opponents: Opponents | None = None
        """Who has the other seats, where somebody has."""
        self.picked = self.chosen
        """Where actions are drawn."""
        self.uniforms = torch.zeros(0)
        """What decides the actions, [steps, rows, ...]."""
        self.memory: Memory | None = None
        self.begins = torch.ones(self.rows, dtype=torch.bool, device=device)
        """Whether what is seen now is the first of an episode."""
        self.rollout = self.make_rollout()

    def make_rollout(self) -> Rollout:
        def room(dtype: torch.dtype, *shape: int) -> Tensor:
            return torch.zeros((self.steps, self.rows, *shape), dtype=dtype, device=self.device)

        seen = torch.float32 if self.scale.active else self.raw.dtype
        return Rollout(
            observations=room(seen, *self.sight.shape),
            actions=room(self.acts.dtype, *self.acts.shape),
            acts=self.acts,
            log_probs=room(torch.float32),
            values=room(torch.float32),
            rewards=room(torch.float32),
            ends=room(torch.float32),
            begins=room(torch.bool),
            masks=None if self.allowed is None else room(torch.bool, self.allowed.shape[1]),
            last_values=torch.zeros(self.rows, device=self.device),
        )

    @torch.no_grad()
    def collect(self, student: Student, teacher: Teacher | None = None) -> Rollout:
        """Fill the rollout with steps of the student, labelled by a teacher where there is one."""
        kept = self.rollout
        with span("rollout"):
            self.begin(labelled=teacher is not None)
            for step in range(self.steps):
                self.one_step(step, student, teacher)
            kept.last_values.copy_(self.look_ahead(student))
            mark("student")
            self.finish(labelled=teacher is not None)
            mark("store")
        return kept

    def begin(self, *, labelled: bool) -> None:
        """Draw what decides the actions, and keep the memory as it is before the first step."""
        kept = self.rollout
        kept.cuts, kept.memory, kept.labels = [], self.memory, None
        kept.favourites = torch.zeros_like(kept.actions) if labelled else None
        shape = (self.steps, self.rows, *self.acts.shape)
        self.uniforms = torch.rand(shape, generator=self.generator, device=self.device)

    def one_step(self, step: int, student: Student, teacher: Teacher | None) -> None:
        if self.lives is not None:
            self.lives.begin(step)
        self.decide(step, student)
        if teacher:
            with span("teacher"):
                self.ask(teacher, step)
        if self.opponents is not None:
            self.opponents.answer(step, self.rollout.observations[step], self.acting)
            mark("opponents")
        self.batch.step(self.acting)
        mark("environment")
        self.store(step)
        mark("store")
        for watcher in self.watchers:
            watcher.step(self.batch)
        mark("watch")

    def decide(self, step: int, student: Student) -> None:
        """Write the actions of a step where the batch reads them."""
        self.show(step, self.raw)
        mark("store")
        self.act(step, student)
        mark("student")

    def show(self, step: int, raw: Tensor) -> None:
        """Put what is seen into the rollout, scaled."""
        if step % LOOK_EVERY == 0:
            self.scale.look(raw if self.lives is None else raw[self.on_device(self.lives.now())])
        self.see(raw, self.rollout.observations[step])

    def see(self, raw: Tensor, out: Tensor) -> None:
        """Write what all agents see into its place, scaled where it is to be, with their types."""
        self.kernels.scale(self.scale, raw, self.sight.columns(out))
        self.sight.tell_types(out)

    def act(self, step: int, student: Student) -> None:
        """Choose actions for what is seen, and keep what they were chosen by; a memory moves on."""
        kept = self.rollout
        logits, values, after = self.think(student, kept.observations[step])
        if after is not None:
            self.remember(after)
        masks = self.masks_of(step)
        self.kernels.choose(
            logits,
            masks,
            self.uniforms[step],
            acting=self.picked,
            actions=kept.actions[step],
            log_probs=kept.log_probs[step],
        )
        kept.values[step].copy_(values)
        if kept.favourites is not None:
            kept.favourites[step].copy_(self.acts.likeliest(logits, masks))

    def masks_of(self, step: int) -> Tensor | None:
        """Keep the masks of a step, where there are any."""
        if self.allowed is None or self.rollout.masks is None:
            return None
        return self.rollout.masks[step].copy_(self.allowed)

    def think(self, student: Student, seen: Tensor) -> tuple[Tensor, Tensor, Memory | None]:
        """One forward pass, and the memory after it. Without one, nobody's rows are not thought of."""
        if self.memory is None:
            if self.lives is not None:
                return *think_of(student, seen, self.on_device(self.lives.now())), None
            return student(seen, None, None)
        logits, values, after = student(seen[None], self.memory, self.begins[None])
        return logits[0], values[0], after

    def remember(self, memory: Memory) -> None:
        self.memory = memory

    def ask(self, teacher: Teacher, step: int) -> None:
        """Keep the teacher's labels. It reads the batch's own observations: nothing is reshaped or moved."""
        labels = teacher()
        mark("calls")
        self.labels[step] = labels
        mark("stack and back")

    def store(self, step: int) -> None:
        """Keep what the step brought."""
        batch = self.batch
        self.rewards[step] = batch.rewards.reshape(self.envs, self.agents)
        np.logical_or(batch.terminals, batch.truncations, out=self.ended[step])
        if self.opponents is not None:
            self.opponents.note(step)
        if self.lives is not None:
            self.lives.end(step)
        if self.memory is not None:
            self.rollout.begins[step].copy_(self.begins)
            self.begins.copy_(self.row_ends(step))
        if batch.truncations.any():
            self.keep_cut(step)

    def keep_cut(self, step: int) -> None:
        """Keep the last observations of the episodes that the step truncated and did not terminate."""
        cut = self.per_row(self.batch.truncations & ~self.batch.terminals)
        if self.lives is not None:
            cut = cut & ~self.lives.ends(step)
        rows = cut.nonzero()[:, 0]
        last = self.on_device(self.sight.final[rows])
        rows = self.on_device(rows)
        observations = self.rollout.observations[step].index_select(0, rows)
        self.kernels.scale(self.scale, last, self.sight.columns(observations))
        memory = None if self.memory is None else (self.memory[0][rows], self.memory[1][rows])
        self.rollout.cuts.append(
            Cut(steps=torch.full_like(rows, step), rows=rows, observations=observations, memory=memory)
        )

    def finish(self, *, labelled: bool) -> None:
        """Turn what the batch gave into tensors, and scale by it from the next rollout on."""
        kept, shape = self.rollout, (self.steps, self.rows)
        kept.rewards.copy_(torch.from_numpy(self.rewards).reshape(shape), non_blocking=True)
        kept.ends.copy_(self.per_row(self.ended))
        if self.opponents is not None:
            kept.lives, kept.turns = torch.from_numpy(self.opponents.mine), self.opponents.turns
        if self.lives is not None:
            kept.lives = torch.from_numpy(self.lives.lived).reshape(shape).to(self.device)
            kept.ends[torch.from_numpy(self.lives.died).reshape(shape).to(self.device)] = 1
        if labelled:
            labels = torch.from_numpy(self.labels).reshape(*shape, *self.acts.shape)
            kept.labels = labels.to(self.device, self.acts.dtype)
        self.scale.adopt()

    def look_ahead(self, student: Student) -> Tensor:
        """The values of what is seen after the last step; a memory stays as it is."""
        seen = torch.empty_like(self.rollout.observations[0])
        self.see(self.on_device(self.raw), seen)
        return self.think(student, seen)[1]

    def on_device(self, host: Tensor) -> Tensor:
        return host if self.device.type == "cpu" else host.to(self.device)

    def row_ends(self, step: int) -> Tensor:
        """Rows in which the next thing that is seen is the first of somebody's episode."""
        ended = self.per_row(self.ended[step])
        return ended if self.lives is None else ended | self.lives.ends(step)

    def per_row(self, per_env: NDArray[np.bool_]) -> Tensor:
        """Flags of envs [..., envs], as flags of their agents [..., rows]."""
        flags = torch.from_numpy(per_env)
        return flags if self.agents == 1 else flags.repeat_interleave(self.agents, dim=-1)


def think_of(student: Student, seen: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Logits and values of some rows; those of the others are 0."""
    logits, values, _ = student(seen.index_select(0, rows), None, None)
    every = logits.new_zeros((len(seen), logits.shape[-1])).index_copy_(0, rows, logits)
    return every, values.new_zeros(len(seen)).index_copy_(0, rows, values)


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
    steps = torch.cat([cut.steps for cut in kept.cuts])
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
