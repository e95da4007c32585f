"""Stations and combat, in examples, played on the twin and on native code alike."""

from pathlib import Path

from support.grids import (
    EAST,
    NOOP,
    SOUTH,
    WEST,
    Way,
    act,
    at,
    holding,
    offset,
    own,
    table,
    vibe,
    ways,
    world,
)

from hotloop.worlds.grid.features import Feature

MINE = """
resources = ["ore", "coin"]
vibes = 3
caps = { ore = 3 }
[[stations]]
kind = "mine"
symbol = "m"
gives = { ore = 2 }
"""
MINT = """
[[stations]]
kind = "mint"
symbol = "M"
takes = { ore = 2 }
gives = { coin = 300 }
"""


@ways
def test_walking_into_a_station_uses_it_and_stays(way: Way, tmp_path: Path) -> None:
    batch = world("@m", way, rules=table(tmp_path, MINE))
    assert act(batch, EAST) == [True]
    assert (offset(batch), holding(batch, 0)) == ((0, 0), 2)
    assert batch.counters["coverage.use"] == 1


@ways
def test_a_cap_cuts_what_is_given_and_full_hands_are_refused(way: Way, tmp_path: Path) -> None:
    batch = world("@m", way, rules=table(tmp_path, MINE))
    assert [act(batch, EAST) for _ in range(3)] == [[True], [True], [False]]
    assert holding(batch, 0) == 3
    assert batch.counters["coverage.use.refused"] == batch.counters["coverage.move.blocked"] == 1


@ways
def test_a_recipe_takes_before_it_gives_and_needs_all_it_takes(way: Way, tmp_path: Path) -> None:
    batch = world("m@M", way, rules=table(tmp_path, MINE + MINT))
    assert act(batch, EAST) == [False]
    assert [act(batch, WEST), act(batch, EAST)] == [[True], [True]]
    assert (holding(batch, 0), holding(batch, 1)) == (0, 300)


@ways
def test_more_than_255_shows_in_two_tokens(way: Way, tmp_path: Path) -> None:
    batch = world("m@M", way, rules=table(tmp_path, MINE + MINT))
    act(batch, WEST)
    act(batch, EAST)
    mine = own(batch)
    assert (mine[Feature.INVENTORY + 2], mine[Feature.INVENTORY + 3]) == (300 & 0xFF, 300 >> 8)


@ways
def test_a_cooldown_counts_down_and_refuses_until_it_is_over(way: Way, tmp_path: Path) -> None:
    batch = world("@m", way, rules=table(tmp_path, MINE + "cooldown = 3\n"))
    shown = []
    for expected in (True, False, False, True):
        assert act(batch, EAST) == [expected]
        shown.append(at(batch, 0x56)[Feature.COOLDOWN])
    assert shown == [2, 1, 0, 2]


@ways
def test_uses_run_out(way: Way, tmp_path: Path) -> None:
    batch = world("@m", way, rules=table(tmp_path, MINE.replace("caps = { ore = 3 }", "") + "uses = 2\n"))
    assert at(batch, 0x56)[Feature.USES] == 2
    assert [act(batch, EAST) for _ in range(3)] == [[True], [True], [False]]
    assert at(batch, 0x56)[Feature.USES] == 0


@ways
def test_a_station_may_ask_for_a_vibe(way: Way, tmp_path: Path) -> None:
    batch = world("@m", way, rules=table(tmp_path, MINE + "vibe = 2\n"))
    assert act(batch, EAST) == [False]
    assert act(batch, vibe(2)) == [True]
    assert own(batch)[Feature.VIBE] == 2
    assert act(batch, EAST) == [True]


@ways
def test_neighbours_must_help_where_a_row_asks_for_them(way: Way, tmp_path: Path) -> None:
    rules = table(tmp_path, MINE + "neighbours = 1\n")
    assert act(world("@m", way, rules=rules), EAST) == [False]
    assert act(world("@m.\n@..", way, rules=rules), EAST, NOOP) == [True, True]
    assert act(world("@m.@", way, rules=rules), EAST, NOOP) == [False, True]


@ways
def test_rows_of_one_kind_are_tried_in_order(way: Way, tmp_path: Path) -> None:
    rows = MINE + "vibe = 1\n" + '[[stations]]\nkind = "mine"\ngives = { coin = 7 }\n'
    batch = world("@m", way, rules=table(tmp_path, rows))
    act(batch, EAST)
    assert (holding(batch, 0), holding(batch, 1)) == (0, 7)
    act(batch, vibe(1))
    act(batch, EAST)
    assert (holding(batch, 0), holding(batch, 1)) == (2, 7)


@ways
def test_a_store_keeps_what_it_takes_and_depositing_earns(way: Way, tmp_path: Path) -> None:
    rules = MINE + '[[stations]]\nkind = "chest"\nsymbol = "H"\ntakes = { ore = 1 }\nstores = true\n'
    rules += '[[rewards]]\nof = "deposit"\nweight = 0.5\n'
    batch = world("m@H", way, rules=table(tmp_path, rules))
    act(batch, WEST)
    act(batch, EAST)
    assert at(batch, 0x56)[Feature.INVENTORY] == 1
    assert batch.rewards.tolist() == [[0.5]]
    act(batch, NOOP)
    assert at(batch, 0xFE)[Feature.LAST_REWARD] == 50
    assert batch.infos["episode_return"].tolist() == [[0.5]]


@ways
def test_moving_costs_what_the_table_says(way: Way, tmp_path: Path) -> None:
    rules = 'resources = ["energy"]\nstart = { energy = 3 }\nmove_costs = "energy"\nmove_price = 2\n'
    rules += '[[changes]]\nresource = "energy"\namount = 1\nevery = 4\n'
    batch = world("@....", way, rules=table(tmp_path, rules))
    assert [act(batch, EAST)[0] for _ in range(6)] == [True, False, False, False, True, False]
    assert holding(batch, 0) == 0


COMBAT = """
resources = ["laser", "armour", "gold"]
vibes = 2
attack_vibe = 1
attack_costs = "laser"
shield = "armour"
freeze = 3
loot = ["gold"]
start = { laser = 3, gold = 5 }
caps = { gold = 8 }
"""


@ways
def test_an_attack_costs_a_laser_freezes_and_takes_the_loot(way: Way, tmp_path: Path) -> None:
    batch = world("@@", way, rules=table(tmp_path, COMBAT))
    act(batch, vibe(1), NOOP)
    assert act(batch, EAST, NOOP) == [True, True]
    assert (holding(batch, 0), holding(batch, 2), holding(batch, 2, 1)) == (2, 8, 2)
    assert own(batch, 1)[Feature.FROZEN] == 2
    assert act(batch, NOOP, WEST) == [True, False]
    assert batch.counters["coverage.attack.hit"] == 1
    assert batch.counters["coverage.loot"] == 3


@ways
def test_a_frozen_target_is_not_attacked_again_and_thaws(way: Way, tmp_path: Path) -> None:
    batch = world("@@", way, rules=table(tmp_path, COMBAT))
    act(batch, vibe(1), NOOP)
    assert [act(batch, EAST, NOOP)[0] for _ in range(4)] == [True, False, False, True]


@ways
def test_armour_absorbs_and_is_used_up(way: Way, tmp_path: Path) -> None:
    armed = COMBAT.replace("gold = 5 }", "gold = 5, armour = 1 }")
    batch = world("@@", way, rules=table(tmp_path, armed))
    act(batch, vibe(1), NOOP)
    act(batch, EAST, NOOP)
    assert (own(batch, 1)[Feature.FROZEN], holding(batch, 1, 1), holding(batch, 2, 1)) == (0, 0, 5)
    assert batch.counters["coverage.attack.absorbed"] == 1


@ways
def test_without_a_laser_or_the_vibe_nobody_is_hurt(way: Way, tmp_path: Path) -> None:
    batch = world("@@", way, rules=table(tmp_path, COMBAT))
    assert act(batch, EAST, NOOP) == [False, True]
    unarmed = world("@@", way, rules=table(tmp_path, COMBAT.replace("laser = 3, ", "")))
    act(unarmed, vibe(1), NOOP)
    assert act(unarmed, EAST, NOOP) == [False, True]


@ways
def test_team_mates_are_spared(way: Way, tmp_path: Path) -> None:
    # Agents 0 and 2 are of team 1, agent 1 stands apart.
    batch = world("@.@\n@..", way, rules=table(tmp_path, COMBAT), teams=2)
    assert [own(batch, agent)[Feature.TEAM] for agent in range(3)] == [1, 2, 1]
    act(batch, vibe(1), NOOP, NOOP)
    assert act(batch, SOUTH, NOOP, NOOP) == [False, True, True]
    assert holding(batch, 0) == 3


@ways
def test_swapping_needs_a_frozen_mate(way: Way, tmp_path: Path) -> None:
    # Agents 0 and 2 are one team in a row; agent 1 shoots agent 2 from below.
    batch = world("@.\n.@\n@.", way, rules=table(tmp_path, COMBAT), teams=2)
    act(batch, NOOP, vibe(1), NOOP)
    # Agent 1 at (1, 1) hits agent 2 at (2, 0); agent 0 walks down to (1, 0).
    assert act(batch, SOUTH, 8, NOOP) == [True, True, True]
    assert own(batch, 2)[Feature.FROZEN] > 0
    assert act(batch, SOUTH, NOOP, NOOP) == [True, True, True]
    assert (offset(batch, 0), offset(batch, 2)) == ((2, 0), (-1, 0))
    assert batch.counters["coverage.swap"] == 1


@ways
def test_using_a_claimable_station_makes_it_the_teams(way: Way, tmp_path: Path) -> None:
    rules = MINE.replace('symbol = "m"', 'symbol = "m"\nclaims = true')
    batch = world("@m@", way, rules=table(tmp_path, rules), teams=2)
    assert Feature.TEAM not in at(batch, 0x56)
    act(batch, EAST, NOOP)
    assert at(batch, 0x56)[Feature.TEAM] == 1
    assert batch.infos["team_stations"].tolist() == [[1, 0]]
    act(batch, NOOP, WEST)
    assert at(batch, 0x56)[Feature.TEAM] == 2
    assert batch.infos["team_held"].tolist() == [[1, 1]]
    assert batch.infos["team_members"].tolist() == [[1, 1]]
    assert batch.counters["coverage.claim"] == 2
