"""Ways out of the folder of the server, each through the arguments of a tool."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import asyncio

from mcp import Client

from hotloop.core.errors import InputError
from hotloop.core.files import Confinement, confined
from hotloop.envs import callables
from hotloop.envs.foreign import phases
from hotloop.mcp import server as serving
from hotloop.mcp.server import ToolServer

pytestmark = pytest.mark.usefixtures("own_loop")

EVIL = """
from pathlib import Path
Path(__file__).with_name("ran").write_text("")
def make(**_): return None
def policy(seen): return 0
"""

MINE = """
from os import getcwd, system
from subprocess import run
from functools import partial
from evil_in_path import make as borrowed
import numpy
def make(): return None
zeros, made = numpy.zeros, partial(make)
"""

TARGETS = {
    "an absolute path": "{out}/evil.py:make",
    "a path upward": "../out/evil.py:make",
    "a path down and up": "pkg/../../out/evil.py:make",
    "a home": "~/evil.py:make",
    "a linked file": "linked.py:make",
    "a linked folder": "link/evil.py:make",
    "a linked folder as a module": "link.evil:make",
    "a linked file as a module": "pkg.evil:make",
    "a linked package": "pkg.sub.evil:make",
    "a module on the path of Python": "evil_in_path:make",
    "a module of Python": "os:getcwd",
    "a shell": "os:system",
    "a process": "subprocess:run",
    "a built-in module": "posix:getcwd",
    "an installed module": "numpy:zeros",
    "an installed file": ".venv/lib/site-packages/evil.py:make",
    "an id that imports a module": "gym:evil_in_path:Env-v0",
    "an id with a path": "gym:../../out/Env-v0",
    "a dotted attribute": "mine.py:os.system",
    "a flag": "--output=/tmp/x:y",
    "a variable": "$HOME/evil.py:make",
}

VALUES = {
    "an absolute path": "{out}/x.db",
    "a path upward": "../x.db",
    "a linked file": "linked.db",
    "a path in a list": "['a', '{out}/x.db']",
    "a path in a mapping": "{{'log': '../x.db'}}",
    "a second path": "a.db,{out}/x.db",
    "an address": "file:{out}/x.db",
    "a home": "~root/x.db",
    "a variable": "$OUT/x.db",
    "a network of a linked file": "linked.py:make",
    "a network of an installed file": ".venv/lib/site-packages/evil.py:make",
}

POLICIES = {
    "a tape": "tape:{out}/x.npz",
    "a linked tape": "tape:link/x.npz",
    "a run elsewhere": "run:../../out",
    "a linked run": "run:linked",
    "a checkpoint": "{out}/x.pt",
    "a linked checkpoint": "link/x.pt",
}

CALLS = {
    **{
        f"{tool}, {argument}: {way}": (tool, {**given, argument: name})
        for way, name in TARGETS.items()
        for tool, argument, given in (
            ("bench", "target", {}),
            ("bench", "policy", {"target": "mine.py:make"}),
            ("compare", "b", {"a": "mine.py:make"}),
            ("validate", "against", {"candidate": "mine.py:make"}),
        )
    },
    **{
        f"profile, policy: {way}": ("profile", {"target": "mine.py:make", "policy": name})
        for way, name in POLICIES.items()
    },
    **{
        f"bench, keys: {way}": ("bench", {"target": "mine.py:make", "keys": {"train.network": name}})
        for way, name in VALUES.items()
    },
    **{
        f"profile, functions: {name}": ("profile", {"target": "mine.py:make", "functions": [name]})
        for name in (
            "link.evil.make",
            "pkg.evil.make",
            "evil_in_path.make",
            "os.system",
            "antigravity.geohash",
        )
    },
    "keys: a network by its module": (
        "bench",
        {"target": "farm/dev", "keys": {"train.network": "evil_in_path:make"}},
    ),
    "keys: a teacher of Python": ("bench", {"target": "farm/dev", "keys": {"train.teacher": "os:system"}}),
    "amount: a key": ("validate", {"candidate": "mine.py:make", "amount": "log=x.db"}),
    "against: a flag": ("validate", {"candidate": "mine.py:make", "against": "--replay=x"}),
    "mode: a path": ("validate", {"candidate": "mine.py:make", "mode": "{out}"}),
    "diagnose: a linked record": ("diagnose", {"record": "linked.json"}),
    "diagnose: an earlier one": ("diagnose", {"since": "../out/x.json", "record": "x.json"}),
    "report: a linked folder": ("report", {"folder": "link"}),
    "worlds: a path": ("worlds", {"world": "../out"}),
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with links that lead out of it, beside a folder with code that is not to run."""
    root, out, library = (tmp_path / name for name in ("root", "out", "library"))
    installed = root / ".venv" / "lib" / "site-packages"
    for folder in (installed, root / "pkg", out, library, root / "train_dir"):
        folder.mkdir(parents=True)
    for place in (out / "evil.py", out / "__init__.py", library / "evil_in_path.py", installed / "evil.py"):
        place.write_text(EVIL)
    (root / "mine.py").write_text(MINE)
    (root / "pkg" / "__init__.py").touch()
    for link, to in {
        "link": out,
        "linked.py": out / "evil.py",
        "linked.db": out / "x.db",
        "linked.json": out / "x.json",
        "pkg/evil.py": out / "evil.py",
        "pkg/sub": out,
        "train_dir/linked": out,
    }.items():
        (root / link).symlink_to(to)
    monkeypatch.chdir(root)
    monkeypatch.setenv("OUT", str(out))
    monkeypatch.setenv("HOME", str(out))
    monkeypatch.syspath_prepend(str(library))
    yield root
    ours = [name for name, each in sys.modules.items() if str(tmp_path) in str(getattr(each, "__file__", ""))]
    for name in ours:
        del sys.modules[name]


def filled(given: Any, out: Path) -> Any:
    """Arguments with the folder outside in the place of `{out}`."""
    if isinstance(given, dict):
        return {key: filled(value, out) for key, value in given.items()}
    if isinstance(given, list):
        return [filled(each, out) for each in given]
    return given.format(out=out)


def call(root: Path, tool: str, given: dict[str, Any]) -> Any:
    async def session() -> Any:
        async with Client(ToolServer(root).mcp) as client:
            return await client.call_tool(tool, given)

    return asyncio.run(session())


@pytest.mark.parametrize("way", CALLS)
def test_no_argument_of_a_tool_leads_out_of_the_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    ran: list[Any] = []

    async def run(*words: Any) -> None:
        ran.append(words)

    monkeypatch.setattr(serving, "run", run)
    tool, given = CALLS[way]
    said = call(root, tool, filled(given, root.parent / "out"))
    assert said.is_error, said
    assert "\n" not in said.content[0].text
    assert not ran
    assert not list(root.parent.rglob("ran"))


@pytest.mark.parametrize("name", ["getcwd", "system", "run", "borrowed", "zeros"])
def test_what_code_of_the_folder_only_imported_is_not_called(root: Path, name: str) -> None:
    with confined(Confinement(root)), pytest.raises(InputError, match="write a function of your own"):
        callables.find(f"mine.py:{name}")


@pytest.mark.parametrize("name", ["make", "made"])
def test_what_code_of_the_folder_made_is_called(root: Path, name: str) -> None:
    with confined(Confinement(root)):
        assert callables.find(f"mine.py:{name}")() is None


@pytest.mark.parametrize("name", ["pkg.evil:make", "linked.py:make", "evil_in_path:make"])
def test_a_command_in_a_folder_loads_nothing_from_elsewhere(root: Path, name: str) -> None:
    with confined(Confinement(root)), pytest.raises(InputError, match="outside"):
        callables.find(name)
    assert not list(root.parent.rglob("ran"))


def test_a_function_to_time_is_not_imported_from_elsewhere(root: Path) -> None:
    with confined(Confinement(root)), pytest.raises(InputError, match="outside"):
        phases.find("pkg.evil.make")
    assert not list(root.parent.rglob("ran"))


def test_an_id_is_not_registered_by_a_package_from_elsewhere(root: Path) -> None:
    gymnasium = pytest.importorskip("gymnasium")
    from hotloop.envs.foreign.open import import_registrar

    (root / "evil_in_link").symlink_to(root.parent / "out")
    with confined(Confinement(root)), pytest.raises(InputError, match="outside"):
        import_registrar("evil_in_link/Env-v0", gymnasium)
    assert not list(root.parent.rglob("ran"))


@pytest.mark.parametrize("place", ["artifacts", "artifacts/throughput", ".design", "train_dir/a/logs"])
def test_nothing_is_written_through_a_link(root: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setattr(serving, "run", None)
    (root / "train_dir" / "linked").unlink()
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).symlink_to(root.parent / "out")
    said = call(root, "bench", {"target": "grid/toy"})
    assert said.is_error
    assert f"{place} is outside" in said.content[0].text


def test_linked_records_are_left_out_of_a_report(root: Path) -> None:
    (root / "train_dir" / "linked").unlink()
    (root / ".design").mkdir()
    (root.parent / "out" / "x.json").write_text('{"secret": 1}')
    (root / ".design" / "a.json").symlink_to(root.parent / "out" / "x.json")
    told = call(root, "report", {}).structured_content
    assert told["records"] == []
    assert len(told["left_out"]) == 1
    assert "outside" in told["left_out"][0]
    assert "secret" not in told["left_out"][0]


PACED = """
import time
class Env:
    num_actions, steps = 2, 0
    def reset(self, seed=None): return 0, {}
    def step(self, action):
        self.steps += 1
        if self.steps == %d: open("begun", "w").write("now")
        while self.steps > %d: time.sleep(1)
        time.sleep(1e-3)
        return 0, 0.0, False, False, {}
"""


MEASURED = 3_000
"""Steps of a millisecond or more after which the warm-up, of two seconds, and the first round are over."""


@pytest.mark.parametrize(
    ("number", "stands"),
    [
        (signal.SIGTERM, 10**9),
        (signal.SIGINT, 10**9),
        (signal.SIGHUP, 10**9),
        (signal.SIGTERM, MEASURED),
    ],
)
def test_a_signal_ends_the_server_and_keeps_what_was_measured(
    tmp_path: Path, number: signal.Signals, stands: int
) -> None:
    (tmp_path / "paced.py").write_text(PACED % (MEASURED, stands))
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    waiting = os.open(begun, os.O_RDWR | os.O_NONBLOCK)
    words = [sys.executable, "-c", "from hotloop.cli.main import main; raise SystemExit(main())", "mcp"]
    asked = {"name": "bench", "arguments": {"target": "paced.py:Env", "effort": "quick"}}
    client = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    with subprocess.Popen(words, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        for message in (
            {"id": 1, "method": "initialize", "params": client},
            {"method": "notifications/initialized"},
            {"id": 2, "method": "tools/call", "params": asked},
        ):
            server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            server.stdin.flush()
        assert select.select([waiting], [], [], 60)[0]
        server.send_signal(number)
        assert server.wait(60) == 130
    (record,) = (tmp_path / "artifacts" / "throughput").glob("*.json")
    kept = json.loads(record.read_text())
    assert (kept["partial"], kept["exit_code"]) == (True, 130)
    assert kept["values"]["env_steps_per_s"]
