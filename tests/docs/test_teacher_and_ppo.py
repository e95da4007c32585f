"""The page on a teacher and PPO leads to its answer on a stranger's script, in at most five commands."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.pages import ROOT, blocks

PAGE = ROOT / "docs/teacher-and-ppo.md"

COMMANDS = [command for block in blocks(PAGE) if block.word == "notest" for command in block.commands]

ONE_BY_ONE = "labels = [teacher.act(o) for o in host]"
AT_ONCE = "labels = list((host[:, 2] + 0.3 * host[:, 3] > 0).astype(int))"
"""The same labels, of all envs in one call."""

LOOP = "        for update in range(updates):\n"
NAMED = f'{LOOP}            r.phase("supervised" if update < supervised else "ppo")\n'


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    return Path(shutil.copy(ROOT / "tests/zoo/owner_ppo/ppo.py", tmp_path))


def run(command: str) -> str:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return " ".join(done.stdout.split())


def change(script: Path, old: str, new: str) -> None:
    assert old in script.read_text()
    script.write_text(script.read_text().replace(old, new))


@pytest.mark.slow
def test_the_recipe_says_what_the_teacher_takes_of_the_supervised_phase(script: Path) -> None:
    assert len(COMMANDS) <= 5
    first, diagnose, keep, second, since = COMMANDS
    run(first)
    told = run(diagnose)
    assert re.search(r"\d\. teacher calls: buys at most \d\.\d\dx", told)
    assert re.search(r"in updates 1 to 15 \(\d\d% of the run\): teacher is .* of the time", told)
    run(keep)
    change(script, ONE_BY_ONE, AT_ONCE)
    run(second)
    told = run(since)
    assert ". teacher calls" not in told
    assert re.search(r"predicted (at most )?\d\.\d\dx .*\(teacher calls\)", told)


@pytest.mark.slow
def test_named_phases_have_rows_and_advice_of_their_own(script: Path) -> None:
    change(script, LOOP, NAMED)
    run(COMMANDS[0])
    told = json.loads(run("hotloop diagnose --json"))
    assert [stage["name"] for stage in told["stages"]] == ["supervised", "ppo"]
    supervised, ppo = ({bound["path"] for bound in stage["bounds"]} for stage in told["stages"])
    assert any("teacher" in path for path in supervised)
    assert not any("teacher" in path for path in ppo)
    [teacher] = [each for each in told["candidates"] if each["rule"] == "teacher"]
    assert teacher["said"].startswith("in the phase supervised")
