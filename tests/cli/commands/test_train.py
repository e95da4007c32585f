"""hotloop train from the command line."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.trainings import SMALL, ctrl_c_heard

from hotloop.cli.commands import train as cli_panel
from hotloop.core.errors import ExitCode
from hotloop.core.record import Record, read
from hotloop.train import SPINS
from hotloop.train.windows import SCRIPT

WORDS = [f"{key}={value}" for key, value in SMALL.items()]
SHORT = ("prospector/short", *WORDS, "total_timesteps=256")

Command = Callable[..., Any]


def saved() -> list[Path]:
    return sorted(Path("artifacts/throughput").glob("*.json"))


def test_a_run_leaves_its_folder_and_its_record_and_says_where_the_time_went(hotloop: Command) -> None:
    said = hotloop("train", *SHORT, "run=first")
    assert said.code == ExitCode.FINE
    (path,) = saved()
    assert read(path).kind == "train"
    for word in (
        "256 env-steps",
        "4 updates",
        "env-steps/s",
        "learn",
        "backward",
        "◀ largest",
        "unaccounted",
    ):
        assert word in said.out
    assert said.err.count("epoch ") == 2
    assert "epoch 4, 256 of 256 steps" in said.err
    assert f"saved {path}" in said.err
    assert sorted(each.name for each in Path("train_dir/first").iterdir()) == [
        *(".lock", "checkpoints", "logs", "settings.json"),
    ]
    assert (Path("train_dir/first") / SCRIPT).read_text().count("epoch=") == 2


def test_json_prints_the_saved_record_and_nothing_else(hotloop: Command) -> None:
    said = hotloop("train", *SHORT, "--json", "--output", "mine.json")
    assert Record.from_json(said.out) == read(Path("mine.json"))


def test_the_same_name_again_is_refused_and_resume_goes_on(hotloop: Command) -> None:
    hotloop("train", *SHORT, "run=a")
    again = hotloop("train", *SHORT, "run=a")
    assert again.code == ExitCode.USAGE
    assert "--resume goes on with it" in again.err
    on = hotloop("train", "run=a", "--resume", "train.total_timesteps=384", "--json")
    assert on.code == ExitCode.FINE
    assert on.json["work"]["env_steps"] == 128
    assert on.json["target"]["params"]["train.total_timesteps"] == 384
    assert on.json["target"]["params"]["train.hidden"] == [16]


def test_a_run_with_delays_can_be_made_again_and_leaves_nothing(
    hotloop: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = tmp_path / "blocks"
    blocks.mkdir()
    monkeypatch.setenv("HOTLOOP_CAUSAL", str(blocks))
    for _ in range(2):
        assert hotloop("train", *SHORT, "run=first").code == ExitCode.FINE
    assert len(list(blocks.glob("*.json"))) == 2
    assert saved() == []
    assert not Path("train_dir").exists()
    assert "leave out --resume" in hotloop("train", "run=first", "--resume").err


def test_less_than_a_rollout_shrinks_it_and_says_so(hotloop: Command) -> None:
    words = [word for word in WORDS if not word.startswith("train.minibatch")]
    said = hotloop("train", "prospector/short", *words, "total_timesteps=20", "--json")
    assert said.code == ExitCode.FINE
    assert said.json["work"]["env_steps"] == 32
    assert "total_timesteps=20 is below one rollout, which shrinks to 8 envs x 2 steps" in said.err
    assert "shrunk" in [notice["code"] for notice in said.json["notices"]]


def test_a_run_of_a_single_step_is_a_run(hotloop: Command) -> None:
    said = hotloop("train", "prospector/short", "total_timesteps=1", "train.tensorboard=false", "--json")
    assert said.code == ExitCode.FINE
    assert (said.json["work"]["env_steps"], said.json["work"]["updates"]) == (1, 1)


def test_validation_with_the_policy_in_the_loop_is_summed_up(hotloop: Command) -> None:
    said = hotloop("train", *SHORT, "validate=40")
    assert said.code == ExitCode.FINE
    assert said.err.count("outputs equal to the twin's, to the byte") == 2
    assert "40 outputs of agents equal to the twin's" in said.out


def test_a_difference_is_exit_code_2(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from hotloop.envs.batch import Batch

    step = Batch.step

    def off(self: Batch, actions: Any) -> None:
        step(self, actions)
        if self.spec.impl == "native":
            self.rewards[3] += 1

    monkeypatch.setattr(Batch, "step", off)
    said = hotloop("train", *SHORT, "run=a", "validate=smoke")
    assert said.code == ExitCode.MISMATCH
    assert "DIFFERS" in said.out
    assert Path("train_dir/a/difference.bundle").exists()


def test_every_key_is_listed_with_what_it_is_for(hotloop: Command) -> None:
    said = hotloop("train", "prospector", "--keys")
    assert said.code == ExitCode.FINE
    for key in ("train.total_timesteps", "train.eval.every", "train.profiler.wait_steps", "train.timing"):
        assert key in said.out
    assert not Path("train_dir").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "train needs a TARGET"),
        (["prospetor"], "did you mean prospector"),
        (["gym:Pendulum-v1", "train.algorithm=dqn"], "acts by"),
        (["prospector", "minibatch_size=1000"], "use 512 or 1024"),
        (["prospector", "train.gama=1"], "did you mean train.gamma"),
        (["prospector", "gamma=2"], "gamma=2 does not fit"),
        (["prospector", "run=a/b"], "run=a/b does not fit"),
        (["prospector", "--resume"], "run=NAME"),
        (["prospector", "run=gone", "--resume"], "there is no run gone"),
        (["prospector", "validate=perhaps"], "validate=perhaps does not fit"),
        (["prospector", "validate=true", "impl=reference"], "leave out impl=reference"),
        (["prospector", "train.device=cuda"], "no CUDA device"),
        (["prospector", "teacher=nobody", "supervised_steps=9"], "expected one of greedy"),
        (["prospector", "train.profiler.enabled=1", "total_timesteps=20000"], "needs 3 rollouts"),
        (["prospector", "num_envs=64", "num_envs=32"], "given twice"),
        (["prospector", "--on", "ray"], "--on ray is for ranks after the first: give train.ranks=2"),
        (["prospector", "train.ranks=2", "--on", "rya"], "'rya' names no cluster"),
        (["prospector", "--output", "/dev/null/x"], "/dev/null/x"),
        (["prospector", "--folder", "/dev/null/x"], "/dev/null/x"),
    ],
)
def test_wrong_input_is_one_line_and_leaves_no_run(hotloop: Command, words: list[str], told: str) -> None:
    import torch

    if torch.cuda.is_available() and "cuda" in told.lower():
        pytest.skip("there is a CUDA device here")
    said = hotloop("train", *words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert told in said.err
    assert said.err.count("\n") == 1
    assert not list(Path().glob("train_dir/*"))
    assert saved() == []


def test_another_target_than_the_runs_is_refused(hotloop: Command) -> None:
    hotloop("train", *SHORT, "run=a")
    said = hotloop("train", "grid/guard", "run=a", "--resume")
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert "run a trains on prospector/short, not on grid/guard" in said.err


@pytest.fixture
def heard() -> Iterator[None]:
    with ctrl_c_heard():
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_in_the_middle_saves_a_checkpoint_and_a_partial_record(tmp_path: Path, number: int) -> None:
    code = "import sys; from hotloop.cli.main import main; sys.exit(main())"
    words = [*SHORT[:-1], "total_timesteps=100000000", "run=a", "--json"]
    command = [sys.executable, "-c", code, "train", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("epoch 6"):
                process.send_signal(number)
                break
        out, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INTERRUPTED, err
    record = Record.from_json(out)
    assert record.partial
    (checkpoint,) = (tmp_path / "train_dir/a/checkpoints").glob("*.pt")
    assert int(checkpoint.stem.rpartition("-")[2]) == record.work.env_steps
    assert "Ctrl-C again stops at once" in err


def test_openmp_waits_passively_before_torch_is_imported(process: Command) -> None:
    done = process("train", "--help")
    assert done.returncode == 0
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    code = f"import os, sys; import hotloop.train.trainer; print(*map(os.environ.get, {names}))"
    clean = {name: value for name, value in os.environ.items() if name not in names}
    told = subprocess.run([sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["PASSIVE", SPINS]


class FakeLive:
    def __init__(self) -> None:
        self.drawn: list[Any] = []

    def update(self, view: Any, *, refresh: bool) -> None:
        self.drawn.append(view)


def test_the_panel_shows_how_far_how_fast_what_is_learnt_and_where_the_time_goes(tmp_path: Path) -> None:
    from rich.console import Console
    from support.trainings import small, trained

    _, windows, _ = trained(tmp_path, small(updates=6, train__eval__every=2, train__eval__episodes=2))
    live = FakeLive()
    panel = cli_panel.TrainingPanel(live, "prospector  run=a")
    panel.update(0, 384)
    for window in windows:
        panel._due_ns = 0
        panel.window(window)
    panel._due_ns = 0
    panel.say("stopping")
    panel.update(384, 384)
    console = Console(width=110)
    with console.capture() as captured:
        console.print(live.drawn[-1])
    for word in (
        "run=a",
        "384 of 384",
        "steps/s now",
        "on average",
        "rollout",
        "▁",
        "eval",
        "MiB",
        "stopping",
    ):
        assert word in captured.get()
    with console.capture() as captured:
        console.print(live.drawn[0])
    assert "the first window is under way" in captured.get()


def test_a_panel_that_takes_long_is_drawn_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ms = [0]

    class Slow(FakeLive):
        def update(self, view: Any, *, refresh: bool) -> None:
            now_ms[0] += 50
            super().update(view, refresh=refresh)

    monkeypatch.setattr(cli_panel, "now_ns", lambda: now_ms[0] * 1_000_000)
    live = Slow()
    panel = cli_panel.TrainingPanel(live, "a")
    drawn = []
    for at_ms in (1_000, 1_300, 3_000, 3_600, 3_700):  # 50 ms, so not again for 2.5 s
        now_ms[0] = at_ms
        panel.update(0, 10)
        drawn.append(len(live.drawn))
    assert drawn == [1, 1, 1, 2, 2]


def test_plain_lines_have_a_title_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from support.trainings import small, trained

    _, windows, _ = trained(tmp_path, small(updates=4, train__supervised_steps=1000))
    lines = cli_panel.TrainingLines("the title")
    for window in windows:
        lines.window(window)
    said = capsys.readouterr().err
    assert said.count("the title") == 1
    assert said.count("agreement") == 2
    assert "largest" in said


def test_settings_are_those_of_the_words(hotloop: Command) -> None:
    hotloop("train", *SHORT, "run=a")
    told = json.loads(Path("train_dir/a/settings.json").read_text())
    assert told["target"] == "prospector/short"
    assert told["words"]["train.total_timesteps"] == "256"
