"""What is missing is named with the command that installs it beside this copy of Hotloop."""

import json
import sys
from pathlib import Path

import pytest

from hotloop.core import machine
from hotloop.core.errors import ExitCode, MissingError
from hotloop.core.machine import install_line, need

EDITABLE = {"url": "file:///home/me/my%20code", "dir_info": {"editable": True}}
FOLDER = {"url": "file:///home/me/hotloop", "dir_info": {}}
GIT = {"url": "https://example.com/hotloop.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}}
WHEEL = {"url": "file:///tmp/hotloop-1.whl", "archive_info": {}}


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python of its own, whose pip is the one that a shell finds."""
    (tmp_path / "bin").mkdir()
    for name in ("pip", "python"):
        (tmp_path / "bin" / name).touch(0o755)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def installed(monkeypatch: pytest.MonkeyPatch, by: str, direct: object) -> None:
    files = {"INSTALLER": f"{by}\n", "direct_url.json": json.dumps(direct) if direct else ""}
    monkeypatch.setattr(machine, "read_metadata", files.__getitem__)


@pytest.mark.usefixtures("prefix")
@pytest.mark.parametrize(
    ("by", "direct", "line"),
    [
        ("pip", None, "pip install 'hotloop[envs]'"),
        ("pip", EDITABLE, "pip install -e '/home/me/my code[envs]'"),
        ("pip", FOLDER, "pip install '/home/me/hotloop[envs]'"),
        ("pip", GIT, "pip install 'hotloop[envs] @ git+https://example.com/hotloop.git@abc'"),
        ("pip", WHEEL, "pip install 'hotloop[envs] @ file:///tmp/hotloop-1.whl'"),
        ("uv", None, "uv pip install 'hotloop[envs]'"),
        ("conda", None, "conda install -c conda-forge gymnasium"),
        ("", None, "pip install 'hotloop[envs]'"),
    ],
)
def test_an_extra_is_installed_as_hotloop_was(
    by: str, direct: object, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, by, direct)
    assert install_line("gymnasium") == line


@pytest.mark.parametrize(
    ("receipt", "extra", "package"),
    [
        ("pipx_metadata.json", "pipx install --force 'hotloop[envs]'", "pipx inject hotloop pufferlib"),
        ("uv-receipt.toml", "uv tool install 'hotloop[envs]'", "uv tool install --with pufferlib hotloop"),
    ],
)
def test_a_tool_has_packages_of_its_own(
    receipt: str, extra: str, package: str, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, "uv", None)
    (prefix / receipt).touch()
    assert (install_line("gymnasium"), install_line("pufferlib")) == (extra, package)


@pytest.mark.parametrize(("by", "words"), [("pip", "-m pip install"), ("uv", "--python")])
def test_a_python_that_is_not_the_shells_is_named(
    by: str, words: str, prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, by, None)
    monkeypatch.setenv("PATH", "")
    line = install_line("stable_baselines3")
    assert str(prefix) in line
    assert words in line
    assert line.endswith(" stable-baselines3")


def test_a_missing_package_is_wrong_input_and_no_fault() -> None:
    with pytest.raises(
        MissingError, match=r"no_such_package is not installed: .*install no_such_package"
    ) as raised:
        need("no_such_package")
    assert raised.value.exit_code == ExitCode.USAGE
