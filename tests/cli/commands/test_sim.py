import pstats
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hotloop.core.errors import ExitCode
from hotloop.core.record import Record, read, write
from hotloop.envs import tapes
from hotloop.lab.sim import sim as lab

SHORT = ("max_steps=12", "episodes=3")

Command = Callable[..., Any]


def saved() -> list[Path]:
    return sorted(Path("artifacts/throughput").glob("*"))


def test_the_record_is_saved_and_what_came_of_it_is_drawn(hotloop: Command) -> None:
    said = hotloop("sim", "grid/guard", *SHORT)
    assert said.code == ExitCode.FINE
    (path,) = saved()
    assert read(path).kind == "sim"
    assert f"saved {path}" in said.err
    for word in ("random", "12 steps", "per agent", "36 env-steps", "env-steps/s", "move", "never happened"):
        assert word in said.out


def test_six_episodes_have_an_interval(hotloop: Command) -> None:
    said = hotloop("sim", "grid/arena", "episodes=6", "max_steps=150", "--seed", "4")
    line = next(line for line in said.out.splitlines() if line.startswith("return"))
    assert "[" in line
    assert "from" in line


def test_json_prints_the_saved_record_and_nothing_else(hotloop: Command) -> None:
    said = hotloop("sim", "grid/guard", *SHORT, "--json", "--seed", "7")
    record = Record.from_json(said.out)
    assert record == read(saved()[0])
    assert (record.target.params["seed"], record.target.variant["num_envs"]) == (7, 3)


def test_keys_may_wear_the_name_of_the_command(hotloop: Command) -> None:
    said = hotloop("sim", "grid/guard", "sim.player=teacher", "sim.episodes=2", "max_steps=12", "--json")
    assert (said.json["method"]["policy"], said.json["method"]["rounds"]) == ("teacher", 2)


def test_the_module_runs_the_command(tmp_path: Path) -> None:
    words = ("grid/guard", "player=random", "sim.episodes=4", "max_steps=5", "--json")
    done = subprocess.run(
        [sys.executable, "-m", "hotloop.sim", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Record.from_json(done.stdout).method.rounds == 4


def test_a_tape_is_kept_that_can_be_played_again(hotloop: Command) -> None:
    said = hotloop("sim", "grid/guard", *SHORT, "player=teacher", "--record", "tapes/a.npz", "--json")
    tape = tapes.read(Path("tapes/a.npz"))
    assert (tape.actions.shape, tape.num_envs) == ((12, 3, 8), 3)
    *_, last = tapes.replay(tape)
    coverage = {name: count for name, count in said.json["work"]["coverage"].items() if count}
    counters = last.counters
    assert {name: counters[f"coverage.{name}"] for name in coverage} == coverage
    assert "saved tapes/a.npz: 12 steps of 3 envs" in said.err


def test_pictures_of_the_first_episode_are_kept(hotloop: Command) -> None:
    said = hotloop(
        "sim", "grid/guard", *SHORT, "--gif", "a.gif", "--png", "deep/a.png", "--fps", "20", "--json"
    )
    with Image.open("a.gif") as gif:
        assert (gif.n_frames, gif.size, gif.info["duration"]) == (12, (400, 304), 50)
    with Image.open("deep/a.png") as png:
        assert png.size[1] == 304
    assert said.json["target"]["variant"]["num_envs"] == 1
    assert "saved a.gif: 12 frames" in said.err


def test_a_long_episode_is_filmed_from_its_beginning(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotloop.cli.commands.sim.MOST_FRAMES", 5)
    hotloop("sim", "grid/guard", *SHORT, "--gif", "a.gif")
    with Image.open("a.gif") as gif:
        assert gif.n_frames == 5


def test_the_map_is_shown_beside_the_result_and_apart_from_json(hotloop: Command) -> None:
    said = hotloop("sim", "grid/guard", *SHORT, "--show")
    assert "grid/guard  random  episode 1  step 0 of 12" in said.out
    assert "####" in said.out
    as_json = hotloop("sim", "grid/guard", *SHORT, "--show", "--json")
    assert "step 0 of 12" in as_json.err
    assert Record.from_json(as_json.out).target.variant["render_mode"] == "ansi"


def test_an_endless_world_says_where_it_was_cut_off(hotloop: Command) -> None:
    said = hotloop("sim", "grid/toy", "episodes=2", "steps=7")
    assert said.code == ExitCode.FINE
    assert "2 of 2 episodes were cut off after 7 steps" in said.err


def test_ctrl_c_leaves_the_record_the_tape_and_the_film_so_far(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = lab.Episodes.step, iter(range(100))

    def stop(self: Any, actions: Any) -> Any:
        if next(calls) == 20:
            raise KeyboardInterrupt
        return real(self, actions)

    monkeypatch.setattr(lab.Episodes, "step", stop)
    said = hotloop("sim", "grid/guard", *SHORT, "--record", "a.npz", "--gif", "a.gif", "--json")
    assert said.code == ExitCode.INTERRUPTED
    assert (said.json["partial"], said.json["method"]["rounds"]) == (True, 1)
    assert np.shape(tapes.read(Path("a.npz")).actions) == (20, 1, 8)
    assert Path("a.gif").exists()


def test_two_records_compare_by_their_games(hotloop: Command) -> None:
    for name in ("a", "b"):
        said = hotloop("sim", "prospector/short", "episodes=64", "num_envs=4", "--output", f"{name}.json")
        assert said.code == ExitCode.FINE
    record = read(Path("a.json"))
    speeds = record.values[record.method.headline]
    assert (record.method.headline, len(speeds) >= 20) == ("games_per_s", True)
    slow = [speed / 20 for speed in speeds]
    slower = replace(record, values=record.values | {"games_per_s": tuple(slow)})
    write(Path("slow.json"), slower)
    said = hotloop("compare", "a.json", "slow.json")
    assert said.code == ExitCode.REGRESSION
    assert "games/s" in said.out
    assert "ns/game" in said.out
    assert "time for the same games" in said.out
    assert "games are too few" not in hotloop("compare", "a.json", "b.json").out
    few = replace(record, values=record.values | {"games_per_s": speeds[:3]})
    write(Path("few.json"), few)
    assert "3 stretches of games are too few" in hotloop("compare", "a.json", "few.json").out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["grid/gard"], "did you mean grid/guard?"),
        (["player=random"], "hotloop sim grid/guard player=random"),
        (["grid/guard", "player=techer"], "did you mean teacher?"),
        (["grid/guard", "player=nobody"], "grid/guard has random, teacher"),
        (["grid/guard", "episodes=0"], "episodes=0 does not fit: expected int from 1"),
        (["grid/guard", "steps=-1"], "steps=-1 does not fit"),
        (["grid/guard", "epsodes=3"], "unknown key 'epsodes'"),
        (["grid/guard", "episodes=3", "sim.episodes=4"], "given twice"),
        (["grid/guard", "autoreset=0"], "leave out autoreset="),
        (["grid/guard", "--show", "--gif", "a.gif"], "run it twice"),
        (["grid/guard", "render_mode=ansi", "--show"], "leave out render_mode="),
        (["grid/guard", "--fps", "0"], "--fps"),
        (["grid/guard", "--gif", "/dev/null/a.gif"], "/dev/null"),
        (["grid/guard", "--record", "/dev/null/a.npz"], "/dev/null"),
        (["grid/guard", "--output", "/dev/null/x"], "/dev/null/x"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(hotloop: Command, words: list[str], told: str) -> None:
    said = hotloop("sim", *words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert told in said.err
    assert said.err.count("\n") == 1
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("flag", ["--record", "--gif", "--png"])
def test_a_file_that_exists_is_refused_before_anything_is_played(hotloop: Command, flag: str) -> None:
    Path("kept").write_text("precious")
    said = hotloop("sim", "grid/guard", flag, "kept")
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert "kept exists and is never overwritten" in said.err
    assert [path.read_text() for path in Path().iterdir()] == ["precious"]


def test_a_folder_named_as_a_picture_is_refused(hotloop: Command) -> None:
    Path("folder").mkdir()
    assert hotloop("sim", "grid/guard", "--png", "folder").code == ExitCode.USAGE


def test_a_world_without_a_picture_is_told_line_by_line(hotloop: Command) -> None:
    said = hotloop("sim", "prospector/short", "player=greedy", "episodes=2", "--show", "--seed", "3")
    told = [line for line in said.out.splitlines() if line.startswith("tick ")]
    assert said.out.startswith("prospector/short  greedy")
    assert len(told) == read(saved()[0]).work.env_steps
    for word in ("travel ", "select ", "mine hard", "station", "cluster"):
        assert any(word in line for line in told), word
    ends = [line for line in said.out.splitlines() if line.startswith("episode")]
    assert [line.partition(":")[0] for line in ends[:2]] == ["episode 1 is over", "episode 2 is over"]
    assert "profit" in ends[0]
    assert "tick   150" in said.out


def test_a_told_episode_that_is_cut_off_says_so(hotloop: Command) -> None:
    said = hotloop("sim", "prospector", "player=cautious", "episodes=1", "steps=7", "--show")
    assert sum(line.startswith("tick ") for line in said.out.splitlines()) == 6
    assert "episode 1 was cut off: steps 7" in said.out


def test_a_worlds_own_measures_are_printed_with_intervals(hotloop: Command) -> None:
    said = hotloop("sim", "prospector", "player=cautious", "episodes=12")
    for name in ("profit", "length"):
        line = next(line for line in said.out.splitlines() if line.startswith(name))
        assert "[" in line
    assert "survival" in said.out


def test_pictures_of_a_world_without_any_are_refused(hotloop: Command) -> None:
    said = hotloop("sim", "prospector", "episodes=1", "--gif", "a.gif")
    assert said.code == ExitCode.USAGE
    assert "draws no picture" in said.err


FARM = ("sim", "farm/dev", "perception=false", "player=weighted", "steps=30")


def test_a_world_with_a_history_is_played_once_and_tells_its_means(hotloop: Command) -> None:
    said = hotloop(*FARM, "--plot", "run.png", "--plot", "run.svg", "--perf-profile")
    assert said.code == ExitCode.FINE
    record = read(next(path for path in saved() if path.suffix == ".json"))
    assert record.method.rounds == 1
    by_type = [record.values[f"mean.population.{name}"][0] for name in ("system", "independent", "control")]
    assert record.values["mean.population.all"][0] == pytest.approx(sum(by_type))
    assert record.work.agent_steps / 30 == pytest.approx(record.values["mean.population.all"][0], abs=1.0)
    for word in ("mean population", "mean resources", "births", "starved", "killed", "ended by", "steps: 1"):
        assert word in said.out
    with Image.open("run.png") as image:
        assert image.size[0] == 1800
    assert Path("run.svg").read_text().count("<polyline") > 5
    (profile,) = [path for path in saved() if path.suffix == ".pstats"]
    stats: Any = pstats.Stats(str(profile))
    assert stats.total_calls > 100
    assert "function calls" in said.err


def test_who_dies_out_is_the_reason_of_the_end(hotloop: Command) -> None:
    said = hotloop(*FARM, "nodes=0", "consumption=5", "--json")
    record = Record.from_json(said.out)
    assert record.values["ended.nobody is left"] == (1.0,)
    assert record.values["episode_length"][0] < 30


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((*FARM, "--plot", "run.txt"), ".png or .svg"),
        (("sim", "grid/toy", "max_steps=3", "--plot", "run.svg"), "nothing to plot"),
    ],
)
def test_what_cannot_be_plotted_is_refused(hotloop: Command, words: tuple[str, ...], why: str) -> None:
    said = hotloop(*words)
    assert said.code == ExitCode.USAGE
    assert why in said.err
