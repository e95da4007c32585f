"""The page on two-player games leads to its answer on a stranger's game, in at most five commands."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from support.pages import ROOT, blocks

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode

PAGE = list(blocks(ROOT / "docs/two-players.md"))
COMMANDS = [command for block in PAGE if block.language == "bash" for command in block.commands]

SLOW = """        logits = logits.masked_fill(torch.as_tensor(mask) == 0, -1e9)
        return int(torch.distributions.Categorical(logits=logits).sample())
"""
FAST = """        logits = logits.masked_fill(torch.as_tensor(mask) == 0, -1e9)
        return int(torch.multinomial(logits.softmax(-1), 1, True))
"""
"""The same draw from the same random numbers, without the checks of a distribution."""


@pytest.fixture
def game(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of somebody's with the game and the model on its main branch."""
    for name in ("duel.py", "hero.py"):
        shutil.copy(ROOT / "tests/zoo" / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".gitignore").write_text("artifacts\n.design\n__pycache__\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-qb", "main"), ("add", "."), (*who, "commit", "-qm", "one")):
        subprocess.run(["git", *words], check=True)
    return tmp_path


@pytest.mark.slow
def test_the_recipe_says_who_wins_where_the_time_goes_and_how_much_faster(
    game: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(COMMANDS) <= 5
    sim, profile, compare, robin = (
        shlex.split(re.sub(r"num_games=\d+", "num_games=20", command))[1:] for command in COMMANDS
    )
    assert main(sim) == ExitCode.FINE
    told = capsys.readouterr().out
    assert re.search(r"hero won +\d+\.\d% \[\d+\.\d%, \d+\.\d%\] of 20", told)
    assert re.search(r"games/s \[", told)
    assert main(profile) in (ExitCode.FINE, ExitCode.UNSTABLE)
    [page] = (game / ".design").glob("profile-*.md")
    for part in ("env.step", "inference", "of it forward", "of it selection", "encoding"):
        assert f"| {part} |" in page.read_text()
    hero = game / "hero.py"
    assert SLOW in hero.read_text()
    hero.write_text(hero.read_text().replace(SLOW, FAST))
    capsys.readouterr()
    main([*compare, "--budget", "2", "--json"])
    [compared] = json.loads(capsys.readouterr().out)["comparisons"]
    assert compared["difference"] is None
    assert compared["ratio"]["low"] > 0
    assert main(robin) == ExitCode.FINE
    assert "Elo" in capsys.readouterr().out


def test_a_model_that_chooses_otherwise_is_not_equal(game: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed = (game / "hero.py").read_text().replace("torch.manual_seed(0)", "torch.manual_seed(1)")
    (game / "other.py").write_text(changed)
    sides = [f"duel.py:make hero={file}.py:Model villain=random" for file in ("hero", "other")]
    assert main(["compare", *sides, "--budget", "1"]) == ExitCode.MISMATCH
    assert "not equal" in capsys.readouterr().out
