"""The page on Stable-Baselines3 leads the owner of a C core to its answer, in at most five commands."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, blocks

from hotloop.cli.main import main
from hotloop.core import project
from hotloop.core.errors import ExitCode

PAGE = ROOT / "docs/sb3.md"
VALIDATE, LADDER, TUNE, GATE, TRAIN = (
    shlex.split(command)[1:] for block in blocks(PAGE) for command in block.commands
)
VERDICTS = (ExitCode.FINE, ExitCode.UNSTABLE, ExitCode.CANNOT_TELL)


def short(words: list[str], total: int) -> list[str]:
    """The same command over a shorter training."""
    kept = re.sub(r" --total \d+", "", shlex.join(words))
    here = [sys.executable if word == "python" else word for word in shlex.split(kept)]
    return [*here, "--total", str(total)]


@pytest.fixture
def core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The owner's folder, with the core built."""
    pytest.importorskip("stable_baselines3")
    for file in (ROOT / "tests/zoo/owner_mining").iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    compiler = ["gcc", "-O2", "-shared", "-fPIC", "core.c", "-o", "libcore.so", "-lm"]
    subprocess.run(compiler, cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.usefixtures("core")
def test_the_batch_is_the_same_game_and_can_be_trained_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*VALIDATE, "500"]) == ExitCode.FINE
    assert re.search(r"mining.py:many +mining.py:native", capsys.readouterr().out)
    small = ("train.num_steps=16", "train.total_timesteps=1024", "num_envs=16")
    assert main([TRAIN[0], TRAIN[1], *small]) in VERDICTS


@pytest.mark.slow
@pytest.mark.usefixtures("core")
def test_the_ladder_has_every_stage_of_the_script_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*LADDER[:3], "--rounds", "1", *short(LADDER[3:], 3072)]) in VERDICTS
    told = capsys.readouterr().out
    rows = {words[0]: words for line in told.splitlines() if len(words := line.split()) > 3}
    assert {"env_only", "rollout", "trainer", "trainer_eval"} <= rows.keys()
    assert rows["trainer_eval"][-1] == "100.0%"


@pytest.mark.slow
@pytest.mark.usefixtures("core")
def test_a_script_without_a_guard_is_told_to_have_one(capsys: pytest.CaptureFixture[str]) -> None:
    bench = ["bench", "--rounds", "1", "--warmup", "0", "--", sys.executable, "train.py", "--workers", "2"]
    assert main(bench) == ExitCode.USAGE
    assert "import it again: put what it does" in capsys.readouterr().err


@pytest.mark.long
def test_the_recipe_ends_with_a_confirmed_winner_and_a_floor_that_the_gate_holds(
    core: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([TUNE[0], "--rounds", "2", "--minutes", "8", "--yes", *short(TUNE[1:], 4096)])
    said = capsys.readouterr()
    assert code in VERDICTS, said.err
    assert re.search(r"env=(native|many) num-envs=\d+: (faster|same|cannot tell), ", said.out)
    if code != ExitCode.CANNOT_TELL:
        [budget] = project.read(core / "hotloop.toml").budgets.values()
        assert budget.metric == "printed:sps"
        assert main(GATE) in (*VERDICTS, ExitCode.REGRESSION)  # the machine is a test's


def test_the_recipe_has_at_most_five_commands() -> None:
    assert len([VALIDATE, LADDER, TUNE, GATE, TRAIN]) <= 5
