"""The grid as people see it: the same image from either implementation, and every state in it."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.text import Text
from support.grids import EAST, NOOP, Way, act, table, vibe, ways, world
from support.play import tape

import hotloop
from hotloop.envs.batch import Batch
from hotloop.worlds.grid.drawer import CLIP, DOTS, GROUND, ICE, SCALE, ground_colour, sprites, team_colour
from hotloop.worlds.grid.features import KINDS

DUEL = """
resources = ["laser"]
vibes = 3
attack_vibe = 1
attack_costs = "laser"
freeze = 5
start = { laser = 1 }
"""

BASE = """
resources = ["energy"]
vibes = 3
mobile_vibe = 2

[mobile]
radius = 1
resource = "energy"
amount = 1
reach = "friends"

[[stations]]
kind = "beacon"
symbol = "B"
claims = true
area = { radius = 1, resource = "energy", amount = 1, reach = "friends" }

[[stations]]
kind = "orchard"
symbol = "O"

[[events]]
name = "clip"
effect = "clip"
kind = "orchard"
at = 2
amount = 9
"""


def cell(batch: Batch, row: int, col: int) -> NDArray[np.uint8]:
    """The pixels of one cell."""
    image = batch.render()
    assert isinstance(image, np.ndarray)
    return image[row * SCALE : (row + 1) * SCALE, col * SCALE : (col + 1) * SCALE]


def has(pixels: NDArray[np.uint8], colour: tuple[int, int, int]) -> bool:
    return bool((pixels == np.array(colour, np.uint8)).all(axis=-1).any())


def seen(text: str, way: Way, **parameters: object) -> Batch:
    return world(text, way, render_mode="rgb_array", **parameters)


@pytest.mark.parametrize("target", ["grid/toy", "grid/arena", "grid/guard"])
def test_native_and_twin_draw_the_same_image_every_step(target: str) -> None:
    fast, twin = (
        hotloop.make(target, num_envs=2, impl=impl, render_mode="rgb_array")
        for impl in ("native", "reference")
    )
    fast.reset()
    twin.reset()
    images = set()
    for actions in tape(fast.spec, 60):
        fast.step(actions)
        twin.step(actions)
        image, other = fast.render(1), twin.render(1)
        assert isinstance(image, np.ndarray)
        assert np.array_equal(image, other)
        images.add(image.tobytes())
    assert len(images) == 60


@ways
def test_an_image_has_a_square_a_cell_and_agents_wear_their_team(way: Way) -> None:
    batch = seen("#####\n#@.@#\n#####", way, teams=2)
    image = batch.render()
    assert isinstance(image, np.ndarray)
    assert (image.dtype, image.shape) == (np.uint8, (3 * SCALE, 5 * SCALE, 3))
    assert has(cell(batch, 1, 1), team_colour(1))
    assert has(cell(batch, 1, 3), team_colour(2))
    assert has(cell(batch, 0, 0), sprites()["wall"].colour)
    assert has(cell(batch, 1, 2), GROUND)


@ways
def test_a_frozen_agent_is_marked_until_it_thaws(way: Way, tmp_path: Path) -> None:
    batch = seen("@@", way, teams=2, rules=table(tmp_path, DUEL))
    act(batch, vibe(1), NOOP)
    assert not has(cell(batch, 0, 1), ICE)
    act(batch, EAST, NOOP)
    assert has(cell(batch, 0, 1), ICE)
    for _ in range(5):
        act(batch, NOOP, NOOP)
    assert not has(cell(batch, 0, 1), ICE)


@ways
def test_a_clipped_station_is_marked_and_an_own_kind_has_a_look(way: Way, tmp_path: Path) -> None:
    batch = seen("@.O", way, rules=table(tmp_path, BASE))
    act(batch, NOOP)
    assert has(cell(batch, 0, 2), sprites()["station"].colour)
    assert not has(cell(batch, 0, 2), CLIP)
    act(batch, NOOP)
    assert has(cell(batch, 0, 2), CLIP)


@ways
def test_an_area_is_tinted_for_the_team_that_it_serves(way: Way, tmp_path: Path) -> None:
    batch = seen("@B...", way, teams=1, rules=table(tmp_path, BASE))
    assert has(cell(batch, 0, 2), GROUND)
    act(batch, EAST)
    assert has(cell(batch, 0, 1), team_colour(1))
    assert has(cell(batch, 0, 2), ground_colour(2))
    assert not has(cell(batch, 0, 3), ground_colour(2))


@ways
def test_an_area_moves_with_the_agent_that_carries_it(way: Way, tmp_path: Path) -> None:
    batch = seen("@....", way, teams=1, rules=table(tmp_path, BASE))
    act(batch, vibe(2))
    act(batch, EAST)
    assert [has(cell(batch, 0, col), ground_colour(2)) for col in (0, 2, 3)] == [True, True, False]


@ways
def test_text_shows_teams_symbols_and_what_stands_still(way: Way, tmp_path: Path) -> None:
    batch = world("##\n@O", way, teams=1, rules=table(tmp_path, BASE), render_mode="ansi")
    act(batch, NOOP)
    assert Text.from_ansi(str(batch.render())).plain == "####\n1 O "
    act(batch, NOOP)
    assert Text.from_ansi(str(batch.render())).plain == "####\n1 Ox"


def test_every_kind_that_ships_is_drawn_in_whole_rows_and_tells_itself_apart() -> None:
    assert set(KINDS) < set(sprites())
    for name, sprite in sprites().items():
        assert [len(line) for line in sprite.dots] == [DOTS] * DOTS, name
    looks = {(sprites()[kind].colour, sprites()[kind].dots) for kind in KINDS}
    assert len(looks) == len(KINDS)
    assert len({sprites()[kind].symbol for kind in KINDS}) == len(KINDS)


def test_the_twenty_first_team_still_has_a_colour() -> None:
    assert team_colour(21) == team_colour(5)
    assert team_colour(0) not in {team_colour(team) for team in range(1, 256)}
