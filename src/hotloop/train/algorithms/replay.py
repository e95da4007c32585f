"""The replay: what agents saw, did and got, the last so many of it, to be learned from again and again.

An entry is one agent's step. What it saw next is the entry of its next step, so that nothing is kept twice:

    entry        0      1      2      3      4      5
    of           a t0   b t0   a t1   b t1   a t2   a's last sight, where a limit cut it off
    next         2      3      4      none   5      -
    may be drawn yes    yes    yes    yes    yes    no

An entry may be drawn once its next is known, or there is none since the step ended its episode or its agent's
life. Entries are overwritten in the order they came in, and what came next always came later: a next is
never lost before the entry that needs it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hotloop.core.errors import InputError

MOST_BYTES = 2**30
"""Of a replay, in memory and so in a checkpoint."""

NONE = -1

ARRAYS = ("observations", "masks", "actions", "rewards", "next", "may_draw")
"""What an entry has; masks only where a world has some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transitions:
    """Drawn entries, and what came after each."""

    observations: Tensor
    actions: Tensor
    rewards: Tensor
    ends: Tensor
    """1 where nothing came after."""
    next_observations: Tensor
    """Of an end, anything."""
    next_masks: Tensor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """One step of some rows, as it goes into the replay."""

    rows: NDArray[np.int64]
    observations: NDArray[Any]
    masks: NDArray[np.bool_] | None
    actions: NDArray[np.int32]
    rewards: NDArray[np.float32]
    ended: NDArray[np.bool_]
    """Whether the step ended the row's episode, or its agent's life."""
    cut: NDArray[np.bool_]
    """Whether a limit cut it off instead, so that it would have gone on."""
    last: NDArray[Any]
    """What was seen last by those that were cut off."""


class Replay:
    """A ring of entries, in arrays that are made once."""

    def __init__(
        self, size: int, rows: int, shape: tuple[int, ...], dtype: Any, *, num_actions: int, masked: bool
    ) -> None:
        check_bytes(size, shape, dtype, num_actions if masked else 0)
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

    def add(self, steps: Steps) -> None:
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
            self.add_last(places[steps.cut], steps.last)

    def add_last(self, cut: NDArray[np.int64], last: NDArray[Any]) -> None:
        """Put in what was seen last by those that were cut off: nothing was done there.

        Where actions have masks, which were legal there nobody says, and such steps are never drawn.
        """
        places = self.take_places(len(cut))
        self.observations[places] = last
        self.link(cut, places)

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

    def forget_pending(self) -> None:
        """Episodes under way do not go on: what came next will never be known."""
        self.pending[:] = NONE

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


def check_bytes(size: int, shape: tuple[int, ...], dtype: Any, masks: int) -> None:
    """Refuse a replay that no checkpoint should have to hold, and name the largest that is taken."""
    row = int(np.prod(shape)) * np.dtype(dtype).itemsize + masks + 25
    if size * row > MOST_BYTES:
        raise InputError(
            f"buffer_size={size}: the replay would have {size * row / 2**30:.1f} GiB, as every checkpoint: "
            f"use at most {MOST_BYTES // row}"
        )
