"""What the things of the grid look like: small drawings of eight by eight dots, read from a text table."""

from dataclasses import dataclass
from functools import cache
from importlib import resources as package_files

import numpy as np
from numpy.typing import NDArray

DOTS = 8
"""Rows and columns of a drawing."""

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sprite:
    """One drawing: `#` is its colour, `-` a darker and `+` a lighter one, `.` lets the ground through."""

    symbol: str
    """What stands for it where there is only text."""
    colour: Colour
    dots: tuple[str, ...]

    def paint(self, ground: NDArray[np.uint8], colour: Colour | None = None) -> None:
        """Draw onto [DOTS, DOTS, 3], in another colour than its own where one is given."""
        own = np.array(colour or self.colour)
        shades = {"#": own, "-": own * 6 // 10, "+": (own + 255) // 2}
        for row, line in enumerate(self.dots):
            for col, dot in enumerate(line):
                if dot in shades:
                    ground[row, col] = shades[dot]


@cache
def sprites() -> dict[str, Sprite]:
    """Every drawing, by the name of what it shows."""
    text = (package_files.files("hotloop.worlds.grid") / "tables" / "sprites.txt").read_text("utf-8")
    return dict(parse(block.split("\n")) for block in text.strip().split("\n\n"))


def parse(lines: list[str]) -> tuple[str, Sprite]:
    """Read one drawing: a line of name, symbol and colour, then the dots."""
    name, symbol, colour = lines[0].split()
    red, green, blue = bytes.fromhex(colour)
    return name, Sprite(symbol=symbol, colour=(red, green, blue), dots=tuple(lines[1:]))
