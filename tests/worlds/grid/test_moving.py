"""Moving and seeing, in examples, played on the twin and on native code alike."""

import pytest
from support.grids import (
    AGENT,
    EAST,
    NOOP,
    NORTH,
    NORTH_EAST,
    NORTH_WEST,
    SOUTH,
    SOUTH_EAST,
    SOUTH_WEST,
    WALL,
    WEST,
    Way,
    act,
    offset,
    seen,
    tokens,
    ways,
    world,
)

import hotloop
from hotloop.worlds.grid.features import GLOBAL, Feature


@ways
@pytest.mark.parametrize(
    ("action", "moved"),
    [
        (NOOP, (0, 0)),
        (NORTH, (-1, 0)),
        (SOUTH, (1, 0)),
        (EAST, (0, 1)),
        (WEST, (0, -1)),
        (NORTH_EAST, (-1, 1)),
        (NORTH_WEST, (-1, -1)),
        (SOUTH_EAST, (1, 1)),
        (SOUTH_WEST, (1, -1)),
    ],
)
def test_each_action_moves_as_its_name_says(way: Way, action: int, moved: tuple[int, int]) -> None:
    batch = world("...\n.@.\n...", way)
    act(batch, action)
    assert offset(batch) == moved
    assert batch.infos["success"].all()
    assert (GLOBAL, Feature.LAST_ACTION, action) in tokens(batch)


@ways
@pytest.mark.parametrize(("action", "why"), [(NORTH, "the edge"), (EAST, "a wall"), (WEST, "an agent")])
def test_a_blocked_move_fails_and_reads_as_no_action(way: Way, action: int, why: str) -> None:
    batch = world("@@#\n...", way)
    act(batch, NOOP, action)
    assert offset(batch, 1) == (0, 0), why
    assert batch.infos["success"].tolist() == [[True, False]]
    assert (GLOBAL, Feature.LAST_ACTION, 0) in tokens(batch, 1)
    assert batch.counters["coverage.move.blocked"] == 1


@ways
@pytest.mark.parametrize("action", [-1, 9, 1000, -(2**31), 2**31 - 1])
def test_an_action_out_of_range_does_nothing_and_is_counted(way: Way, action: int) -> None:
    batch = world("...\n.@.\n...", way)
    act(batch, action)
    assert offset(batch) == (0, 0)
    assert not batch.infos["success"].any()
    assert batch.counters["coverage.action.invalid"] == 1


@ways
def test_with_four_directions_the_diagonals_are_out_of_range(way: Way) -> None:
    batch = world("...\n.@.\n...", way, directions=4)
    act(batch, NORTH_EAST)
    assert (offset(batch), batch.counters["coverage.action.invalid"]) == ((0, 0), 1)


@ways
def test_only_one_of_two_gets_the_cell_and_who_it_is_changes(way: Way) -> None:
    winners = set()
    for _ in range(20):
        batch = world("@.@", way)
        batch.reset(seeds=[len(winners) * 1000 + _])
        act(batch, EAST, WEST)
        success = batch.infos["success"][0].tolist()
        assert sum(success) == 1
        winners.add(success.index(True))
    assert winners == {0, 1}


@ways
def test_cells_come_by_distance_then_row_then_left_before_right(way: Way) -> None:
    batch = world("###\n#@#\n###", way, window=3)
    walls = [where for where, tag in seen(batch) if tag == WALL]
    assert walls == [0x01, 0x10, 0x12, 0x21, 0x00, 0x02, 0x20, 0x22]
    assert seen(batch)[0] == (0x11, AGENT)


@ways
def test_the_window_ends_where_it_ends(way: Way) -> None:
    batch = world("#.....#\n.......\n...@...\n.......\n#.....#", way, window=5)
    assert seen(batch) == [(0x22, AGENT)]


@ways
def test_an_agent_shows_tag_group_frozen_and_id_and_globals_come_first(way: Way) -> None:
    batch = world("@.@", way)
    assert tokens(batch, 1) == [
        (GLOBAL, Feature.COMPLETION, 0),
        (GLOBAL, Feature.LAST_ACTION, 0),
        (GLOBAL, Feature.LAST_REWARD, 0),
        (0x55, Feature.TAG, AGENT),
        (0x55, Feature.GROUP, 0),
        (0x55, Feature.FROZEN, 0),
        (0x55, Feature.AGENT_ID, 1),
        (0x53, Feature.TAG, AGENT),
        (0x53, Feature.GROUP, 0),
        (0x53, Feature.FROZEN, 0),
        (0x53, Feature.AGENT_ID, 0),
    ]


@ways
@pytest.mark.parametrize("limit", range(1, 40))
def test_tokens_that_do_not_fit_are_dropped_and_counted(way: Way, limit: int) -> None:
    text = "#####\n#@.##\n#####"
    whole = tokens(world(text, way))
    batch = world(text, way, tokens=limit)
    assert tokens(batch) == whole[:limit]
    assert batch.counters["tokens.dropped"] == max(0, len(whole) - limit)
    assert batch.counters["tokens"] == min(len(whole), limit)


@ways
def test_nothing_of_the_last_observation_stays(way: Way) -> None:
    batch = world("##########\n@.........\n##########", way, window=3)
    crowded = len(tokens(batch))
    free = world("@.........", way, window=3)
    assert len(tokens(free)) < crowded
    for _ in range(9):
        act(batch, EAST)
        tokens(batch)
    assert offset(batch) == (0, 9)


@ways
def test_completion_runs_from_0_to_255_and_the_last_step_truncates(way: Way) -> None:
    batch = world("@.", way, max_steps=4, autoreset=False)
    shown = []
    for _ in range(4):
        assert not batch.truncations.any()
        act(batch, NOOP)
        shown.append(tokens(batch)[0][2])
    assert shown == [63, 127, 191, 255]
    assert batch.truncations.all()
    assert not batch.terminals.any()


@ways
def test_autoreset_shows_the_new_episode_and_keeps_the_last_observation(way: Way) -> None:
    batch = world("@...", way, max_steps=2)
    act(batch, EAST)
    act(batch, EAST)
    assert batch.truncations.all()
    assert batch.infos["episode_length"].tolist() == [2]
    assert offset(batch) == (0, 0)
    final = [tuple(token) for token in batch.final_observations[0, 0].tolist()]
    assert (GLOBAL, Feature.EAST, 2) in final
    act(batch, EAST)
    assert not batch.truncations.any()
    assert batch.infos["episode_length"].tolist() == [1]


@ways
def test_a_seeded_map_has_a_border_and_its_share_of_walls(way: Way) -> None:
    batch = hotloop.make("grid/toy", num_envs=1, agents=1, map_size="9x9", density=0.2, window=15, **way)
    batch.reset()
    walls = sum(tag == WALL for _, tag in seen(batch))
    assert walls == 4 * 8 + int(81 * 0.2) or walls < 48
    assert walls >= 15


@ways
@pytest.mark.parametrize("window", [1, 3, 5, 7, 9, 11, 13, 15])
def test_every_window_shows_every_wall_in_reach(way: Way, window: int) -> None:
    side = 15
    rows = [["#"] * side for _ in range(side)]
    rows[7][7] = "@"
    batch = world("\n".join("".join(row) for row in rows), way, window=window, tokens=400)
    assert len(seen(batch)) == window * window
    assert len(set(seen(batch))) == window * window
