"""Events, areas and rewards, in examples, played on the twin and on native code alike."""

from pathlib import Path

import pytest
from support.grids import EAST, NOOP, WEST, Way, act, at, holding, own, table, tokens, vibe, ways, world
from support.play import tape

import hotloop
from hotloop.core import registry
from hotloop.worlds.grid.features import GLOBAL, Feature

BASE = """
resources = ["ore"]
vibes = 2
start = { ore = 9 }
[[stations]]
kind = "mine"
symbol = "m"
gives = { ore = 1 }
"""


def event(**row: object) -> str:
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in row.items()]
    return "\n".join(["[[events]]", *lines, ""])


@ways
def test_an_event_happens_at_its_tick_or_every_so_many(way: Way, tmp_path: Path) -> None:
    once = event(name="once", effect="drain", kind="agent", resource="ore", at=2, amount=1)
    often = event(name="often", effect="drain", kind="agent", resource="ore", every=3, amount=2)
    batch = world("@", way, rules=table(tmp_path, BASE + once + often))
    shown = []
    for _ in range(6):
        act(batch, NOOP)
        shown.append(holding(batch, 0))
    assert shown == [9, 8, 6, 6, 6, 4]
    assert batch.counters["coverage.event.drain"] == 3


@ways
def test_a_drain_stops_at_nothing(way: Way, tmp_path: Path) -> None:
    rules = BASE + event(name="flood", effect="drain", kind="agent", resource="ore", at=1, amount=99)
    batch = world("@", way, rules=table(tmp_path, rules))
    act(batch, NOOP)
    assert holding(batch, 0) == 0


@ways
def test_a_clipped_station_shows_it_and_refuses_until_it_is_over(way: Way, tmp_path: Path) -> None:
    rules = BASE + event(name="jam", effect="clip", kind="mine", at=1, amount=2)
    batch = world("@m", way, rules=table(tmp_path, rules))
    assert act(batch, EAST) == [False]
    assert at(batch, 0x56)[Feature.CLIPPED] == 1
    assert act(batch, EAST) == [False]
    assert Feature.CLIPPED not in at(batch, 0x56)
    assert act(batch, EAST) == [True]


@ways
def test_an_event_may_be_followed_by_another(way: Way, tmp_path: Path) -> None:
    rules = BASE + event(name="one", effect="clip", kind="mine", at=1, amount=5, then="two")
    rules += event(name="two", effect="drain", kind="agent", resource="ore", amount=4)
    batch = world("@m", way, rules=table(tmp_path, rules))
    act(batch, NOOP)
    assert (at(batch, 0x56)[Feature.CLIPPED], holding(batch, 0)) == (4, 5)


@ways
def test_a_change_of_team_strikes_agents_or_stations(way: Way, tmp_path: Path) -> None:
    rules = BASE + event(name="turncoats", effect="team", kind="agent", at=1)
    rules += event(name="handover", effect="team", kind="mine", at=2)
    batch = world("@m@", way, rules=table(tmp_path, rules), teams=2)
    act(batch, NOOP, NOOP)
    assert [own(batch, agent)[Feature.TEAM] for agent in range(2)] == [2, 1]
    act(batch, NOOP, NOOP)
    assert at(batch, 0x56)[Feature.TEAM] == 1


@ways
def test_a_spawn_makes_stations_up_to_its_amount(way: Way, tmp_path: Path) -> None:
    rules = BASE + event(name="rush", effect="spawn", kind="mine", every=1, count=2, amount=3)
    batch = world("...\n.@.\n...", way, rules=table(tmp_path, rules))
    for _ in range(5):
        act(batch, NOOP)
    mines = [token for token in tokens(batch) if token[1:] == (Feature.TAG, 12)]
    assert len({where for where, _, _ in mines}) == len(mines) == 3
    assert batch.counters["coverage.event.spawn"] == 3


@ways
def test_an_area_reaches_its_square_and_entering_and_leaving_are_seen(way: Way, tmp_path: Path) -> None:
    rules = BASE + 'area = { radius = 1, resource = "ore", amount = 10 }\n'
    batch = world("m.@.", way, rules=table(tmp_path, rules))
    act(batch, NOOP)
    assert holding(batch, 0) == 9
    act(batch, WEST)
    act(batch, NOOP)
    assert holding(batch, 0) == 29
    act(batch, EAST)
    assert (holding(batch, 0), batch.counters["coverage.area.enter"]) == (29, 1)
    assert batch.counters["coverage.area.leave"] == 1


@ways
@pytest.mark.parametrize(
    ("reach", "gained"), [("all", [1, 1, 1]), ("friends", [1, 0, 1]), ("enemies", [0, 1, 0])]
)
def test_an_area_may_be_for_friends_or_enemies(
    way: Way, tmp_path: Path, reach: str, gained: list[int]
) -> None:
    area = f'claims = true\narea = {{ radius = 2, resource = "ore", amount = 1, reach = "{reach}" }}\n'
    batch = world("@m@\n.@.", way, rules=table(tmp_path, BASE + area), teams=2)
    act(batch, EAST, NOOP, NOOP)
    before = [holding(batch, 0, agent) for agent in range(3)]
    act(batch, NOOP, NOOP, NOOP)
    assert [holding(batch, 0, agent) - had for agent, had in enumerate(before)] == gained


@ways
def test_an_agent_carries_an_area_in_its_vibe_and_is_not_in_it(way: Way, tmp_path: Path) -> None:
    mobile = 'mobile_vibe = 1\n[mobile]\nradius = 1\nresource = "ore"\namount = 1\n'
    rules = BASE.replace("[[stations]]", mobile + "[[stations]]", 1)
    batch = world("@@", way, rules=table(tmp_path, rules))
    act(batch, vibe(1), NOOP)
    assert (holding(batch, 0, 0), holding(batch, 0, 1)) == (9, 10)


@ways
def test_rewards_weigh_changes_up_to_their_cap_and_losses_count(way: Way, tmp_path: Path) -> None:
    rules = BASE + '[[rewards]]\nof = "ore"\nweight = 0.25\ncap = 11\n'
    rules += event(name="flood", effect="drain", kind="agent", resource="ore", at=5, amount=2)
    batch = world("@m", way, rules=table(tmp_path, rules))
    shown = []
    for action in (NOOP, EAST, EAST, EAST, NOOP):
        act(batch, action)
        shown.append(float(batch.rewards[0, 0]))
    assert shown == [0, 0.25, 0.25, 0, -0.25]
    act(batch, NOOP)
    assert at(batch, GLOBAL)[Feature.LAST_REWARD] == 256 - 25


MECHANICS = [
    (found.target, name)
    for w in registry.worlds().values()
    for found in registry.presets(w)
    for name in w.mechanics.get(found.preset, ())
]


@pytest.mark.parametrize("target", sorted({target for target, _ in MECHANICS}))
def test_every_mechanic_a_preset_is_for_fires_under_random_play(target: str) -> None:
    batch = hotloop.make(target, num_envs=10)
    batch.reset()
    for actions in tape(batch.spec, 1000):
        batch.step(actions)
    silent = [name for of, name in MECHANICS if of == target and not batch.counters[f"coverage.{name}"]]
    assert silent == []
