"""The rules where no trace goes: extremes, refusals, and what an action leaves behind."""

from typing import Any

import numpy as np
import pytest

import hotloop
from hotloop.core.errors import InputError
from hotloop.core.registry import find
from hotloop.envs.batch import OrderError
from hotloop.worlds.prospector.numbers import F
from hotloop.worlds.prospector.state import Asteroid
from hotloop.worlds.prospector.twin import Prospector

impls = pytest.mark.parametrize("impl", ["native", "reference"])

HOLD, BURN, SELL_ALL_IRON, KIT, DECOY, OVERHAUL, CASH_OUT = 6, 7, 45, 64, 66, 67, 68
MINE_HARD = 30


@pytest.fixture
def game() -> Prospector:
    """A twin at its station, to be put into any state."""
    batch = hotloop.make("prospector", num_envs=1, impl="reference")
    batch.reset(seeds=[3])
    twin = batch._engine.twins[0]
    assert isinstance(twin, Prospector)
    return twin


def step(game: Prospector, action: int) -> None:
    game.chosen = [action]
    for phase in find("prospector").world.phases:
        getattr(game, phase)()


def put_at_rock(game: Prospector) -> Asteroid:
    """At the first node, with its first asteroid selected and as safe as can be."""
    game.ship.node, game.ship.selected = 1, 0
    game.node.hazard = game.node.pirate = F(0)
    rock = game.node.asteroids[0]
    rock.stability, rock.richness = F(1), F(4)
    return rock


def play(actions: list[int], impl: str, **given: Any) -> Any:
    batch = hotloop.make("prospector", num_envs=1, impl=impl, **given)
    batch.reset(seeds=[3])
    for action in actions:
        batch.step(np.array([action], np.int32))
    return batch


@impls
@pytest.mark.parametrize("action", [69, 70, 255, 2**31 - 1, -1])
def test_an_unknown_action_is_invalid_and_holds_twice(impl: str, action: int) -> None:
    burnt = play([BURN], impl)
    batch = play([BURN, action], impl)
    assert batch.infos["invalid"][0]
    assert batch.infos["dt"][0] == 1
    assert batch.observations[0, 0, 5] == pytest.approx(burnt.observations[0, 0, 5] - 0.06, abs=1e-6)
    held = play([BURN, HOLD], impl)
    assert held.observations[0, 0, 5] == pytest.approx(burnt.observations[0, 0, 5] - 0.03, abs=1e-6)
    assert batch.rewards[0, 0] == pytest.approx(held.rewards[0, 0] - 0.01, abs=1e-7)


@impls
def test_the_penalty_is_a_parameter(impl: str) -> None:
    free = play([200], impl, invalid_action_penalty=0.0)
    dear = play([200], impl, invalid_action_penalty=0.5)
    assert free.rewards[0, 0] - dear.rewards[0, 0] == pytest.approx(0.5)


@impls
def test_cashing_out_ends_the_episode_anywhere_and_pays_a_share(impl: str) -> None:
    batch = play([CASH_OUT], impl, autoreset=False)
    assert (bool(batch.terminals[0]), bool(batch.truncations[0])) == (True, False)
    assert batch.infos["survival"][0] == 1
    assert batch.rewards[0, 0] == pytest.approx(-0.001)


@impls
def test_a_step_after_the_end_without_autoreset_is_a_typed_error(impl: str) -> None:
    batch = play([CASH_OUT], impl, autoreset=False)
    with pytest.raises(OrderError, match="reset the finished envs first"):
        batch.step(np.array([HOLD], np.int32))
    batch.reset_many([0], seeds=[2**64 - 1])
    batch.step(np.array([HOLD], np.int32))
    assert not batch.terminals[0]


@impls
def test_negative_and_overlong_seeds_are_refused(impl: str) -> None:
    batch = hotloop.make("prospector", num_envs=1, impl=impl)
    for seed in (-1, 2**64):
        with pytest.raises(InputError, match="out of range"):
            batch.reset(seeds=[seed])


@impls
def test_time_up_truncates_and_does_not_terminate(impl: str) -> None:
    batch = play([HOLD] * 5, impl, time_max=5, autoreset=False)
    assert (bool(batch.terminals[0]), bool(batch.truncations[0])) == (False, True)
    assert batch.infos["time_remaining"][0] == 0


@impls
def test_random_play_never_cashes_out(impl: str) -> None:
    batch = hotloop.make("prospector", num_envs=16, impl=impl)
    batch.reset()
    seen = {int(action) for _ in range(150) for action in batch.choose("random")[:, 0]}
    assert seen == set(range(68))


def test_a_full_hold_is_valid_and_takes_nothing(game: Prospector) -> None:
    rock = put_at_rock(game)
    game.ship.cargo = [F(200), *[F(0)] * 5]
    before = rock.depletion
    step(game, MINE_HARD)
    assert not game.invalid
    assert game.ship.load == 200
    assert rock.depletion == before
    assert game.ship.mined == 1


def test_what_does_not_fit_is_left_and_depletion_counts_what_was_taken(game: Prospector) -> None:
    rock = put_at_rock(game)
    game.ship.cargo = [F(199.5), *[F(0)] * 5]
    step(game, MINE_HARD)
    assert game.ship.load == pytest.approx(200, abs=1e-4)
    assert rock.depletion == pytest.approx(0.005, abs=1e-6)


def test_supplies_stop_at_their_cap(game: Prospector) -> None:
    game.ship.credits, game.ship.decoys = F(1000), 11
    step(game, DECOY)
    assert (game.ship.decoys, game.ship.credits, game.invalid) == (12, 890, False)
    step(game, DECOY)
    assert (game.ship.decoys, game.ship.credits, game.invalid) == (12, 890, True)


def test_what_cannot_be_paid_is_invalid_and_a_price_met_exactly_is_paid(game: Prospector) -> None:
    game.ship.credits = F(149)
    step(game, KIT)
    assert (game.ship.kits, game.invalid) == (3, True)
    game.ship.credits = F(150)
    step(game, KIT)
    assert (game.ship.kits, float(game.ship.credits), float(game.ship.spend)) == (4, 0.0, 150.0)


def test_slippage_is_at_most_seven_tenths(game: Prospector) -> None:
    """A share of one slips by .45 only, so the market is pushed below nothing to see the clamp."""
    market = game.state.market
    game.ship.cargo[0], market.inventory[0], market.price[0] = F(100), F(-99.5), F(100)
    step(game, SELL_ALL_IRON)
    assert float(game.ship.credits) == pytest.approx(100 * 100 * 0.3, rel=1e-6)


def test_price_changes_are_shown_up_to_one(game: Prospector) -> None:
    game.state.market.price[4] = F(1000)
    step(game, HOLD)
    assert game.out["observations"][0, 254] == -1


def test_heat_above_the_limit_hurts_the_hull_and_is_counted(game: Prospector) -> None:
    game.ship.heat = F(120)
    step(game, BURN)
    assert game.ship.heat == 100
    assert game.ship.hull == pytest.approx(100 - 1.25 * 17.5)
    assert game.ship.overheated == 1


def test_both_ends_cost_both_penalties(game: Prospector) -> None:
    put_at_rock(game)
    game.ship.hull, game.ship.fuel = F(0), F(0)
    step(game, HOLD)
    assert game.out["terminals"]
    assert game.out["rewards"][0] < -149
    assert game.out["survival"] == 0


def test_an_empty_tank_at_the_station_strands_nobody(game: Prospector) -> None:
    game.ship.fuel = F(1)
    step(game, BURN)
    assert game.ship.fuel == 0
    assert not game.out["terminals"]


def test_a_fracture_uses_up_the_asteroid_and_makes_the_node_more_dangerous(game: Prospector) -> None:
    rock = put_at_rock(game)
    rock.stability, game.ship.tool, game.ship.heat = F(-40), F(0), F(0)
    step(game, MINE_HARD)
    assert rock.depletion == 1
    assert game.node.hazard == pytest.approx(0.1)
    assert (game.target, game.ship.selected) == (None, 0)
    assert game.out["observations"][0, 18] == 0
    assert game.out["observations"][0, 68 + 10] == 1


def test_a_stabilised_index_stays_so_over_a_journey(game: Prospector) -> None:
    put_at_rock(game)
    step(game, 31)
    assert (game.ship.buffs[0], game.ship.stabilisers, game.dt) == (4, 1, 2)
    edge = game.node.edges[0]
    assert edge is not None
    edge.time, edge.threat = 1, F(0)
    step(game, 0)
    assert game.ship.buffs[0] == 3


def test_overhaul_takes_three_ticks_and_makes_hull_and_tool_whole(game: Prospector) -> None:
    game.ship.credits, game.ship.hull, game.ship.tool = F(280), F(10), F(10)
    step(game, OVERHAUL)
    assert (game.dt, float(game.ship.hull), float(game.ship.tool)) == (3, 100.0, 100.0)
    assert float(game.out["net_profit"]) == -280.0
