"""Each action and each cause of its failure, on a twin that is put into any state."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.registry import find
from hotloop.worlds.farm.state import ALIVE, DAMAGE, FREE, KNOWN, SIGNAL, TRAIL, FarmAgent, FoodNode
from hotloop.worlds.farm.twin import Farm

DEFEND, ATTACK, GATHER, SHARE, MOVE, REPRODUCE, PASS, COMMUNICATE = range(8)
EATEN = pytest.approx(0.15, abs=1e-6)


def agent(x: float = 50.0, y: float = 50.0, *, breed: int = 0, resources: float = 5.0) -> FarmAgent:
    return FarmAgent(state=ALIVE, breed=breed, x=x, y=y, to_x=x, to_y=y, resources=resources, health=100.0)


def farm(*agents: FarmAgent, nodes: tuple[FoodNode, ...] = (), **given: object) -> Farm:
    """A world of these agents and nodes, even ground, and four slots."""
    keys = {"agents": 1, "max_agents": 4, "regrowth_chance": 0.0, **given}
    batch = hotloop.make("farm", num_envs=1, impl="reference", **keys)
    batch.reset(seeds=[3])
    twin = batch._engine.twins[0]
    assert isinstance(twin, Farm)
    slots = len(twin.state.agents)
    twin.state.agents = [*agents, *(FarmAgent() for _ in range(slots - len(agents)))]
    twin.state.nodes = list(nodes)
    twin.terrain = dict.fromkeys(twin.terrain, 1.0)
    twin.indexed = list(range(len(agents)))
    return twin


def step(twin: Farm, *actions: int) -> Farm:
    twin.counters = {}
    twin.chosen = [*actions, *[PASS] * (len(twin.state.agents) - len(actions))]
    for phase in find("farm").world.phases:
        getattr(twin, phase)()
    return twin


def test_defence_heals_and_halves_what_comes_while_it_lasts() -> None:
    hurt = agent()
    hurt.health = 50.0
    twin = step(farm(hurt, agent(51.0)), DEFEND, ATTACK)
    assert twin.state.agents[0].health == 51.0 - 3.0
    assert twin.state.agents[0].defending == 2
    step(twin, PASS, PASS)
    step(twin, PASS, PASS)
    step(twin, PASS, ATTACK)
    assert twin.state.agents[0].health == 48.0 - 6.0


def test_an_attack_hurts_the_nearest_other_by_the_attackers_health() -> None:
    weak = agent()
    weak.health = 50.0
    twin = step(farm(weak, agent(69.0), agent(40.0)), ATTACK)
    assert [each.health for each in twin.state.agents[:3]] == [50.0, 100.0, 97.0]
    assert list(twin.state.fields[DAMAGE]) == [twin.cell_at(40, 50)]


def test_an_attack_reaches_twenty_units_and_no_further() -> None:
    assert step(farm(agent(), agent(70.0)), ATTACK).counters["attack"] == 1
    assert step(farm(agent(), agent(70.01)), ATTACK).counters["failed.no_target"] == 1


def test_who_is_killed_is_counted_frees_its_slot_and_does_not_act() -> None:
    victim = agent(51.0)
    victim.health = 1.0
    twin = step(farm(agent(), victim), ATTACK, MOVE)
    assert twin.state.agents[1].state == FREE
    assert (twin.counters["death.killed"], twin.state.killed, "move" in twin.counters) == (1, 1, False)
    assert twin.out["rewards"][1] == pytest.approx(0.5 * -6.0 - 10.0)
    assert twin.out["alive"].tolist() == [True, False, False, False]
    assert not twin.out["observations"][1].any()


def test_gathering_takes_from_the_nearest_node_that_has_anything() -> None:
    nodes = (FoodNode(51.0, 50.0, 0.0), FoodNode(55.0, 50.0, 1.5), FoodNode(60.0, 50.0, 30.0))
    twin = step(farm(agent(), nodes=nodes), GATHER)
    assert [node.amount for node in twin.state.nodes] == [0.0, 0.0, 30.0]
    assert twin.state.agents[0].resources == pytest.approx(5.0 + 1.5 - 0.15)
    step(twin, GATHER)
    assert twin.state.nodes[2].amount == 28.0


def test_where_nothing_can_be_gathered_is_known_as_empty() -> None:
    twin = step(farm(agent(), nodes=(FoodNode(80.01, 50.0, 30.0),)), GATHER)
    assert twin.counters["failed.no_food"] == 1
    assert twin.state.fields[KNOWN] == {twin.cell_at(50, 50): pytest.approx(0.98)}


def test_sharing_gives_two_to_the_poorest_within_thirty() -> None:
    twin = step(farm(agent(resources=7.0), agent(60.0, resources=4.0), agent(79.0, resources=3.0)), SHARE)
    assert [each.resources for each in twin.state.agents[:3]] == [
        pytest.approx(4.85),
        pytest.approx(3.85),
        pytest.approx(4.85),
    ]


def test_sharing_fails_for_the_poor_and_the_lonely() -> None:
    assert step(farm(agent(resources=6.9), agent()), SHARE).counters["failed.too_poor"] == 1
    assert step(farm(agent(resources=7.0), agent(81.0)), SHARE).counters["failed.no_target"] == 1


def test_a_move_lands_when_the_step_is_over_and_leaves_a_track() -> None:
    twin = step(farm(agent()), MOVE)
    moved = twin.state.agents[0]
    assert abs(moved.x - 50) + abs(moved.y - 50) == 8.0
    assert list(twin.state.fields[TRAIL]) == [twin.cell_at(50, 50)]
    twin.terrain = dict.fromkeys(twin.terrain, 2.0)
    before = moved.x + moved.y
    step(twin, MOVE)
    assert abs(moved.x + moved.y - before) == 4.0


def test_the_border_stops_and_who_stands_at_it_is_blocked() -> None:
    twin = farm(agent(0.0, 0.0), width=1, height=1)
    twin.state.agents[0].x = twin.state.agents[0].y = 0.0
    for _ in range(20):
        step(twin, MOVE)
        assert 0 <= twin.state.agents[0].x <= 1
        assert 0 <= twin.state.agents[0].y <= 1
        if "failed.blocked" in twin.counters:
            return
    pytest.fail("nobody was ever blocked")


def test_a_child_costs_its_parent_and_begins_where_it_stands() -> None:
    twin = step(farm(agent(resources=8.0, breed=2), birth_chance=1.0), REPRODUCE)
    parent, child = twin.state.agents[:2]
    assert parent.resources == pytest.approx(8.0 - 3.0 - 0.15)
    assert (child.resources, child.breed, child.generation, child.parent) == (5.0, 2, 1, parent.serial)
    assert (child.x, child.y) == (50.0, 50.0)
    assert twin.out["rewards"][1] == 0
    assert twin.lived == 1


def test_reproduction_fails_for_the_poor_the_unlucky_and_in_a_full_world() -> None:
    assert step(farm(agent(resources=7.9)), REPRODUCE).counters["failed.too_poor"] == 1
    assert step(farm(agent(resources=9.0), birth_chance=0.0), REPRODUCE).counters["failed.unlucky"] == 1
    crowd = farm(*(agent(resources=9.0) for _ in range(4)), birth_chance=1.0)
    assert step(crowd, REPRODUCE).counters["failed.full"] == 1


def test_a_slot_that_was_freed_in_a_step_is_taken_in_the_next() -> None:
    starving = agent(resources=0.0)
    starving.hunger = 9
    twin = farm(starving, agent(resources=9.0), agent(), agent(), birth_chance=1.0)
    step(twin, PASS, REPRODUCE)
    assert (twin.counters["death.starved"], twin.counters["failed.full"]) == (1, 1)
    step(twin, PASS, REPRODUCE)
    assert twin.counters["birth"] == 1
    assert twin.state.agents[0].parent == twin.state.agents[1].serial


def test_ten_steps_with_nothing_are_death_and_the_last_death_ends_the_episode() -> None:
    twin = farm(agent(resources=0.0))
    for _ in range(9):
        step(twin, PASS)
        assert not twin.out["terminals"]
    step(twin, PASS)
    assert twin.out["terminals"]
    assert (twin.out["starved"], twin.out["population"]) == (1, 0)


def test_a_signal_needs_somebody_of_the_same_type_in_hearing() -> None:
    twin = step(farm(agent(), agent(90.0, breed=1), agent(5.0)), COMMUNICATE)
    assert list(twin.state.fields[SIGNAL]) == [twin.cell_at(50, 50)]
    assert step(farm(agent(), agent(60.0, breed=1)), COMMUNICATE).counters["failed.unheard"] == 1


def test_an_unknown_action_is_a_pass_that_is_counted() -> None:
    twin = step(farm(agent()), 99)
    assert twin.counters["failed.unknown"] == 1
    assert twin.out["rewards"][0] == pytest.approx(0.1 - 0.1 * 0.15)


def test_every_weight_of_the_reward_is_read() -> None:
    weights = {"resources": 2.0, "health": 3.0, "alive": 5.0, "action": 7.0}
    given = {f"reward_{name}": value for name, value in weights.items()}
    hurt = agent()
    hurt.health = 50.0
    twin = step(farm(hurt, **given), DEFEND)
    assert twin.out["rewards"][0] == pytest.approx(2.0 * -0.15 + 3.0 * 1 + 5.0 + 7.0, abs=1e-5)


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_a_held_population_stays_and_who_is_born_again_has_a_new_number(impl: str) -> None:
    batch = hotloop.make("farm/steady", num_envs=1, impl=impl, agents=12, strength=100.0, perception=False)
    batch.reset()
    for _ in range(60):
        batch.step(np.full((1, 12), ATTACK, np.int32))
        assert batch.infos["alive"].all()
    assert batch.counters["coverage.rebirth"] > 0
    assert batch.infos["serials"].max() == 11 + batch.counters["coverage.rebirth"]
    assert batch.counters["agent_steps"] == 60 * 12


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**32), player=st.sampled_from(["random", "weighted"]))
def test_nobody_dead_acts_the_cap_holds_and_food_is_kept(seed: int, player: str) -> None:
    batch = hotloop.make(
        "farm/dev",
        num_envs=1,
        perception=False,
        seed=seed,
        max_agents=20,
        birth_chance=1.0,
        regrowth_chance=0.0,
    )
    batch.reset()
    stock = 10 * 30.0
    lived = 0
    for _ in range(150):
        alive = batch.infos["alive"][0].copy()
        lived += int(alive.sum())
        batch.step(batch.choose(player))
        assert batch.infos["population"][0] <= 20
        assert not batch.rewards[0, ~alive].any()
        if batch.terminals[0]:
            break
        assert batch.infos["alive"][0].sum() == batch.infos["population"][0]
        assert not batch.observations[0, ~batch.infos["alive"][0]].any()
        assert batch.infos["stock"][0] <= stock + 1e-3
        stock = batch.infos["stock"][0]
    gathered = batch.counters["coverage.gather"]
    assert 300.0 - float(stock) <= 2.0 * gathered + 1e-2 or batch.terminals[0]
    assert batch.counters["agent_steps"] == lived
    assert batch.counters["coverage.index.stale"] == 0


@pytest.mark.parametrize(
    "wrong",
    [{"agents": 301}, {"agents": -1}, {"width": 0}, {"height": -5}, {"nodes": -1}, {"index": "octree"}],
    ids=str,
)
def test_what_cannot_be_built_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        hotloop.make("farm", num_envs=1, **wrong)
