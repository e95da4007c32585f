"""The grid drawn for people, as an image of small sprites or as text, from either implementation's cells."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources as package_files
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from hotloop.worlds.grid.features import KINDS
from hotloop.worlds.grid.rules import Rules

DOTS = 8  # Rows and columns of a drawing

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sprite:
    """One drawing: `#` is its colour, `-` a darker and `+` a lighter one, `.` lets the ground through."""

    symbol: str  # What stands for it where there is only text
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
    """Every drawing, by the name of what it shows: a line of name, symbol and colour, then the dots."""
    text = (package_files.files("hotloop.worlds.grid") / "tables" / "sprites.txt").read_text("utf-8")
    found = {}
    for block in text.strip().split("\n\n"):
        head, *dots = block.split("\n")
        name, symbol, colour = head.split()
        red, green, blue = bytes.fromhex(colour)
        found[name] = Sprite(symbol=symbol, colour=(red, green, blue), dots=tuple(dots))
    return found


PIXELS = 2  # Of an image, along each side of a sprite's dot
SCALE = DOTS * PIXELS  # Pixels along each side of a cell

GROUND: Colour = (24, 27, 35)
LINE: Colour = (31, 35, 45)  # The left and upper edge of a free cell
PLATE: Colour = (44, 50, 63)  # What a station stands on
ICE: Colour = (190, 235, 255)
CLIP: Colour = (255, 70, 70)
# By team; the first is for no team, and later ones are used again.
TEAMS: tuple[Colour, ...] = (
    (208, 212, 220),
    (66, 135, 245),
    (245, 124, 66),
    (76, 201, 110),
    (214, 93, 214),
    (240, 208, 60),
    (64, 208, 208),
    (240, 90, 120),
    (160, 130, 90),
)
TINT_SHARE = 0.16  # Of a team's colour in the ground of its areas

AGENT = KINDS.index("agent") + 1
WALL = KINDS.index("wall") + 1

# All that decides how a cell looks: its four numbers, and 1 + the team whose area it lies in, or 0.
Look = tuple[int, int, int, int, int]

Characters = tuple[str, Colour, Colour]  # Text, the colour it is written in, and the colour behind it


class GridDrawer:
    """Draws the grid of one table of rules."""

    def __init__(self, rules: Rules) -> None:
        own = (kind for kind in rules.kinds if kind not in KINDS)
        self._rules = rules
        self._names = ("", *KINDS, *own)
        self._symbols = {kind: rules.first(kind).symbol for kind in rules.kinds}
        self._tiles: dict[Look, NDArray[np.uint8]] = {}

    def image(self, cells: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Every cell as a square of SCALE pixels."""
        height, width = cells.shape[:2]
        looks, which = np.unique(self._looks(cells).reshape(-1, 5), axis=0, return_inverse=True)
        tiles = np.stack([self._tile(tuple(look)) for look in looks.tolist()])
        squares = tiles[which.reshape(height, width)]
        return np.ascontiguousarray(squares.swapaxes(1, 2).reshape(height * SCALE, width * SCALE, 3))

    def text(self, cells: NDArray[np.uint8]) -> str:
        """Every cell as two characters, which is about a square."""
        rows = self._looks(cells).tolist()
        return "\n".join(coloured(self._characters(tuple(look)) for look in row) for row in rows)

    def _looks(self, cells: NDArray[np.uint8]) -> NDArray[np.uint16]:
        """The cells with the areas they lie in, [height, width, 5]."""
        tints = np.zeros(cells.shape[:2], np.uint16)
        for row, col in np.argwhere(np.isin(cells[..., 0], (0, WALL), invert=True)).tolist():
            tag, team, _, vibe = cells[row, col].tolist()
            if tag == AGENT:
                area = self._rules.mobile if vibe == self._rules.mobile_vibe else None
            else:
                area = self._rules.first(self._names[tag]).area
            if area and (team or area.reach == "all"):
                top, left = max(0, row - area.radius), max(0, col - area.radius)
                tints[top : row + area.radius + 1, left : col + area.radius + 1] = team + 1
        return np.dstack((cells.astype(np.uint16), tints))

    def _tile(self, look: Look) -> NDArray[np.uint8]:
        if look not in self._tiles:
            dots = paint(self._sprite(look[0]), look)
            self._tiles[look] = dots.repeat(PIXELS, axis=0).repeat(PIXELS, axis=1)
        return self._tiles[look]

    def _sprite(self, tag: int) -> Sprite | None:
        return sprites().get(self._names[tag], sprites()["station"]) if tag else None

    def _characters(self, look: Look) -> Characters:
        """A team's number for an agent, a symbol for a station; a mark behind it where it stands still."""
        tag, team, still, _, tint = look
        sprite = self._sprite(tag)
        if sprite is None:
            return "  ", GROUND, ground_colour(tint)
        if tag == WALL:
            return sprite.symbol * 2, sprite.colour, sprite.colour
        mark = sprites()["still"].symbol if still else " "
        if tag == AGENT:
            name = str(team % 10) if team else sprite.symbol
            return name + mark, GROUND, ICE if still else team_colour(team)
        symbol = self._symbols.get(self._names[tag]) or sprite.symbol
        return symbol + mark, CLIP if still else sprite.colour, ground_colour(tint)


def paint(sprite: Sprite | None, look: Look) -> NDArray[np.uint8]:
    """One cell in dots: the ground, what stands on it, then the marks on that."""
    tag, team, still, vibe, tint = look
    is_station = tag not in (0, AGENT, WALL)
    dots = np.empty((DOTS, DOTS, 3), np.uint8)
    dots[:] = LINE if tint == 0 else ground_colour(tint)
    dots[1:, 1:] = PLATE if is_station else ground_colour(tint)
    if sprite:
        sprite.paint(dots, team_colour(team) if tag == AGENT else None)
    if is_station and team:
        sprites()["owned"].paint(dots, team_colour(team))
    if vibe:
        sprites()["vibe"].paint(dots, TEAMS[-vibe % len(TEAMS)])
    if still:
        sprites()["still"].paint(dots, CLIP if is_station else ICE)
    return dots


def team_colour(team: int) -> Colour:
    return TEAMS[1 + (team - 1) % (len(TEAMS) - 1)] if team else TEAMS[0]


def ground_colour(tint: int) -> Colour:
    """The ground, mixed with a team's colour where its area reaches."""
    if tint == 0:
        return GROUND
    mixed = (
        round(own * (1 - TINT_SHARE) + theirs * TINT_SHARE)
        for own, theirs in zip(GROUND, team_colour(tint - 1), strict=True)
    )
    red, green, blue = mixed
    return red, green, blue


def coloured(line: Iterable[Characters]) -> str:
    """A line in 24-bit colours, by ANSI codes, each given once for all that share it."""
    runs = groupby(line, key=lambda characters: characters[1:])
    return (
        "".join(
            "\x1b[38;2;{};{};{};48;2;{};{};{}m".format(*ink, *paper) + "".join(text for text, *_ in run)
            for (ink, paper), run in runs
        )
        + "\x1b[0m"
    )
