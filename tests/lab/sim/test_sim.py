from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.grids import spoil_walls

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.envs.tapes import Episode
from hotloop.lab.sim.sim import Moment, SimSettings, SimState, Watch, envs_for, open_game, sim


def played(target: str = "grid/guard", watches: tuple[Watch, ...] = (), **given: Any) -> Record:
    asked = {key: given.pop(key) for key in ("player", "episodes", "steps") if key in given}
    return sim(open_game(Target(target, given), SimSettings(**asked)), watches=watches)


def test_every_episode_is_played_to_its_end_and_kept() -> None:
    record = played(episodes=7, num_envs=3, max_steps=20)
    assert (record.kind, record.method.rounds, record.method.policy) == ("sim", 7, "random")
    assert record.values["episode_length"] == (20.0,) * 7
    assert len(record.values["return_per_agent"]) == 7
    # Two envs wait while the first plays its third.
    assert record.work.env_steps == 3 * 60
    assert record.work.decisions == record.work.agent_steps == 8 * 180
    assert record.exit_code == ExitCode.FINE


def test_the_same_seed_plays_the_same_game_whatever_runs_it() -> None:
    games = [played(episodes=6, max_steps=150, seed=3, impl=impl) for impl in ("native", "reference")]
    assert games[0].values["return_per_agent"] == games[1].values["return_per_agent"]
    assert games[0].work.coverage.items() >= games[1].work.coverage.items()
    other = played(episodes=6, max_steps=150, seed=4)
    assert other.work.coverage != games[0].work.coverage


def test_the_teacher_earns_more_than_chance() -> None:
    taught, random = (played(player=player, episodes=4) for player in ("teacher", "random"))
    assert min(taught.values["return_per_agent"]) > max(random.values["return_per_agent"])
    assert taught.method.policy == "teacher"


def test_an_endless_world_is_cut_off_and_says_so() -> None:
    record = played("grid/toy", episodes=3, agents=2)
    assert record.values["episode_length"] == (1000.0,) * 3
    (said,) = (notice for notice in record.notices if notice.code == "cut-off")
    assert "3 of 3 episodes were cut off after 1000 steps" in said.text


def test_steps_cut_off_any_world_earlier() -> None:
    record = played("grid/guard", episodes=2, steps=5)
    assert record.values["episode_length"] == (5.0, 5.0)


def test_a_mechanic_the_preset_exists_for_and_that_never_fired_is_named() -> None:
    record = played("grid/guard", episodes=1, steps=5)
    (said,) = (notice for notice in record.notices if notice.code == "mechanic-silent")
    assert "event.spawn" in said.text


def test_each_env_counts_for_its_share_only_so_that_short_episodes_weigh_no_more() -> None:
    def episode(env: int, length: int) -> Episode:
        return Episode(env=env, length=length, return_per_agent=0.0, cut=False)

    found = SimState(
        work=None,  # type: ignore[arg-type]
        finished=[[episode(0, 1), episode(0, 2), episode(0, 3)], [episode(1, 9)]],
        shares=[2, 1],
    )
    assert [(each.env, each.length) for each in found.episodes] == [(0, 1), (1, 9), (0, 2)]
    assert found.done
    found.shares = [2, 2]
    assert not found.done


@pytest.mark.parametrize(("episodes", "envs"), [(1, 1), (64, 64), (65, 33), (100, 50), (129, 43)])
def test_the_fewest_turns_are_played_by_the_fewest_envs(episodes: int, envs: int) -> None:
    assert envs_for(episodes) == envs


def test_whoever_watches_sees_the_beginning_and_every_step() -> None:
    seen: list[tuple[bool, int, int]] = []

    def watch(moment: Moment) -> None:
        seen.append((moment.actions is None, int(moment.episodes.ages[0]), len(moment.ended)))

    played("grid/toy", watches=(watch,), episodes=1, steps=3)
    assert seen == [(True, 0, 0), (False, 1, 0), (False, 2, 0), (False, 0, 1)]


def test_progress_is_in_steps_of_a_known_length_and_ends_at_the_end() -> None:
    seen: list[tuple[int, int]] = []
    game = open_game(Target("grid/guard", {"max_steps": 4}), SimSettings(episodes=2, steps=9))
    sim(game, lambda done, total: seen.append((done, total)))
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


def test_ctrl_c_leaves_the_episodes_there_were() -> None:
    def stop(moment: Moment) -> None:
        if moment.batch.counters["batch_calls"] == 25:
            raise KeyboardInterrupt

    record = played(watches=(stop,), episodes=8, num_envs=2, max_steps=10)
    assert (record.partial, record.exit_code) == (True, ExitCode.INTERRUPTED)
    assert len(record.values["episode_length"]) == 4
    assert "after 4 of 8" in next(notice.text for notice in record.notices if notice.code == "partial")


def test_ctrl_c_before_the_first_step_leaves_a_record_without_episodes() -> None:
    def stop(moment: Moment) -> None:
        raise KeyboardInterrupt

    record = played(watches=(stop,), episodes=2)
    assert (record.partial, record.method.rounds, record.work.env_steps) == (True, 0, 0)
    assert Record.from_json(record.to_json()) == record


def test_the_return_is_what_agents_were_given_on_average() -> None:
    sums: list[float] = []

    def watch(moment: Moment) -> None:
        sums.append(float(np.mean(moment.batch.rewards)))

    record = played(watches=(watch,), player="teacher", episodes=1, max_steps=400)
    assert record.values["return_per_agent"][0] == pytest.approx(sum(sums[1:]), rel=1e-5)
    assert sum(sums) > 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"player": "techer"}, "did you mean teacher"),
        ({"autoreset": False}, "leave out autoreset="),
        ({"agnts": 2}, "did you mean agents"),
    ],
)
def test_what_cannot_be_played_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        played(**given)


def test_what_episodes_came_to_by_the_worlds_own_measures_is_kept() -> None:
    profits: list[float] = []

    def watch(moment: Moment) -> None:
        profits.extend(float(moment.batch.infos["net_profit"][episode.env]) for episode in moment.ended)

    record = played("prospector/short", watches=(watch,), player="greedy", episodes=5, num_envs=1)
    assert record.values["outcome.profit"] == tuple(profits)
    assert set(record.values["outcome.survival"]) <= {0.0, 1.0}
    assert record.metrics["outcome.profit"].mean == pytest.approx(np.mean(profits))


def test_a_cut_episode_came_to_what_it_had_come_to() -> None:
    record = played("prospector", player="greedy", episodes=2, steps=200)
    assert min(record.values["outcome.profit"]) > 0


def test_a_mismatch_of_the_shadow_is_a_mismatch_of_the_game(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def damage(moment: Moment) -> None:
        if moment.actions is None:
            spoil_walls(moment.batch, 1)

    record = played("grid/toy", (damage,), shadow=True, agents=4, episodes=2, steps=5, impl="native")
    assert record.exit_code == ExitCode.MISMATCH
    assert record.validation is not None
    assert record.validation.mismatches == 5 * 4
    assert record.validation.timing_ratio is not None
    assert "mismatch" in [each.code for each in record.notices]
