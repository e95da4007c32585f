"""An orchard in plain Python: the slow environment that docs/tutorial.md makes fast.

    hotloop profile examples/orchard.py:make

A picker walks among trees and gets 1 for every apple it steps on. Birds wander and eat apples; apples grow
again on free cells. The picker sees the cells around it, one layer for each kind of thing.
"""

from typing import Any

import numpy as np

SIZE, BIRDS, APPLES, TREES = 16, 6, 24, 40
RADIUS, KINDS, LENGTH = 4, 4, 200
TREE, APPLE, BIRD, EDGE = range(KINDS)
MOVES = ((0, 0), (-1, 0), (1, 0), (0, -1), (0, 1))

Cell = tuple[int, int]


class Orchard:
    """One environment, written as one thinks of it."""

    num_actions = len(MOVES)

    def __init__(self) -> None:
        self.state = 1
        self.trees: list[Cell] = []
        self.apples: list[Cell] = []
        self.birds: list[Cell] = []
        self.picker: Cell = (0, 0)
        self.age = 0

    def random(self, below: int) -> int:
        """A number whose generator any language can have."""
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 16) % below

    def reset(self, seed: int | None = None) -> Any:
        if seed is not None:
            self.state = seed % 2**32
        self.trees, self.apples, self.birds, self.age = [], [], [], 0
        self.picker = (SIZE // 2, SIZE // 2)
        for _ in range(TREES):
            self.trees.append(self.free_cell())
        for _ in range(APPLES):
            self.apples.append(self.free_cell())
        for _ in range(BIRDS):
            self.birds.append(self.free_cell())
        return self._observe()

    def free_cell(self) -> Cell:
        while True:
            cell = (self.random(SIZE), self.random(SIZE))
            if cell not in self.trees and cell not in self.apples and cell != self.picker:
                return cell

    def step(self, action: int) -> Any:
        self.age += 1
        self.picker = self.moved(self.picker, int(action))
        reward = 0.0
        if self.picker in self.apples:
            self.apples.remove(self.picker)
            self.apples.append(self.free_cell())
            reward = 1.0
        self._fly()
        return self._observe(), reward, False, self.age >= LENGTH, {}

    def moved(self, cell: Cell, action: int) -> Cell:
        there = (cell[0] + MOVES[action][0], cell[1] + MOVES[action][1])
        inside = 0 <= there[0] < SIZE and 0 <= there[1] < SIZE
        return there if inside and there not in self.trees else cell

    def _fly(self) -> None:
        for number in range(BIRDS):
            bird = self.moved(self.birds[number], self.random(len(MOVES)))
            self.birds[number] = bird
            if bird in self.apples:
                self.apples.remove(bird)
                self.apples.append(self.free_cell())

    def _observe(self) -> Any:
        seen = np.zeros((KINDS, 2 * RADIUS + 1, 2 * RADIUS + 1), np.uint8)
        for row in range(2 * RADIUS + 1):
            for column in range(2 * RADIUS + 1):
                cell = (self.picker[0] + row - RADIUS, self.picker[1] + column - RADIUS)
                seen[TREE, row, column] = cell in self.trees
                seen[APPLE, row, column] = cell in self.apples
                seen[BIRD, row, column] = cell in self.birds
                seen[EDGE, row, column] = not (0 <= cell[0] < SIZE and 0 <= cell[1] < SIZE)
        return seen


class Many:
    """Several orchards behind one call, stepped one after another; those that end begin anew."""

    num_actions = len(MOVES)

    def __init__(self, orchards: list[Any]) -> None:
        self.orchards, self.num_envs = orchards, len(orchards)

    def reset(self, seed: int | None = None) -> Any:
        seeds = [None if seed is None else seed + number for number in range(self.num_envs)]
        return np.stack([each.reset(of) for each, of in zip(self.orchards, seeds, strict=True)])

    def step(self, actions: Any) -> Any:
        answers = [each.step(action) for each, action in zip(self.orchards, actions, strict=True)]
        seen, rewards, terminal, truncated = (
            np.array(column) for column in list(zip(*answers, strict=True))[:4]
        )
        for number in np.flatnonzero(truncated):
            seen[number] = self.orchards[number].reset()
        return seen, rewards.astype(np.float32), terminal, truncated, {}


def make(num_envs: int = 16) -> Many:
    return Many([Orchard() for _ in range(num_envs)])
