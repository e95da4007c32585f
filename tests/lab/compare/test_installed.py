"""One target in two environments of Python: each side runs its own installed version, and is named by it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode

TOY = """
class Toy:
    num_actions = 3

    def reset(self, seed=None):
        self.at = 0
        return self.at, {}

    def step(self, action):
        sum(range(WORK))
        self.at = (self.at + action) % 7
        return self.at, float(action), False, False, {}
"""

FAST = ("--budget", "1", "--json")


def install(folder: Path, version: str, work: int, toy: str = TOY) -> Path:
    """Make a virtual environment that has a version of the package `toyworld`."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "toyworld").mkdir()
    (packages / "toyworld/__init__.py").write_text(f"WORK = {work}\n{toy}")
    info = packages / f"toyworld-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: toyworld\nVersion: {version}\n")
    (info / "top_level.txt").write_text("toyworld\n")
    return folder


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("import toyworld\n\n\ndef make():\n    return toyworld.Toy()\n")
    return install(tmp_path / "old", "1.0", 20_000)


def test_the_versions_are_named_and_the_faster_one_is_found(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = install(tmp_path / "new", "2.0", 20)
    words = ["--a-python", str(old), "--b-python", str(new / "bin/python")]
    assert main(["compare", "mine.py:make", *words, *FAST]) == ExitCode.FINE
    [compared] = json.loads(capsys.readouterr().out)["comparisons"]
    assert compared["outcome"] == "faster"
    assert compared["a"]["name"] == f"mine.py:make in {old} (toyworld 1.0)"
    assert compared["b"]["name"] == f"mine.py:make in {new}/bin/python (toyworld 2.0)"


def test_a_version_that_answers_otherwise_is_a_mismatch(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = install(tmp_path / "new", "2.0", 20, TOY.replace("% 7", "% 8"))
    words = ["--a-python", str(old), "--b-python", str(new), *FAST]
    assert main(["compare", "mine.py:make", *words]) == ExitCode.MISMATCH
    assert "observations differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--a-python", "nowhere"], "nowhere has no bin/python"),
        (["--a-python", "old", "--a-ref", "HEAD"], "leave out B, --a-ref, --b-ref and --build"),
        (["mine.py:make", "--a-python", "old"], "leave out B"),
        (["--a-python", "old"], "No module named 'toyworld'"),
        (["--a-python", "old", "--profile"], "give no --policy and no --profile"),
    ],
)
def test_wrong_input_is_one_line(
    old: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "mine.py:make", *words]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert message in said
    assert len(said.splitlines()) == 1
