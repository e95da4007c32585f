"""The scripted players: what they are good at, and that they never stand still."""

import numpy as np
import pytest

import hotloop
from hotloop.core.record import Record
from hotloop.core.registry import find
from hotloop.core.settings import Target
from hotloop.envs import tapes
from hotloop.lab.sim.sim import SimSettings, open_game, sim
from hotloop.stats.summary import mean_interval

PLAYERS = ("greedy", "cautious", "timer")
every_player = pytest.mark.parametrize("player", PLAYERS)


@pytest.fixture(scope="module")
def played() -> dict[str, Record]:
    """Three hundred episodes of everybody."""
    return {player: episodes(player, 300) for player in ("random", *PLAYERS)}


def episodes(player: str, count: int) -> Record:
    return sim(open_game(Target("prospector", {}), SimSettings(player=player, episodes=count)))


def interval(record: Record, outcome: str) -> tuple[float, float]:
    found = mean_interval(record.values[f"outcome.{outcome}"])
    assert found is not None
    return found


@every_player
def test_every_player_earns_more_than_chance(played: dict[str, Record], player: str) -> None:
    assert interval(played[player], "profit")[0] > 100 * interval(played["random"], "profit")[1]


def test_the_cautious_survive_more_often_than_the_greedy_and_chance_does_not(
    played: dict[str, Record],
) -> None:
    survived = {player: np.mean(record.values["outcome.survival"]) for player, record in played.items()}
    assert survived["cautious"] > survived["greedy"] > 0.9
    assert survived["random"] < 0.1


@every_player
def test_what_they_are_known_for_happens(played: dict[str, Record], player: str) -> None:
    happened = played[player].work.coverage
    assert happened["mine"] > happened["travel"] > 0
    assert bool(happened["scan"]) == (player == "cautious")
    assert happened["invalid"] == 0


@every_player
def test_native_and_python_players_choose_the_same_for_whole_games(player: str) -> None:
    """The Python one reads what the native world shows, so games can be long."""
    batch = hotloop.make("prospector", num_envs=6, seed=2, impl="native")
    batch.reset()
    cast = [find("prospector").world.players[player]() for _ in range(6)]
    twins = [twin({}, {"observations": batch.observations[env]}) for env, twin in enumerate(cast)]
    for step in range(1200):
        chosen = batch.choose(player)
        assert [twin.choose()[0] for twin in twins] == chosen[:, 0].tolist(), step
        batch.step(chosen)
        for env in np.flatnonzero(batch.terminals | batch.truncations):
            twins[env].restart()
    assert batch.counters["resets"] > 6 or player == "cautious"


@every_player
def test_nobody_stays_at_the_station(player: str) -> None:
    batch = hotloop.make("prospector", num_envs=32, seed=9)
    batch.reset()
    there = np.zeros(32, int)
    longest = 0
    for _ in range(2000):
        batch.step(batch.choose(player))
        there = np.where(batch.observations[:, 0, 17] == 1, there + 1, 0)
        there[batch.terminals | batch.truncations] = 0
        longest = max(longest, int(there.max()))
    assert longest < 40


@every_player
def test_a_player_that_is_put_anywhere_finds_something_to_do(player: str) -> None:
    """After random play, wherever that led: it neither fails nor repeats one invalid action for ever."""
    batch = hotloop.make("prospector", num_envs=64, seed=4)
    batch.reset()
    for _ in range(60):
        batch.step(batch.choose("random"))
    before = batch.counters["coverage.invalid"]
    for _ in range(300):
        batch.step(batch.choose(player))
    assert batch.counters["coverage.invalid"] - before < 64


def test_a_tape_keeps_how_seeds_follow_each_other(tmp_path: pytest.TempPathFactory) -> None:
    batch = hotloop.make("prospector/short", num_envs=2, seed_step=1000, seed=8)
    batch.reset()
    actions = []
    for _ in range(250):
        actions.append(batch.choose("cautious").copy())
        batch.step(actions[-1])
    path = tmp_path / "a.npz"  # type: ignore[operator]
    tapes.write(path, tapes.record(batch, actions))
    *_, last = tapes.replay(tapes.read(path))
    assert last.counters["resets"] > 2
    assert (last.digest() == batch.digest()).all()
