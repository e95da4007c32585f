"""How a farm looks to people: a map of its cells, as an image or as text."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

GROUND = (38, 44, 36)
BREEDS = ((90, 170, 255), (255, 190, 70), (240, 100, 160))
"""System, independent, control."""
SCALE = 6
LETTERS = "SIC"
MOST_COLUMNS = 100
"""Of text; a wider world is drawn with several cells a letter."""


class FarmDrawer:
    """Draws agents by type, food in green and tracks in grey."""

    def image(self, cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
        drawn = np.empty((*cells.shape[:2], 3), np.uint8)
        drawn[...] = GROUND
        drawn += (cells[..., 3:4] // 4).astype(np.uint8)
        grown = cells[..., 2] > 0
        drawn[grown, 1] = 80 + cells[..., 2][grown] // 2
        for breed, colour in enumerate(BREEDS):
            drawn[cells[..., 0] == breed + 1] = colour
        return drawn.repeat(SCALE, axis=0).repeat(SCALE, axis=1)

    def text(self, cells: NDArray[np.uint8]) -> str:
        step = -(-cells.shape[1] // MOST_COLUMNS)
        rows = range(0, cells.shape[0], 2 * step)
        columns = range(0, cells.shape[1], step)
        return "\n".join(
            "".join(self._letter(cells[row : row + 2 * step, col : col + step]) for col in columns)
            for row in rows
        )

    def _letter(self, cells: Any) -> str:
        """What matters most of a few cells: an agent, then food, then a track."""
        breed = int(cells[..., 0].max())
        if breed:
            red, green, blue = BREEDS[breed - 1]
            return f"\x1b[38;2;{red};{green};{blue}m{LETTERS[breed - 1]}\x1b[0m"
        if cells[..., 2].max():
            return "\x1b[32m*\x1b[0m"
        return "\x1b[90m.\x1b[0m" if cells[..., 3].max() > 64 else " "
