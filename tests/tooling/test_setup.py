"""How ./hotloop and ./check set themselves up, with a stand-in for Python: nothing is really installed."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAULT = 70
INTERRUPTED = 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A copy of the scripts in a tree of their own, and the calls they make."""

    root: Path
    env: dict[str, str]

    def start(self, script: str, *words: str, cwd: Path | None = None, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self.root / script, *words],
            cwd=cwd or self.root,
            env=self.env | env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(
        self, script: str, *words: str, cwd: Path | None = None, **env: str
    ) -> subprocess.CompletedProcess[str]:
        process = self.start(script, *words, cwd=cwd, **env)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def steps(self) -> list[str]:
        """Return what was done since the last call: "venv", "packages", "modules"."""
        log = Path(self.env["FAKE_CALLS"])
        calls = log.read_text().splitlines() if log.exists() else []
        log.write_text("")
        known = {" -m venv ": "venv", " -r ": "packages", " -e ": "modules"}
        return [step for call in calls for mark, step in known.items() if mark in f" {call} "]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "a checkout"
    for name in ("hotloop", "check", "tools/setup.sh", "tools/requirements.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name in (
        "pyproject.toml",
        "constraints.txt",
        "CMakeLists.txt",
        "native/a.h",
        "src/hotloop/worlds/w/w.h",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("one\n")
    tools = tmp_path / "bin"
    tools.mkdir()
    shutil.copy(Path(__file__).with_name("fake_python.sh"), tools / "python3")
    (tools / "python3").chmod(0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin", "FAKE_CALLS": str(tmp_path / "calls")}
    return Checkout(root=root, env=env)


@pytest.fixture
def ready(checkout: Checkout) -> Checkout:
    """A checkout that is set up."""
    assert checkout.run("hotloop").returncode == 0
    checkout.steps()
    return checkout


def test_the_first_call_sets_up_then_runs_the_command_in_the_callers_folder(
    checkout: Checkout, tmp_path: Path
) -> None:
    done = checkout.run("hotloop", "bench", "grid/toy agents=2", cwd=tmp_path)
    assert done.stdout == f"{tmp_path}|bench grid/toy agents=2\n"
    assert done.stderr.splitlines() == [
        "hotloop: making .venv with Python 3.11.0",
        "hotloop: installing packages",
        "hotloop: building the native modules",
    ]
    assert checkout.steps() == ["venv", "packages", "modules"]


def test_a_link_to_the_script_finds_its_checkout(ready: Checkout, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(ready.root / "hotloop")
    done = subprocess.run(
        [link, "x"], env=ready.env, cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{tmp_path}|x\n"


def test_nothing_is_done_or_said_when_nothing_changed(ready: Checkout) -> None:
    (ready.root / "native/a.h").touch()
    (ready.root / "src/hotloop/worlds/w/__pycache__").mkdir()
    (ready.root / "src/hotloop/worlds/w/twin.py").write_text("x = 1\n")
    done = ready.run("hotloop")
    assert (done.returncode, done.stderr, ready.steps()) == (0, "", [])


@pytest.mark.parametrize(
    "name", ["native/a.h", "native/new.cpp", "src/hotloop/worlds/w/w.h", "CMakeLists.txt"]
)
def test_changed_native_source_is_built_again(ready: Checkout, name: str) -> None:
    (ready.root / name).write_text("two\n")
    assert ready.run("hotloop").returncode == 0
    assert ready.steps() == ["modules"]


def test_removed_native_source_is_built_again(ready: Checkout) -> None:
    (ready.root / "native/a.h").unlink()
    assert ready.run("hotloop").returncode == 0
    assert ready.steps() == ["modules"]


def test_a_module_that_became_a_folder_is_installed_again(ready: Checkout) -> None:
    (ready.root / "src/hotloop/lab").mkdir()
    (ready.root / "src/hotloop/lab/__init__.py").write_text("")
    assert ready.run("hotloop").returncode == 0
    assert ready.steps() == ["modules"]


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_changed_requirements_are_installed_again(ready: Checkout, name: str) -> None:
    (ready.root / name).write_text("two\n")
    assert ready.run("hotloop").returncode == 0
    assert ready.steps() == ["packages", "modules"]


def test_a_moved_checkout_gets_a_new_venv(ready: Checkout, tmp_path: Path) -> None:
    moved = Checkout(root=ready.root.rename(tmp_path / "moved"), env=ready.env)
    assert moved.run("hotloop").returncode == 0
    assert moved.steps() == ["venv", "packages", "modules"]


def test_check_installs_the_tools_builds_strictly_and_serves_hotloop_too(checkout: Checkout) -> None:
    checkout.run("check", "fast")
    calls = Path(checkout.env["FAKE_CALLS"]).read_text()
    assert "tools/requirements.py dev" in calls
    assert "HOTLOOP_STRICT=ON" in calls
    assert calls.endswith("tools/check.py fast\n")
    checkout.steps()
    checkout.run("hotloop")
    assert checkout.steps() == []


def test_what_hotloop_set_up_is_not_enough_for_check(ready: Checkout) -> None:
    ready.run("check")
    assert ready.steps() == ["packages", "modules"]


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 64])
def test_the_commands_exit_code_is_passed_on(ready: Checkout, code: int) -> None:
    assert ready.run("hotloop", FAKE_EXIT=str(code)).returncode == code


@pytest.mark.parametrize(
    ("option", "redone"),
    [("-r", ["venv", "packages", "modules"]), ("-e", ["modules"])],
    ids=["packages", "modules"],
)
def test_a_failed_set_up_is_a_fault_that_shows_the_log_and_is_redone(
    checkout: Checkout, option: str, redone: list[str]
) -> None:
    done = checkout.run("hotloop", FAKE_FAIL=option)
    assert (done.returncode, done.stdout) == (FAULT, "")
    assert done.stderr.splitlines()[-2:] == [
        "the reason of the failure",
        f"hotloop: set-up failed; the whole log is in {checkout.root}/build/setup.log",
    ]
    checkout.steps()
    assert checkout.run("hotloop").returncode == 0
    assert checkout.steps() == redone


@pytest.mark.parametrize(("name", "option"), [("native/a.h", "-e"), ("constraints.txt", "-r")])
def test_after_a_failure_the_old_state_is_not_trusted_even_if_the_change_is_undone(
    ready: Checkout, name: str, option: str
) -> None:
    (ready.root / name).write_text("two\n")
    assert ready.run("hotloop", FAKE_FAIL=option).returncode == FAULT
    (ready.root / name).write_text("one\n")
    assert ready.run("hotloop", FAKE_FAIL=option).returncode == FAULT


def test_without_python_one_line_says_what_to_do(checkout: Checkout) -> None:
    done = checkout.run("hotloop", HOTLOOP_PYTHON="no-such-python")
    assert done.returncode == FAULT
    (line,) = done.stderr.splitlines()
    assert "no Python 3.11 or newer" in line
    assert "HOTLOOP_PYTHON" in line


def test_a_broken_checkout_is_a_fault_and_no_verdict(checkout: Checkout) -> None:
    (checkout.root / "tools/setup.sh").unlink()
    assert checkout.run("hotloop").returncode == FAULT


@pytest.fixture
def gate(tmp_path: Path) -> str:
    """Where a build stops until it is let go on."""
    os.mkfifo(tmp_path / "gate.in")
    os.mkfifo(tmp_path / "gate.out")
    return str(tmp_path / "gate")


def wait_for_build(gate: str) -> None:
    assert Path(f"{gate}.in").read_text() == "building\n"


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A test run in the background ignores SIGINT, and so would its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupted_set_up_ends_with_130_and_is_redone(checkout: Checkout, gate: str) -> None:
    process = checkout.start("hotloop", FAKE_GATE=gate)
    wait_for_build(gate)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate()
    assert process.returncode == INTERRUPTED
    checkout.steps()
    assert checkout.run("hotloop").returncode == 0
    assert checkout.steps() == ["modules"]


def test_of_two_at_once_one_sets_up_and_the_other_waits(checkout: Checkout, gate: str) -> None:
    first = checkout.start("hotloop", "first", FAKE_GATE=gate)
    wait_for_build(gate)
    second = checkout.start("hotloop", "second")
    assert second.stderr is not None
    assert second.stderr.readline() == "hotloop: waiting for another set-up to finish\n"
    Path(f"{gate}.out").write_text("go on\n")
    assert first.communicate()[0].endswith("|first\n")
    assert second.communicate()[0].endswith("|second\n")
    assert checkout.steps() == ["venv", "packages", "modules"]
