"""The server as an agent has it: through the package's own client."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.records import BENCH, PROFILE

pytest.importorskip("mcp")

import anyio
from mcp import Client, StdioServerParameters

from hotloop.core.files import save
from hotloop.core.record.comparison import Contrast, Group, Statistical
from hotloop.mcp import guide
from hotloop.mcp import server as serving
from hotloop.mcp.server import CommandResult, ToolServer

pytestmark = pytest.mark.usefixtures("own_loop")

WALK = """
import os
import gymnasium
import numpy as np


class Slow(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-100, 100, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(3)
    work = 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at, self.steps = np.zeros(2, np.float32), 0
        return self.at.copy(), {}

    def step(self, action):
        self.steps += 1
        for _ in range(self.work):
            self.at += 0
        self.at += self.np_random.integers(-1, 2, 2) * action
        return self.at.copy(), self.reward(), False, self.steps >= 50, {}

    def reward(self):
        return float(abs(self.at).sum())


class Slower(Slow):
    work = 100


class Wrong(Slow):
    def reward(self):
        return super().reward() + (self.steps == 7)


class Endless(Slow):
    def step(self, action):
        with open("begun", "w") as file:
            file.write(str(os.getpid()))
        while True:
            pass
"""

Talk = Callable[[Client], Awaitable[Any]]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "walk.py").write_text(WALK)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def talk(folder: Path, saying: Talk) -> Any:
    """What a session with a server of this process comes to."""

    async def session() -> Any:
        async with Client(ToolServer(folder).mcp) as client:
            return await saying(client)

    return asyncio.run(session())


def call(root: Path, tool: str, /, **asked: Any) -> Any:
    return talk(root, lambda client: client.call_tool(tool, asked))


def test_the_tools_are_typed_and_say_which_of_them_only_read(here: Path) -> None:
    tools = {each.name: each for each in talk(here, lambda client: client.list_tools()).tools}
    reading = {"worlds", "diagnose", "report", "guide"}
    assert set(tools) == reading | {"bench", "profile", "compare", "validate"}
    assert {name for name, each in tools.items() if each.annotations.read_only_hint} == reading
    for each in tools.values():
        assert each.output_schema, each.name
        properties = each.input_schema["properties"].items()
        assert all("description" in known for name, known in properties if name != "context"), each.name
        assert each.input_schema["additionalProperties"] is False
    assert "context" not in tools["bench"].input_schema["properties"]
    assert tools["bench"].input_schema["properties"]["effort"]["enum"] == ["quick", "usual", "thorough"]


@pytest.mark.parametrize(
    ("tool", "asked"),
    [
        ("bench", {"target": "../walk.py:Slow"}),
        ("profile", {"target": "/etc/walk.py:Slow"}),
        ("profile", {"target": "grid/toy", "policy": "tape:/etc/passwd"}),
        ("compare", {"a": "grid/toy", "b": "grid/toy", "b_keys": {"map": "/etc/passwd"}}),
        ("validate", {"candidate": "grid/toy", "against": "/x.py:make"}),
        ("diagnose", {"record": "/etc/passwd"}),
        ("report", {"folder": ".."}),
    ],
)
def test_a_path_outside_the_folder_is_refused_and_nothing_runs(
    here: Path, monkeypatch: pytest.MonkeyPatch, tool: str, asked: dict[str, Any]
) -> None:
    monkeypatch.setattr(serving, "run", None)
    said = call(here, tool, **asked)
    assert said.is_error
    assert f"is outside {here}" in said.content[0].text


@pytest.mark.parametrize(
    ("tool", "asked", "takes"),
    [
        ("bench", {"target": "grid/toy", "agents": 100}, "bench takes no 'agents': it takes target, keys"),
        ("validate", {"candidate": "grid/toy", "reference": "a.py:b"}, "takes no 'reference'"),
        ("guide", {"page": 2}, "guide takes no 'page': it takes nothing"),
    ],
)
def test_an_argument_that_is_not_known_is_refused_and_nothing_runs(
    here: Path, monkeypatch: pytest.MonkeyPatch, tool: str, asked: dict[str, Any], takes: str
) -> None:
    monkeypatch.setattr(serving, "run", None)
    said = call(here, tool, **asked)
    assert said.is_error
    assert takes in said.content[0].text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "bench cannot be called so: target: field required"),
        (
            {"target": "grid/toy", "effort": "huge"},
            "bench cannot be called so: effort: input should be 'quick', 'usual' or 'thorough'",
        ),
        ({"target": "grid/toy", "keys": {"agents": [1]}}, "bench cannot be called so: keys: input should"),
    ],
)
def test_an_argument_of_another_kind_is_refused_in_one_line(
    here: Path, asked: dict[str, Any], said: str
) -> None:
    refused = call(here, "bench", **asked)
    assert refused.is_error
    assert refused.content[0].text.startswith(said)
    assert "\n" not in refused.content[0].text


def test_a_planted_bug_is_named_by_its_step_and_field(here: Path) -> None:
    said = call(
        here, "validate", candidate="walk.py:Wrong", against="walk.py:Slow", amount=20
    ).structured_content
    assert (said["found"], said["verdict"], said["exit_code"]) == ("not equal", "fail", 2)
    assert said["difference"]["step"] == 7
    assert said["difference"]["field"] == "rewards[0]"
    assert (here / said["record"]).is_file()
    assert (here / said["replay"]).is_file()


async def until(seen: Callable[[], bool]) -> None:
    while not seen():
        await anyio.sleep(0.02)


def test_a_call_that_is_cancelled_ends_its_process(here: Path) -> None:
    begun = here / "begun"

    async def saying(client: Client) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "bench", {"target": "walk.py:Endless"})
            await until(lambda: begun.exists() and begun.read_text() != "")
            tasks.cancel_scope.cancel()
        await until(lambda: not Path(f"/proc/{begun.read_text()}").exists())

    talk(here, saying)


def answered(record: Any, *lines: str) -> Callable[..., Awaitable[CommandResult]]:
    """A command that says this record, moving on its way there."""

    async def run(words: list[str], moved: Callable[..., Awaitable[None]], *_: object) -> CommandResult:
        for share in (0.25, 0.5):
            await moved(share, 1.0, words[1])
        return CommandResult(code=record.exit_code, out=record.to_json(), err="\n".join(lines))

    return run


def test_progress_reaches_the_client(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "run", answered(BENCH))
    seen: list[tuple[float, float | None, str | None]] = []

    async def moved(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    said = talk(here, lambda each: each.call_tool("bench", {"target": "grid/toy"}, progress_callback=moved))
    assert seen == [(0.25, 1.0, "grid/toy"), (0.5, 1.0, "grid/toy")]
    assert said.structured_content["speed"]["median"] == 4.0e6


def test_a_profile_is_answered_by_its_rows_and_diagnosed_from_its_file(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "run", answered(PROFILE))
    said = call(here, "profile", target="grid/toy").structured_content
    assert said["rows"][0] == {"path": "wall", "share": 1.0, "mean_ns": 250.0, "calls": 10}
    (here / ".design").mkdir()
    save(here / ".design" / "mine.json", PROFILE.to_json())
    told = call(here, "diagnose").structured_content
    assert told["record"] == ".design/mine.json"
    assert told["bounds"][0]["path"] == "wall/step/observations"
    assert told["bounds"][0]["gone_buys"] == pytest.approx(2.5 / 0.9)
    listed = call(here, "report", target="grid").structured_content["records"]
    assert [each["record"] for each in listed] == [".design/mine.json"]
    assert call(here, "report", target="other").structured_content["records"] == []


def test_distributions_are_answered_by_what_differs_and_by_how_much_else_can(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Contrast(
        what="return", policy="random", difference=2.0, low=1.0, high=3.0, seen_from=1.5, spread=4.0
    )
    group = Group(name="return", policy="random", compared=1, bound=0.07, seen_from=0.07, worst=seen)
    told = Statistical(
        against="slow",
        pairs=64,
        needed=32,
        policies=("random",),
        one_false_in=100,
        margin=1e-3,
        groups=(group,),
    )
    for differences, word in (((seen,), "they differ"), ((), "no difference larger than stated")):
        record = replace(BENCH, kind="statistical", statistical=replace(told, differences=differences))
        monkeypatch.setattr(serving, "run", answered(record))
        said = call(here, "validate", candidate="walk.py:Slow", against="walk.py:Slow", statistical=True)
        assert said.structured_content["found"] == word
        assert said.structured_content["bounds"][0]["no_larger_than"] == 0.07
        assert len(said.structured_content["differences"]) == len(differences)


def test_the_words_of_a_command_are_those_that_were_asked_for(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[list[str]] = []

    async def run(words: list[str], *_: object) -> CommandResult:
        heard.append(words)
        return CommandResult(code=64, out="", err="hotloop: not today\n")

    monkeypatch.setattr(serving, "run", run)
    said = call(here, "compare", a="grid/toy", b="walk.py:Slow", b_keys={"log": "my run.db"}, seconds=2)
    assert "not today" in said.content[0].text
    assert heard == [["compare", "grid/toy", "walk.py:Slow 'log=my run.db'", "--budget=2.0", "--json"]]


def test_the_guide_is_a_tool_and_a_resource(here: Path) -> None:
    assert call(here, "guide").content[0].text == guide()
    read = talk(here, lambda client: client.read_resource("hotloop://guide"))
    assert read.contents[0].text == guide()


@pytest.mark.long
def test_a_session_over_stdio_is_answered_rightly(here: Path) -> None:
    """Profile, planted slow-down, planted bug, a path outside, progress and a cancelled call, for real."""
    moves: list[float] = []

    async def moved(progress: float, total: float | None, message: str | None) -> None:
        moves.append(progress)

    async def session() -> None:
        program = "from hotloop.cli.main import main; main()"
        words = ["-c", program, "mcp"]
        server = StdioServerParameters(command=sys.executable, args=words, cwd=here, env=dict(os.environ))
        async with Client(server) as client:
            slower = {"target": "walk.py:Slower", "steps": 2000}
            said = await client.call_tool("profile", slower, progress_callback=moved)
            told = said.structured_content
            assert told["rows"][1]["path"] == "wall/env.step"
            assert told["functions"][0]["function"].startswith("Slow.step")
            same = {"a": "walk.py:Slow", "b": "walk.py:Slower", "seconds": 2}
            told = (await client.call_tool("compare", same)).structured_content
            assert (told["outcome"], told["exit_code"], told["difference"]) == ("slower", 3, None)
            asked = {"candidate": "walk.py:Wrong", "against": "walk.py:Slow", "amount": "100"}
            told = (await client.call_tool("validate", asked)).structured_content
            assert (told["found"], told["difference"]["step"]) == ("not equal", 7)
            refused = await client.call_tool("bench", {"target": "../walk.py:Slow"})
            assert refused.is_error
            with anyio.move_on_after(30) as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(client.call_tool, "bench", {"target": "walk.py:Endless"})
                    await until((here / "begun").exists)
                    tasks.cancel_scope.cancel()
            assert not scope.cancelled_caught

    asyncio.run(session())
    assert moves == sorted(set(moves))
