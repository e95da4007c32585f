"""Collecting with envs on the host and the network on a GPU.

What agents see goes to the GPU from where the batch keeps it, which is made memory that the GPU reads by
itself; the host waits for it once a step, for the actions. What the network does in a step is recorded as a
CUDA graph, one for each step of a rollout, so that little of a step is launched piece by piece.
"""

import weakref
from functools import partial
from typing import Any

import torch
from torch import Tensor

from hotloop.envs.batch import Batch
from hotloop.train.device.graphs import Recorded
from hotloop.train.networks import Memory, Student
from hotloop.train.rollout import Collector
from hotloop.train.timing import mark


class SplitCollector(Collector):
    """See `Collector`; copies have rows of their own in the tree."""

    def __init__(self, batch: Batch, **parts: Any) -> None:
        super().__init__(batch, **parts)
        self.there = torch.zeros_like(self.raw, device=self.device)
        """What agents see, on the device."""
        self.allowed_here = self.allowed
        if self.allowed is not None:
            self.allowed = torch.zeros_like(self.allowed, device=self.device)
        for host in (self.raw, self.allowed_here):
            # The GPU reads these where they are, for as long as this lives; slower copies otherwise.
            if host is not None and self.device.type == "cuda" and not host.is_pinned():
                runtime: Any = torch.cuda.cudart()  # type: ignore[no-untyped-call,unused-ignore]
                if int(runtime.cudaHostRegister(host.data_ptr(), host.nbytes, 0)) == 0:
                    weakref.finalize(self, runtime.cudaHostUnregister, host.data_ptr())
        self.chosen = reachable(self.chosen)
        self.acting = self.chosen.numpy().reshape(self.acting.shape)
        self.rewards = reachable(torch.from_numpy(self.rewards)).numpy()
        self.picked = torch.zeros_like(self.chosen, device=self.device)
        self.recorded = self.kernels.records and not batch.spec.has_empty_rows and self.view.types is None
        """Whether a step is the same work every time, read and written in the same places."""
        self.uniforms = torch.zeros((self.steps, self.rows, *self.acts.shape), device=self.device)
        self.greedy_actions: Tensor | None = None
        self.parts: dict[bool, list[Recorded]] = {}
        """What there is to do on the device in each step, by whether a teacher labels."""

    def begin(self, *, labelled: bool) -> None:
        """See `Collector`; all that a recorded step reads or writes stays where it is."""
        kept = self.rollout
        kept.cuts, kept.labels = [], None
        if self.memory is not None:
            kept.memory = (self.memory[0].clone(), self.memory[1].clone())
        self.uniforms.uniform_(generator=self.generator)
        if labelled and self.greedy_actions is None:
            self.greedy_actions = torch.zeros_like(kept.actions)
        kept.greedy_actions = self.greedy_actions if labelled else None

    def decide(self, step: int, student: Student) -> None:
        """Write the actions of a step where the batch reads them; waits until they are there."""
        self.there.copy_(self.raw, non_blocking=True)
        if self.allowed is not None and self.allowed_here is not None:
            self.allowed.copy_(self.allowed_here, non_blocking=True)
        mark("observations to device")
        self.parts_for(student)[step]()
        mark("student")
        self.chosen.copy_(self.picked, non_blocking=True)
        if self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        mark("actions to host")

    def parts_for(self, student: Student) -> list[Recorded]:
        labelled = self.rollout.greedy_actions is not None
        if labelled not in self.parts:
            where = self.device if self.recorded else torch.device("cpu")
            self.parts[labelled] = [
                Recorded(partial(self.show_and_act, step, student), where) for step in range(self.steps)
            ]
        return self.parts[labelled]

    def show_and_act(self, step: int, student: Student) -> None:
        self.observe(step, self.there)
        self.act(step, student)

    def remember(self, memory: Memory) -> None:
        """Keep a memory where it is read."""
        if self.memory is not None:
            for mine, after in zip(self.memory, memory, strict=True):
                mine.copy_(after)


def reachable(host: Tensor) -> Tensor:
    """As much memory as a tensor has, from which a GPU copies by itself; plain where there is none."""
    return torch.zeros(host.shape, dtype=host.dtype, pin_memory=torch.cuda.is_available())
