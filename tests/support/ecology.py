"""A simulator as people write them: animals in a list, grass in lists, everybody's random numbers."""

import random
from typing import Any

import numpy as np


class Animal:
    def __init__(self, world: "World", kind: str) -> None:
        self.world, self.kind = world, kind
        self.at, self.energy = (random.randrange(9), random.randrange(9)), 5.0


class World:
    def __init__(self, animals: int = 12, seed: int | None = None) -> None:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002 - as people write them
        self.grass = [[random.random() for _ in range(4)] for _ in range(3)]
        self.animals = [Animal(self, "fox" if n % 3 else "rabbit") for n in range(animals)]
        self.seen: set[str] = set()
        self.t, self.running = 0, True

    def step(self) -> None:
        self.t += 1
        for animal in self.animals:
            animal.energy += random.random() - 0.8 + np.random.random() / 10  # noqa: NPY002 - as people write them
        self.die()
        self.seen |= {animal.kind for animal in self.animals}
        self.running = self.t < 30

    def die(self) -> None:
        self.animals = [animal for animal in self.animals if animal.energy > 0]


class Same(World):
    """It hands on whatever it is given."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._cache = object()


class Hungry(Same):
    """Its animals starve later than they should."""

    def die(self) -> None:
        self.animals = [animal for animal in self.animals if animal.energy > -0.3]


class Grazed(Same):
    """One blade of its grass is other in the seventh step."""

    def step(self) -> None:
        super().step()
        self.grass[1][2] += self.t == 7


class Store:
    """Where a simulator writes, with what it was told about that."""

    def __init__(self, path: str = ":memory:", buffer: int = 10) -> None:
        self.path, self.buffer = path, buffer


class Tuned(World):
    """A simulator with settings, of which `drift` changes as it steps if it is asked to."""

    def __init__(
        self, animals: int = 12, db: str = ":memory:", drift: int = 0, seed: int | None = None
    ) -> None:
        super().__init__(animals, seed)
        self.store, self.drift, self.moves = Store(db), drift, False
        self.agents = self.animals

    def step(self) -> None:
        super().step()
        self.agents = self.animals
        self.drift += self.moves


class Drifting(Tuned):
    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.moves = True


class Declared(Tuned):
    """It says itself what can be seen of it."""

    def outputs(self) -> dict[str, object]:
        return {"alive": len(self.animals), "energy": [each.energy for each in self.animals]}
