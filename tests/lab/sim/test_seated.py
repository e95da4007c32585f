"""Two seats at any game: who is to move, who won, what is counted, and what every command makes of it."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.pages import ROOT
from support.profiles import profile

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode, InputError, TheirError
from hotloop.core.record import Record, read
from hotloop.core.settings import Target
from hotloop.envs.callables import called_by
from hotloop.lab.measure.target import check_player, open_subject
from hotloop.lab.sim.games import counted_games, play, round_robin
from hotloop.lab.sim.seated import GameOver, Seated, as_game
from hotloop.lab.sim.sim import SimSettings, open_game, sim
from hotloop.report import markdown
from hotloop.report.kinds.profile import page

RACE, TICTACTOE = "support.seats:Race", "pettingzoo:classic.tictactoe_v3"


def race(hero: str = "one", villain: str = "two", **keys: Any) -> Target:
    return Target(RACE, {"hero": f"support.seats:{hero}", "villain": f"support.seats:{villain}", **keys})


def games_of(target: Target, steps: int = 40) -> list[GameOver]:
    with closing(open_subject(target, profile=False)) as table:
        assert isinstance(table, Seated)
        table.reset()
        table.keep_games()
        for _ in range(steps):
            table.step(None)
        return table.games or []


@pytest.mark.parametrize(
    ("keys", "won"),
    [
        ({}, 0.0),  # 1 + 2 + 1 + 2: the villain reaches 6
        ({"goal": 4}, 1.0),
        ({"goal": 4, "labels": "white-black"}, 1.0),
        ({"goal": 4, "labels": "white-black", "rest": True}, 1.0),
        ({"labels": "white-black", "rest": True}, 0.0),
        ({"goal": 4, "winner": "reward"}, 1.0),
        ({"goal": 4, "winner": "loss"}, 0.0),
        ({"winner": "reward"}, 0.0),
        ({"winner": "loss"}, 1.0),
        ({"draw": True}, 0.5),
    ],
)
def test_the_winner_is_the_infos_or_by_the_sign_of_the_last_reward(keys: dict[str, Any], won: float) -> None:
    games = games_of(race(**keys))
    assert len(games) > 5
    assert {game.won for game in games} == {won}
    assert {game.length for game in games} == {3 if keys.get("goal") == 4 else 4}
    assert all(game.began for game in games)


def test_a_dead_pass_of_pettingzoo_is_a_step_and_no_decision() -> None:
    games = games_of(Target(TICTACTOE, {"hero": "random", "villain": "random"}), 400)
    assert len(games) > 20
    assert {game.won for game in games} == {0.0, 0.5, 1.0}
    assert all(5 <= game.length <= 9 and game.steps == game.length + 2 for game in games)
    first = [game.won for game in games].count(1.0)
    assert first > [game.won for game in games].count(0.0)  # the first turn is worth much there


@pytest.mark.parametrize("maker", ["spiel_game", "spiel_environment"])
def test_a_game_of_openspiel_has_seats_chance_and_a_winner(maker: str) -> None:
    pytest.importorskip("pyspiel")
    target = Target(f"support.seats:{maker}", {"hero": "random", "villain": "random"})
    games = games_of(target, 200)
    assert {game.won for game in games} == {0.0, 1.0}
    assert all(2 <= game.length <= 3 for game in games)


def test_games_that_began_before_anybody_counted_do_not_count() -> None:
    with closing(open_subject(race(), profile=False)) as table:
        assert isinstance(table, Seated)
        table.reset()
        table.step(None)
        table.keep_games()
        for _ in range(4 + 4):
            table.step(None)
        assert [game.length for game in table.games or ()] == [4]


def test_a_reset_seats_players_that_have_seen_nothing() -> None:
    target = race("Model", "Model", goal=60)
    with closing(open_subject(target, profile=False)) as table:
        twice = []
        for _ in range(2):
            table.reset()
            for _ in range(30):
                table.step(None)
            twice.append(table.observation.tolist())
    assert twice[0] == twice[1]


def test_two_tables_in_one_process_do_not_take_each_others_random_numbers() -> None:
    target = race("Model", "Model", goal=60)
    with (
        closing(open_subject(target, profile=False)) as a,
        closing(open_subject(target, profile=False)) as b,
    ):
        a.reset()
        b.reset()
        for turn in (3, 5, 7, 2):
            for table in (a, b):
                for _ in range(turn):
                    table.step(None)
            assert a.observation.tolist() == b.observation.tolist()


def test_a_game_of_ours_counts_each_envs_share_and_both_players() -> None:
    target = as_game(Target("cards", {"hero": "passive", "villain": "first", "num_games": "12"}))
    assert target.keys["num_envs"] == 12
    with closing(open_subject(target, profile=False)) as table:
        assert isinstance(table, Seated)
        described = table.spec.described
        assert described.params["hero"] == "passive"
        assert described.keys["villain"] == "first"
        table.reset()
        table.keep_games()
        while len(counted_games(table, 12)) < 12:
            table.step(None)
        assert {game.won for game in counted_games(table, 12)} == {0.0}
        assert len({game.env for game in counted_games(table, 12)}) == 12


def test_a_function_plays_a_world_of_ours_in_either_seat() -> None:
    for keys in ({"hero": "support.seats:first_legal", "villain": "first"}, {"hero": "first", "villain": ""}):
        seats = {**keys, "villain": keys["villain"] or "support.seats:first_legal"}
        with closing(
            open_subject(as_game(Target("cards", {**seats, "num_games": "4"})), profile=False)
        ) as table:
            assert isinstance(table, Seated)
            table.reset()
            table.keep_games()
            while len(counted_games(table, 4)) < 4:
                table.step(None)
            lengths = [game.length for game in counted_games(table, 4)]
        assert min(lengths) > 5


def test_a_function_that_raises_at_a_world_of_ours_is_named() -> None:
    target = as_game(Target("cards", {"hero": "support.seats:broken", "num_games": "2"}))
    with closing(open_subject(target, profile=False)) as table:
        table.reset()
        with pytest.raises(TheirError, match=r"the player support.seats:broken raised"):
            table.step(None)


def test_records_of_other_players_are_other_workloads() -> None:
    hashes = set()
    for hero in ("one", "two"):
        with closing(open_subject(race(hero), profile=False)) as table:
            hashes.add(table.spec.described.workload_hash)
    assert len(hashes) == 2


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (Target("gym:CartPole-v1", {"hero": "random"}), "names no seat"),
        (race("nobody"), "nobody"),
        (Target(RACE, {"hero": "simple"}), "has no player 'simple'"),
        (Target(RACE, {"hero": "tape:x.npz"}), "a tape plays both seats"),
        (Target(RACE, {"hero": "random", "labels": "a-b-c"}), "expected the names of the two seats"),
        (Target(RACE, {"hero": "random", "num_envs": 4}), "play one env: leave out num_envs=4"),
        (
            Target(RACE, {"villain": "support.seats:HALF"}),
            "villain=support.seats:HALF: .*can be called",
        ),
        (Target(RACE, {"villain": "support.seats:gone"}), "villain=support.seats:gone: .*'gone'"),
    ],
)
def test_what_cannot_be_seated_is_refused(target: Target, said: str) -> None:
    with pytest.raises(InputError, match=said), closing(open_subject(target, profile=False)) as table:
        table.reset()


def test_a_player_that_raises_is_named_by_its_seat() -> None:
    with closing(open_subject(race(villain="broken"), profile=False)) as table:
        table.reset()
        table.step(None)
        with pytest.raises(TheirError, match=r"villain=support.seats:broken raised.*out of ideas"):
            table.step(None)


def test_a_move_that_a_game_refuses_is_told_with_its_player_and_what_is_legal() -> None:
    duel = f"{ROOT}/tests/zoo/duel.py:make"
    with closing(open_subject(Target(duel, {"hero": "support.seats:far"}), profile=False)) as table:
        table.reset()
        with pytest.raises(TheirError, match=r"hero=support.seats:far chose 99, and its mask allows .*7"):
            table.step(None)
    with closing(open_subject(race(villain="far"), profile=False)) as table:
        table.reset()
        table.step(None)
        with pytest.raises(TheirError, match=r"villain=support.seats:far chose 99$"):
            table.step(None)


@pytest.mark.parametrize(("third", "said"), [(2, "names seat 2: expected 0 or 1"), (-2, "both make at once")])
def test_a_game_that_names_a_third_seat_is_refused(third: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        games_of(race(third=third))


def test_an_object_with_forward_and_select_plays_anew_after_each_reset() -> None:
    for _ in range(2):
        lengths = [game.length for game in games_of(race("WHOLE", goal=8))]
        assert lengths[:2] == [5, 4]  # 1 + 2 + 2 + 2 + 2, then 2 + 2 + 2 + 2
    from support.seats import WHOLE

    assert WHOLE.moves == 0


def test_a_winner_may_be_an_array_without_axes() -> None:
    assert {game.won for game in games_of(race(goal=4, winner="array"))} == {1.0}


def test_games_that_are_too_few_are_refused_by_the_key_that_was_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sim", RACE, "hero=random", "num_games=0"]) == ExitCode.USAGE
    assert "num_games=0 does not fit" in capsys.readouterr().err


def test_players_and_a_policy_exclude_each_other() -> None:
    with (
        closing(open_subject(race(), profile=False)) as table,
        pytest.raises(InputError, match="play already: leave out the policy"),
    ):
        check_player(table, "support.seats:one")


def test_a_file_that_names_a_player_is_asked_about_it() -> None:
    assert list(called_by(race())) == [RACE, "support.seats:one", "support.seats:two"]
    assert list(called_by(Target("cards", {"hero": "run:tiny", "villain": "random"}))) == ["cards"]


def played(target: Target, episodes: int = 24) -> Record:
    return play(target, SimSettings(episodes=episodes))[0]


def test_sim_counts_whole_games_and_nothing_else() -> None:
    record = played(race(goal=4))
    assert record.values["contest.won"] == (1.0,) * 24
    assert record.work.env_steps == 24 * 3
    assert record.method.policy == "support.seats:one against support.seats:two"
    assert record.method.warmup > 0
    assert record.metrics["games_per_s"].ci95 is not None
    parts = [f"contest.split.{name}" for name in ("env.step", "inference/selection", "encoding", "rest")]
    assert all(part in record.values for part in parts)


def test_pettingzoos_observe_is_encoding() -> None:
    record = played(Target(TICTACTOE, {"hero": "random", "villain": "random"}))
    assert record.values["contest.split.encoding"][0] > 0


def test_a_models_forward_and_select_are_apart() -> None:
    record = played(race("Model", "Model"))
    assert record.values["contest.split.inference/forward"][0] > 0
    assert record.values["contest.split.inference/selection"][0] > 0


def test_pieces_of_a_sim_make_one_record() -> None:
    from hotloop.lab.sweep import experiments
    from hotloop.lab.sweep.cells import LocalExecutor

    record = experiments.sim(race(goal=4), SimSettings(episodes=40), LocalExecutor())
    assert record.values["contest.won"] == (1.0,) * 40
    assert record.method.rounds == 40


def test_a_sim_of_ours_counts_the_steps_of_games_that_were_cut_off() -> None:
    game = open_game(Target("cards/mirror", {"villain": "random", "num_envs": 8}), SimSettings(episodes=8))
    record = sim(game)
    seconds = record.values["wall_ns"][0] / 1e9
    counted = record.values["contest.games_per_s"][0] * seconds
    lengths = record.values["episode_length"]
    assert counted == pytest.approx(record.work.env_steps / (sum(lengths) / len(lengths)))
    assert counted > 8  # what goes on until the longest game is over counts, too
    assert record.method.warmup > 0


def test_a_profile_of_games_has_warm_up_interval_configuration_and_all_steps() -> None:
    target = as_game(Target("cards", {"hero": "simple", "villain": "first", "num_games": "20"}))
    record = profile(target, games=20)
    assert len(record.values["contest.won"]) == 20
    assert record.method.warmup > 0
    assert record.metrics["games_per_s"].ci95 is not None
    lengths = record.values["episode_length"]
    mean = sum(lengths) / len(lengths)
    for games, steps in zip(record.values["games_per_s"], record.values["env_steps_per_s"], strict=True):
        assert games * mean == pytest.approx(steps)
    text = markdown.draw_page(page(record))
    assert text.startswith("# Profile: ")
    for line in ("**Hero**: simple", "**Villain**: first", "**Games**: 20", "**Threads**: 1", "games/sec ["):
        assert line in text
    for part in ("env.step", "inference", "of it forward", "of it selection", "encoding", "rest"):
        assert f"| {part} |" in text
    assert "| Component | Avg Time | % of Total |" in text
    whole = sum(ns[0] for name, ns in record.values.items() if name.startswith("contest.split."))
    wall = next(phase.total_ns for phase in record.phases if phase.path == "wall")
    assert whole == pytest.approx(wall, rel=0.01)


def test_games_that_do_not_end_end_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    from hotloop.lab.profile import profile as lab

    monkeypatch.setattr(lab, "MOST_PAIRS", lab.PAIRS)
    monkeypatch.setattr(lab, "STEPS", 2_000)
    monkeypatch.setattr(lab, "WARMUP", 100)
    with pytest.raises(InputError, match=r"no game of support.seats:Race ended in [\d,]+ steps: --steps N"):
        profile(race(goal=10**9), games=5)
    record = profile(race(goal=300), games=50)
    assert not record.partial
    assert 0 < len(record.values["contest.won"]) < 50
    assert any("of 50 games came to their end" in said.text for said in record.notices)


def test_the_page_is_compared_with_the_one_before_and_diagnosed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["profile", "cards", "hero=simple", "villain=first", "num_games=20"]
    fine = (ExitCode.FINE, ExitCode.UNSTABLE)
    assert main(words) in fine
    assert main(words) in fine
    first, second = sorted((tmp_path / ".design").glob("profile-*.json"), key=lambda path: len(path.name))
    assert read(second).comparisons
    assert "## Previous Profile" in second.with_suffix(".md").read_text()
    assert main(["diagnose", str(second)]) == ExitCode.FINE
    assert "inference" in capsys.readouterr().out
    assert main(["compare", str(first), str(second)]) != ExitCode.USAGE
    assert main(["profile", "cards", "hero=simple", "--trace"]) == ExitCode.USAGE
    assert "whole games are looked at" in capsys.readouterr().err


def test_bench_and_compare_take_seats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT / "tests")
    out = ["--output", str(tmp_path), "--json"]
    keys = ["goal=60", "hero=support.seats:Model", "villain=random"]
    words = ["bench", RACE, *keys, "--quick", "--rounds", "3", "--iterations", "60", "--warmup", "60"]
    assert main([*words, *out]) in (ExitCode.FINE, ExitCode.UNSTABLE)
    assert json.loads(capsys.readouterr().out)["method"]["policy"] == "support.seats:Model against random"
    side = " ".join([RACE, *keys])
    main(["compare", side, side, "--budget", "1", *out])
    record = Record.from_json(capsys.readouterr().out)
    assert record.validation is not None
    assert record.validation.mismatches == 0
    other = side.replace("Model", "two")
    assert main(["compare", side, other, "--budget", "1", *out]) == ExitCode.MISMATCH


def test_a_round_robin_seats_every_player_twice_and_rates_them() -> None:
    players = ["support.seats:one", "support.seats:two"]
    record = round_robin(Target(RACE, {"goal": 2, "num_games": "5"}), players)
    assert record.values[f"contest.pair.{players[0]} against {players[1]}"] == (0.0,) * 5
    assert record.values[f"contest.pair.{players[1]} against {players[0]}"] == (1.0,) * 5
    [found] = record.findings
    names = [row[0] for row in found.tables[0].rows]
    assert names == players[::-1]
    best, last = found.tables[0].rows[0], found.tables[0].rows[-1]
    assert best[2] < best[1] < best[3]
    assert best[5] == last[5] == 10
    assert "hero" not in record.target.params


@pytest.mark.parametrize(
    ("target", "players", "said"),
    [
        (Target("grid/toy"), ["a", "b"], "is no game of two seats"),
        (Target("cards"), ["simple"], "expected two or more different players"),
        (Target("cards"), ["simple", "simple"], "expected two or more different players"),
        (Target("cards", {"hero": "simple"}), ["simple", "first"], "leave out hero=simple"),
    ],
)
def test_a_round_robin_that_cannot_be_played_is_refused(
    target: Target, players: list[str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        round_robin(target, players)
