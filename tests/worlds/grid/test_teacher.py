"""The teacher in examples, chosen by its specification and by native code alike."""

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import hotloop
from hotloop.core.world import Plan
from hotloop.envs import native
from hotloop.envs.batch import Batch
from hotloop.worlds.grid.features import UNUSED, Feature
from hotloop.worlds.grid.teacher import FRAME, MAX_STATIONS, Teacher

NOOP, NORTH, SOUTH, EAST, WEST = range(5)
needs_native = pytest.mark.skipif(native.why_not("grid") is not None, reason="the native module is not built")
impls = pytest.mark.parametrize(
    "impl",
    [pytest.param("native", marks=needs_native), pytest.param("scalar", marks=needs_native), "reference"],
)
ALL_RAW = dict.fromkeys(("carbon", "oxygen", "germanium", "silicon"), 8)


def world(text: str, impl: str, **parameters: object) -> Batch:
    """A small guard: four directions, so that there is one way. `scalar` is native with the plain kernels."""
    given: dict[str, object] = {"agents": text.count("@"), "teams": 0, "directions": 4, "num_envs": 1}
    given |= {"impl": "native", "kernels": "scalar"} if impl == "scalar" else {"impl": impl}
    batch = hotloop.make("grid/guard", map=text + "\n", **{**given, **parameters})
    batch.reset()
    return batch


def show(batch: Batch, agent: int = 0, **held: int) -> None:
    """Write what an agent holds into its observation, in the place of what it does hold."""
    resources = batch.spec.world.plan(batch.spec.parameters)["rules"].resources
    row: NDArray[np.uint8] = batch.observations[0, agent]
    own = (batch.spec.parameters.window // 2) * 17
    tokens = [token for token in row.tolist() if token[0] != UNUSED]
    tokens = [token for token in tokens if token[0] != own or token[1] < Feature.INVENTORY]
    before = tokens.index([own, Feature.GROUP, 0])
    tokens[before:before] = [
        [own, Feature.INVENTORY + 2 * k, held[name]] for k, name in enumerate(resources) if name in held
    ]
    row[...] = UNUSED
    row[: len(tokens)] = tokens


def show_stations(batch: Batch, kind: str, *locations: int) -> None:
    """Write stations that are ready into an agent's observation, after all that is in it."""
    row: NDArray[np.uint8] = batch.observations[0, 0]
    tag = plan_of(batch)["rules"].tag(kind)
    tokens = [token for at in locations for token in ((at, Feature.TAG, tag), (at, Feature.COOLDOWN, 0))]
    used = int((row[:, 0] != UNUSED).sum())
    row[used : used + len(tokens)] = tokens


def asked(batch: Batch) -> list[int]:
    chosen: list[int] = batch.choose("teacher")[0].tolist()
    return chosen


def acts(batch: Batch, steps: int) -> Iterator[list[int]]:
    for _ in range(steps):
        actions = batch.choose("teacher")
        yield actions[0].tolist()
        batch.step(actions)


@impls
@pytest.mark.parametrize(
    ("held", "action"),
    [
        ({"energy": 10, "heart": 1}, WEST),
        ({"energy": 90, "heart": 1, **ALL_RAW}, EAST),
        ({"energy": 90, **ALL_RAW}, NORTH),
        ({"energy": 90, "oxygen": 8, "germanium": 8, "silicon": 8}, SOUTH),
    ],
    ids=["charges when low", "deposits a heart", "assembles what it holds", "fetches what is missing"],
)
def test_it_follows_its_list(impl: str, held: dict[str, int], action: int) -> None:
    batch = world("###A###\n#.....#\n+..@..H\n#.....#\n###c###", impl)
    show(batch, **held)
    assert asked(batch) == [action]


@impls
def test_it_goes_on_charging_until_it_has_twice_what_it_calls_low(impl: str) -> None:
    batch = world("#####\n+.@.H\n#####", impl)
    for energy, action in ((29, WEST), (59, WEST), (60, EAST), (31, EAST), (29, WEST)):
        show(batch, energy=energy, heart=1)
        assert asked(batch) == [action], energy


@impls
def test_it_does_not_walk_without_fuel_but_uses_what_is_beside_it(impl: str) -> None:
    batch = world("######\n#.@..+\n######", impl)
    show(batch, energy=1)
    assert asked(batch) == [NOOP]
    batch = world("######\n#...@+\n######", impl)
    show(batch, energy=1)
    assert asked(batch) == [EAST]


@impls
def test_it_explores_towards_the_nearest_cell_it_has_not_seen(impl: str) -> None:
    batch = world("#" * 20 + "\n#.@" + "." * 16 + "#\n" + "#" * 20, impl, window=5)
    assert asked(batch) == [EAST]


@impls
def test_it_walks_around_walls(impl: str) -> None:
    batch = world("#######\n#.....#\n#.###.#\n#.@#H.#\n#######", impl)
    walked = []
    for _ in range(7):
        show(batch, energy=90, heart=1)
        walked += asked(batch)
        batch.step(np.array([walked[-1:]], np.int32))
    assert walked == [WEST, NORTH, NORTH, EAST, EAST, EAST, EAST]


@impls
def test_it_waits_for_a_station_that_cools_down_and_then_uses_it_again(impl: str) -> None:
    batch = world("####\n#@c#\n####", impl)
    chosen = [actions[0] for actions in acts(batch, 12)]
    assert chosen[:6] == [EAST, NOOP, NOOP, NOOP, NOOP, EAST]


@impls
def test_it_waits_for_a_helper_and_then_makes_it_alone(impl: str) -> None:
    batch = world("####\n#@A#\n####", impl)
    chosen = []
    for _ in range(40):
        show(batch, energy=90, **ALL_RAW)
        chosen += asked(batch)
    assert chosen.index(EAST) == 31
    assert chosen[:31] == [NOOP] * 31


@impls
def test_with_a_helper_beside_it_makes_it_at_once(impl: str) -> None:
    batch = world("####\n#@A#\n#.@#\n####", impl)
    show(batch, energy=90, **ALL_RAW)
    assert asked(batch)[0] == EAST


@impls
def test_it_leaves_a_station_alone_that_refused_it(impl: str) -> None:
    batch = world("#####\n#@H.#\n#####", impl)
    show(batch, energy=90, heart=1)
    assert asked(batch) == [EAST]
    show(batch, energy=90, heart=1)
    assert asked(batch) == [NOOP], "the last action reads as none: it was refused"


@impls
def test_it_takes_a_cell_for_a_wall_when_steps_towards_it_keep_failing(impl: str) -> None:
    batch = world("@.", impl, window=1, rules="toy")
    chosen = [actions[0] for actions in acts(batch, 40)]
    assert {NORTH, SOUTH, WEST} <= set(chosen), "it cannot see the edge of the map, and tries"
    assert chosen[-10:] == [EAST, WEST] * 5 or chosen[-10:] == [WEST, EAST] * 5


@impls
def test_a_frozen_agent_does_nothing(impl: str) -> None:
    batch = world("#####\n+.@.H\n#####", impl)
    row = batch.observations[0, 0]
    own = (row[:, 0] == 0x55) & (row[:, 1] == Feature.FROZEN)
    row[own, 2] = 3
    assert asked(batch) == [NOOP]


@impls
def test_two_that_meet_in_a_corridor_do_not_stand_there_for_ever(impl: str) -> None:
    batch = world("#########\nH.@...@.+\n#########", impl, directions=8)
    for _ in range(60):
        batch.step(batch.choose("teacher"))
    assert batch.counters["coverage.move"] > 20


@impls
def test_it_knows_a_station_on_its_spawn_and_knows_it_again_after_forgetting_it(impl: str) -> None:
    batch = world("#####\n#@..#\n#####", impl)
    batch.step(np.array([[EAST]], np.int32))
    show(batch, energy=90, heart=1)
    nothing_else = batch.observations.copy()
    others = [row * 16 + col for row in (0, 1, 2, 8, 9, 10) for col in range(11)]
    show_stations(batch, "charger", *others[: MAX_STATIONS - 1])
    show_stations(batch, "chest", 0x54)
    assert asked(batch) == [WEST], "it remembers the last 32 stations it met"
    batch.observations[...] = nothing_else
    show_stations(batch, "charger", *others[MAX_STATIONS - 1 :][:MAX_STATIONS])
    assert asked(batch) != [WEST], "it has met 32 others since"
    batch.observations[...] = nothing_else
    show_stations(batch, "chest", 0x54)
    assert asked(batch) == [WEST]


@impls
def test_stations_of_no_use_take_no_place_in_its_memory(impl: str) -> None:
    batch = world("#####\n#@..#\n#####", impl)
    batch.step(np.array([[EAST]], np.int32))
    show(batch, energy=90, heart=1)
    nothing_else = batch.observations.copy()
    show_stations(batch, "chest", 0x54)
    assert asked(batch) == [WEST]
    batch.observations[...] = nothing_else
    show_stations(batch, "beacon", *(row * 16 + col for row in (0, 1, 9, 10) for col in range(11)))
    assert asked(batch) == [WEST], "it has met more beacons than it remembers stations"


def test_what_it_remembers_is_bounded_by_its_frame() -> None:
    batch = hotloop.make(
        "grid/arena", num_envs=1, agents=2, map_size="150x150", density=0.02, impl="reference"
    )
    batch.reset()
    teacher = Teacher(plan_of(batch), {"observations": batch.observations[0]})
    teacher.restart()
    for step in range(160):
        teacher.choose()
        batch.step(np.full((1, 2), 7 if step < 120 else 6, np.int32))
        for mind in teacher.minds:
            assert len(mind.atlas.known) <= FRAME * FRAME
            assert all(mind.atlas.frames(cell) for cell in mind.atlas.known | mind.atlas.blocked)
            assert len(mind.atlas.stations) <= MAX_STATIONS


def plan_of(batch: Batch) -> Plan:
    return batch.spec.world.plan(batch.spec.parameters)


def first_difference(batch: Batch, steps: int) -> str:
    """Play the teacher's choices and compare each with its specification, given the same observations."""
    batch.reset()
    teachers = [Teacher(plan_of(batch), {"observations": row}) for row in batch.observations]
    begun = [True] * len(teachers)
    for step in range(steps):
        for env, teacher in enumerate(teachers):
            if begun[env]:
                teacher.restart()
        chosen = batch.choose("teacher")
        wanted = [list(teacher.choose()) for teacher in teachers]
        if chosen.tolist() != wanted:
            return f"step {step}: {chosen.tolist()} != {wanted}"
        batch.step(chosen)
        begun = batch.truncations.tolist()
    return ""


@needs_native
@pytest.mark.parametrize(
    ("target", "given"),
    [
        ("grid/guard", {"directions": 4, "tokens": 60}),
        ("grid/guard", {"window": 5, "agents": 20}),
        ("grid/arena", {"map_size": "90x100", "window": 15, "agents": 4}),
        ("grid/toy", {"window": 1, "agents": 6, "map_size": "70x80"}),
        ("grid/toy", {"tokens": 4, "agents": 4}),
        ("grid/toy", {"tokens": 1, "agents": 4}),
    ],
)
def test_native_chooses_what_the_specification_chooses_in_any_world(
    target: str, given: dict[str, object]
) -> None:
    batch = hotloop.make(target, num_envs=1, impl="native", **{"max_steps": 150, **given})
    assert first_difference(batch, 200) == ""


@needs_native
@pytest.mark.parametrize("kernels", ["auto", "scalar"])
def test_native_chooses_what_the_specification_chooses_among_more_stations_than_it_remembers(
    kernels: str,
) -> None:
    kinds = "+cogsAHB"
    rows = [[kinds[(5 * r + c) % 8] if r % 3 == c % 3 == 1 else "." for c in range(40)] for r in range(40)]
    for k in range(0, 40, 10):
        rows[k][k] = "@"
    text = "\n".join("".join(row) for row in rows) + "\n"
    given = {"map": text, "agents": 4, "teams": 0, "max_steps": 400, "kernels": kernels}
    batch = hotloop.make("grid/guard", num_envs=1, impl="native", **given)
    assert first_difference(batch, 400) == ""


@needs_native
@pytest.mark.slow
@pytest.mark.parametrize("target", ["grid/guard", "grid/arena"])
def test_native_chooses_what_the_specification_chooses_for_2000_steps(target: str) -> None:
    batch = hotloop.make(target, num_envs=1, impl="native", max_steps=1000)
    assert first_difference(batch, 2000) == ""


@needs_native
@pytest.mark.parametrize("target", ["grid/guard", "grid/arena"])
def test_it_earns_at_least_five_times_what_random_play_earns(target: str) -> None:
    earned = {}
    for player in ("teacher", "random"):
        batch = hotloop.make(target, num_envs=16, impl="native", max_steps=1000, autoreset=False)
        batch.reset()
        for _ in range(1000):
            batch.step(batch.choose(player))
        earned[player] = float(batch.infos["episode_return"].mean())
    assert earned["teacher"] > 5 * earned["random"] > 0
