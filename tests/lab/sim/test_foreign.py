"""Sim of somebody else's environments, and episodes a second of every target that has them."""

from pathlib import Path

import pytest

from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs import tapes
from hotloop.lab.bench import bench
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.sim import games
from hotloop.lab.sim.sim import SimSettings

EXAMPLES = Path(__file__).parents[3] / "examples"


def played(name: str, episodes: int = 6, *, player: str = "random", steps: int = 0, **keys: object) -> Record:
    asked = SimSettings(player=player, episodes=episodes, steps=steps)
    return games.play(Target(name, keys), asked)[0]


def test_a_masked_game_is_played_by_a_policy_that_asks_for_the_mask() -> None:
    record = played(f"{EXAMPLES}/cards.py:make", 20, player=f"{EXAMPLES}/cards.py:Highest")
    assert record.method.rounds == 20
    assert set(record.values["return_per_agent"]) == {1.0}
    assert sum(record.values["episode_length"]) == record.work.env_steps
    assert record.values["episodes_per_s"][0] > 0


@pytest.mark.parametrize("envs", [{}, {"num_envs": 3}])
def test_episodes_are_as_long_as_they_are_and_returns_add_up(envs: dict[str, int]) -> None:
    record = played("support.theirs:make", player="support.theirs:policy" if not envs else "random", **envs)
    assert set(record.values["episode_length"]) == {10.0}
    if not envs:
        assert set(record.values["return_per_agent"]) == {sum(age % 4 for age in range(10))}


def test_a_game_of_turns_has_the_returns_of_both_players() -> None:
    record = played("pettingzoo:classic.tictactoe_v3", 10)
    first, second = (record.values[f"outcome.return of player_{each}"] for each in (1, 2))
    assert all(one == -other for one, other in zip(first, second, strict=True))
    assert {1.0, -1.0} & set(first)


def test_an_endless_one_is_cut_off_and_that_is_said() -> None:
    record = played("support.theirs:make", 3, steps=4)
    assert set(record.values["episode_length"]) == {4.0}
    assert "3 of 3 episodes were cut off after 4 steps" in [each.text for each in record.notices]


def test_what_was_played_can_be_kept_and_played_again(tmp_path: Path) -> None:
    asked = SimSettings(player="random", episodes=3)
    record, kept = games.play(Target("support.masked:make"), asked, keep=True)
    tapes.write_played(tmp_path / "run.tape", *kept)
    again = played("support.masked:make", 3, player=f"tape:{tmp_path / 'run.tape'}")
    assert again.values["return_per_agent"] == record.values["return_per_agent"]


@pytest.mark.parametrize("name", ["support.theirs:make", "grid/toy"])
def test_a_bench_says_episodes_a_second(name: str) -> None:
    keys = {"max_steps": 10, "agents": 1} if name == "grid/toy" else {}
    record = bench(Target(name, keys), Rounds(count=6, iterations=100, warmup=20, box_iterations=False))
    steps, episodes = (record.metrics[f"{what}_per_s"].median for what in ("env_steps", "episodes"))
    assert steps / episodes == pytest.approx(record.work.env_steps / record.work.resets)
