"""The orchard with its map kept as an array beside its lists: what is seen is one slice of it.

hotloop validate examples/orchard_arrays.py:make 2000 --against examples/orchard.py:make
hotloop compare examples/orchard.py:make examples/orchard_arrays.py:make
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from orchard import APPLE, BIRD, EDGE, KINDS, RADIUS, SIZE, TREE, Many, Orchard


class Mapped(Orchard):
    """Fills a map with a margin as wide as the view, and cuts the view out of it."""

    def _observe(self) -> Any:
        layers = np.zeros((KINDS, SIZE + 2 * RADIUS, SIZE + 2 * RADIUS), np.uint8)
        layers[EDGE] = 1
        layers[EDGE, RADIUS:-RADIUS, RADIUS:-RADIUS] = 0
        for kind, cells in ((TREE, self.trees), (APPLE, self.apples), (BIRD, self.birds)):
            rows, columns = np.array(cells).T + RADIUS
            layers[kind, rows, columns] = 1
        row, column = self.picker
        return layers[:, row : row + 2 * RADIUS + 1, column : column + 2 * RADIUS + 1].copy()


def make(num_envs: int = 16) -> Many:
    return Many([Mapped() for _ in range(num_envs)])
