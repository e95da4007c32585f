"""Small grids for examples: a text map, a table of rules, played on the twin and on native code alike."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import hotloop
from hotloop.envs.batch import Batch
from hotloop.worlds.grid.features import GLOBAL, KINDS, UNUSED, Feature

NOOP, NORTH, SOUTH, EAST, WEST, NORTH_EAST, NORTH_WEST, SOUTH_EAST, SOUTH_WEST = range(9)
MOST_KINDS, MOST_RESOURCES = 64, 16
AGENT, WALL = KINDS.index("agent"), KINDS.index("wall")

Way = dict[str, object]

ways = pytest.mark.parametrize(
    "way",
    [{"impl": "reference"}, {"impl": "native"}, {"impl": "native", "encoder": "original"}],
    ids=["twin", "optimized", "original"],
)
Token = tuple[int, int, int]


def vibe(k: int, directions: int = 8) -> int:
    """The action that changes the vibe to k."""
    return 1 + directions + k


def world(text: str, way: Way, **parameters: object) -> Batch:
    """One env on a text map, its agents on the @ cells in reading order."""
    given = {"agents": text.count("@")} | way | parameters
    batch = hotloop.make("grid/toy", num_envs=1, map=text + "\n", **given)
    batch.reset()
    return batch


def table(folder: Path, text: str) -> str:
    """Write a table of rules, and return its path."""
    file = folder / "rules.toml"
    file.write_text(text)
    return str(file)


def crowded() -> str:
    """As many kinds and resources as there may be: spent, clipped, useless, with holdings of two bytes."""
    kinds = range(MOST_KINDS - 1)
    rows = [
        f"resources = {[f'r{k}' for k in range(MOST_RESOURCES)]}",
        "vibes = 4",
        "start = { r0 = 300, r15 = 9 }",
        f"place = {{ {', '.join(f'k{k} = 1' for k in kinds)}, chest = 4 }}",
    ]
    for k in kinds:
        rows += ["[[stations]]", f'kind = "k{k}"', f"cooldown = {k % 9}", f"uses = {k % 4}"]
        rows += [f"gives = {{ r{k % MOST_RESOURCES} = {1 + 37 * k % 700} }}"]
    rows += ["[[stations]]", 'kind = "chest"', "takes = { r3 = 1 }", "stores = true"]
    for k in range(0, 40, 4):
        rows += ["[[events]]", f'name = "clip {k}"', 'effect = "clip"', f'kind = "k{k}"']
        rows += [f"every = {3 + k}", "count = 2", "amount = 9"]
    for source in ("deposit", "r1", "r2", "r4", "r5", "r6", "r7"):
        rows += ["[[rewards]]", f'of = "{source}"', "weight = 1.0"]
    return "\n".join(rows)


def act(batch: Batch, *actions: int) -> list[bool]:
    """One step; whose action succeeded."""
    batch.step(np.array([actions], np.int32))
    success: list[bool] = batch.infos["success"][0].tolist()
    return success


def tokens(batch: Batch, agent: int = 0) -> list[Token]:
    """The used tokens of an agent."""
    row: NDArray[np.uint8] = batch.observations[0, agent]
    used = (row != UNUSED).any(axis=1)
    assert not used[used.sum() :].any(), "unused tokens come last"
    return [(where, feature, value) for where, feature, value in row[used].tolist()]


def seen(batch: Batch, agent: int = 0) -> list[tuple[int, int]]:
    """(location, tag) of every object in view, in order."""
    return [(where, value) for where, feature, value in tokens(batch, agent) if feature == Feature.TAG]


def at(batch: Batch, location: int, agent: int = 0) -> dict[int, int]:
    """Feature to value of what an agent sees at a location."""
    return {feature: value for where, feature, value in tokens(batch, agent) if where == location}


def own(batch: Batch, agent: int = 0) -> dict[int, int]:
    """What an agent sees of itself."""
    return at(batch, 0x55, agent)


def offset(batch: Batch, agent: int = 0) -> tuple[int, int]:
    """(south, east) of the spawn, read from the tokens."""
    found = at(batch, GLOBAL, agent)
    south = found.get(Feature.SOUTH, 0) - found.get(Feature.NORTH, 0)
    return south, found.get(Feature.EAST, 0) - found.get(Feature.WEST, 0)


def holding(batch: Batch, resource: int, agent: int = 0) -> int:
    """How much of a resource an agent sees in its own hands."""
    mine = own(batch, agent)
    first = Feature.INVENTORY + 2 * resource
    return mine.get(first, 0) + 256 * mine.get(first + 1, 0)


def spoil_walls(batch: Batch, env: int) -> None:
    """Damage what the optimized encoder keeps ready for walls; the original one does not look at it."""
    engine: Any = batch.engine  # past the checksum and the examination, which would refuse it
    while hasattr(engine, "_behind"):
        engine = engine._behind
    saved = bytearray(engine.save(env))
    ready = saved.index(bytes([0, Feature.TAG, WALL, UNUSED, UNUSED]))
    saved[ready + 2] ^= 64
    engine._put(env, bytes(saved))
