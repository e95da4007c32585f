"""The page on ecologies leads to its answer on a stranger's model, in at most five commands."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from support.pages import ROOT, blocks

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode

PAGE = list(blocks(ROOT / "docs/ecology.md"))

COMMANDS = [command for block in PAGE for command in block.commands if block.language == "bash"]

MEASURED = {ExitCode.FINE, ExitCode.UNSTABLE, ExitCode.CANNOT_TELL}


@pytest.fixture
def ecology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the model and the budgets of the page."""
    shutil.copy(ROOT / "tests/zoo/ecology.py", tmp_path)
    for block in PAGE:
        if block.word.endswith(".toml"):
            (tmp_path / block.word).write_text(block.text.replace("agents = 50 ", "agents = 5 "))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words_of(number: int, agents: str) -> list[str]:
    """Return the words of a command of the page, with fewer agents."""
    return shlex.split(re.sub(r"\bagents=[\d,]+", f"agents={agents}", COMMANDS[number]))[1:]


@pytest.mark.slow
def test_the_recipe_says_which_part_grows_fastest_and_takes_most(
    ecology: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(COMMANDS) <= 5
    assert main([*words_of(1, agents="20,40,80"), "--repeats", "2", "--steps", "40"]) == ExitCode.FINE
    told = " ".join(capsys.readouterr().out.split())
    assert re.search(r"Environment.get_observation takes \d+\.\d% of it at agents=80", told)
    [path] = (ecology / "artifacts/throughput").glob("*scale*.json")
    growths = {each["metric"]: each for each in json.loads(path.read_text())["sweep"]["growths"]}
    assert growths["phase.Environment.get_observation"]["high"] > 1.2


@pytest.mark.slow
def test_the_recipe_lists_functions_and_sweeps_settings(
    ecology: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words_of(0, agents="5"), "--steps", "40"]) in MEASURED
    told = capsys.readouterr().out
    assert "Decision.learn" in told
    assert main([*words_of(2, agents="5"), "--repeats", "1", "--steps", "4"]) == ExitCode.FINE
    told = capsys.readouterr().out
    assert re.search(r"\{instance\}\.db +1000", told)


def test_an_index_that_is_rebuilt_less_often_is_not_equal(
    ecology: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words_of(3, agents="5"), "--budget", "1"]) == ExitCode.MISMATCH
    assert "not equal" in capsys.readouterr().out


@pytest.mark.slow
def test_the_components_of_the_page_are_held_to_their_budgets(
    ecology: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(COMMANDS[4])[1:]) in MEASURED
    assert re.search(r"perception +(met|cannot tell)", capsys.readouterr().out)
