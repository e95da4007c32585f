"""Every kind of bad target through what trains on it, delays it, or measures it among others.

The commands that measure one target are in test_targets.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copy
from typing import Any

import pytest
from support.apart import Command, Said
from support.hostile_env import ENDS, HANGS, STANDS, UNTIDY
from support.records import PROFILE

from hotloop.core.errors import ExitCode
from hotloop.core.process import worker
from hotloop.core.record import Record, write
from hotloop.core.record.profile import Slow
from hotloop.lab.sweep import cells

pytest.importorskip("gymnasium")
pytest.importorskip("torch")

HOSTILE = f"{Path(__file__).parents[1] / 'support' / 'hostile_env.py'}"
TARGET, TAUGHT = f"{HOSTILE}:make", f"{HOSTILE}:taught"

AT = 40
"""The step at which it happens: before the first episode ends."""

PATIENCE = ("--step-timeout", "3")

VERDICTS = (ExitCode.FINE, ExitCode.UNSTABLE, ExitCode.CANNOT_TELL)

WHERE = ("make", "reset", "close")
THERE = ("exit_2", "sys_exit", "base_exception", "segfault", "sleeps", "sigkill")

PARTS = 6
"""Of the kinds, for commands that take many targets at once."""

UNSEEN = {("train", "ignores_sigint")}
"""What was changed back before anybody looked: a training gives Ctrl-C back as it was."""

UNWRITTEN = {("train", "closes_everything")}
"""What cannot stand: the logs of a training are open while it runs."""

CLOSED = ("closes_everything", "closes_and_reopens")
"""What leaves a process that is told over its stdin and stdout deaf and dumb."""

Keys = dict[str, object]


def train(keys: Keys) -> list[str]:
    """A few updates, of which the one in question is the third."""
    size = ("num_envs=2", "train.num_steps=16", "train.minibatch_size=32", "train.total_timesteps=256")
    small = ("train.hidden=8", "train.torch_threads=1", "train.tensorboard=false", "run=a")
    return ["train", TAUGHT, *size, *small, *spelled(keys)]


def statistical(keys: Keys) -> list[str]:
    return ["validate", TAUGHT, "32", *spelled(keys), "--statistical", "--against", TAUGHT]


def causal(keys: Keys) -> list[str]:
    """Of a profile that says it was of the target."""
    slow = Slow(relative_error=0.01, calls=1, target=TARGET, given=keys, policy="random")
    target = replace(PROFILE.target, name=TARGET, world=None)
    write(Path("profile.json"), replace(PROFILE, target=target, slow=slow))
    return ["diagnose", "profile.json", "--causal", "--turns", "1", "--trust", "profile.json"]


COMMANDS: dict[str, Callable[[Keys], list[str]]] = {
    "train": train,
    "statistical": statistical,
    "causal": causal,
}


def spelled(keys: Keys) -> list[str]:
    return [f"{key}={value}" for key, value in keys.items()]


def run(apart: Command, command: str, keys: Keys, *more: str) -> Said:
    return apart(*COMMANDS[command](keys), *more)


def check_ended(said: Said, place: str) -> None:
    assert said.code == ExitCode.USAGE, said.err
    assert place in said.line
    assert "Traceback" not in said.err


def check_stands(command: str, said: Said, how: str) -> None:
    if (command, how) in UNWRITTEN:
        assert said.code == ExitCode.USAGE, said.err
        assert "the target closed a file that is ours" in said.line
        return
    assert said.code in VERDICTS, said.err
    if command == "causal":
        assert said.json["parts"]
        return
    record = Record.from_json(said.out)
    assert not record.partial
    texts = [notice.text for notice in record.notices if notice.code == "untidy"]
    if how in UNTIDY and (command, how) not in UNSEEN:
        assert UNTIDY[how] in texts[0]


@pytest.mark.parametrize(
    ("command", "how"),
    [("train", "exit_2"), ("statistical", "segfault"), ("causal", "exit_0"), ("causal", "sys_exit")],
)
def test_what_ends_a_target_is_one_line_and_its_owners(apart: Command, command: str, how: str) -> None:
    check_ended(run(apart, command, {"how": how, "at": AT}, *PATIENCE), f"in step {AT}")


@pytest.mark.parametrize(
    ("command", "how"), [("train", "talks"), ("statistical", "own_process"), ("causal", "chdir")]
)
def test_what_does_not_end_a_target_is_undone(apart: Command, command: str, how: str) -> None:
    check_stands(command, run(apart, command, {"how": how, "at": AT}, "--json"), how)


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("how", ENDS)
def test_whatever_ends_a_target_is_one_line_and_its_owners(apart: Command, command: str, how: str) -> None:
    check_ended(run(apart, command, {"how": how, "at": AT}, *PATIENCE), f"in step {AT}")


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("how", THERE)
def test_wherever_a_target_ends_it_is_one_line(apart: Command, command: str, where: str, how: str) -> None:
    said = run(apart, command, {"how": how, "at": 1, "where": where}, "--step-timeout", "1")
    if where == "close" and how in ("sys_exit", "base_exception"):
        assert said.code in VERDICTS, said.err
    else:
        check_ended(said, f"in {where}")


@pytest.mark.hostile
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("how", STANDS)
def test_whatever_does_not_end_a_target_is_undone(apart: Command, command: str, how: str) -> None:
    check_stands(command, run(apart, command, {"how": how, "at": AT}, "--json"), how)


def item(keys: Keys) -> str:
    return (
        f'{{target = "{TARGET}", keys = {{{", ".join(f"{k} = {json.dumps(v)}" for k, v in keys.items())}}}}}'
    )


def check_suite(apart: Command, kinds: Sequence[Keys]) -> list[dict[str, Any]]:
    """Run a suite of them; what each came to."""
    Path("hotloop.toml").write_text(f"[suite.zoo]\nitems = [{', '.join(map(item, kinds))}]\n")
    said = apart("bench", "--suite", "zoo", "--rounds", "3", "--iterations", "100", "--warmup", "0", "--json")
    assert "Traceback" not in said.err
    found: list[dict[str, Any]] = said.json["items"]
    assert len(found) == len(kinds)
    assert said.code == max(each["code"] for each in found)
    return found


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_ends_an_item_of_a_suite_ends_it_alone(
    apart: Command, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "STEP_S", 3.0)
    kinds = [*ENDS][part::PARTS]
    told = check_suite(apart, [{"how": how, "at": 60} for how in (*kinds, "fine")])
    assert told[-1]["code"] in VERDICTS
    for how, each in zip(kinds, told, strict=False):
        assert (each["code"], each["record"]) == (ExitCode.USAGE, None), how
        assert "in step 60" in each["refused"] or how == "sigint", how
        assert "\n" not in each["refused"], how


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_does_not_end_an_item_of_a_suite_costs_nothing(apart: Command, part: int) -> None:
    kinds = [*STANDS][part::PARTS]
    for how, each in zip(kinds, check_suite(apart, [{"how": how, "at": 60} for how in kinds]), strict=True):
        assert each["code"] in VERDICTS, (how, each["refused"])
        assert len(each["record"]["values"]["env_steps_per_s"]) == 3, how


BUDGET = """
[budget.{how}]
target = "{target}"
keys = {{how = "{how}", at = 60}}
metric = "env_steps_per_s"
limit = 1
"""


def check_gate(apart: Command, kinds: Sequence[str]) -> tuple[Said, list[str]]:
    """Hold a budget of each; who was measured."""
    Path("hotloop.toml").write_text("".join(BUDGET.format(how=how, target=TARGET) for how in kinds))
    said = apart("gate", "--json")
    assert "Traceback" not in said.err
    return said, [each["label"] for each in said.json]


def check_refused(said: Said, kinds: Sequence[str]) -> None:
    """Every one of them has a line of its own."""
    assert said.code == ExitCode.USAGE, said.err
    told = " ".join(said.err.split())
    for how in kinds:
        assert f"budget.{how}: " in told


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_ends_the_target_of_a_budget_ends_it_alone(apart: Command, part: int) -> None:
    kinds = [how for how in ENDS if how not in HANGS][part::PARTS]
    said, measured = check_gate(apart, [*kinds, "fine"])
    assert measured == ["fine"]
    check_refused(said, kinds)


@pytest.mark.hostile
def test_whatever_hangs_the_target_of_a_budget_ends_it_alone(
    apart: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTLOOP_IN_PROCESS", "1")  # where the limit can be shorter
    monkeypatch.setattr(worker, "ANSWER_S", 10.0)
    said, measured = check_gate(apart, [*HANGS, "fine"])
    assert measured == ["fine"]
    check_refused(said, HANGS)


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_does_not_end_the_target_of_a_budget_is_held(apart: Command, part: int) -> None:
    kinds = [how for how in STANDS if how not in CLOSED][part::PARTS]
    said, measured = check_gate(apart, kinds)
    assert said.code in (*VERDICTS, ExitCode.REGRESSION), said.err
    assert measured == kinds


@pytest.mark.hostile
def test_a_budget_of_a_target_that_closes_all_it_has_is_refused_alone(apart: Command) -> None:
    said, measured = check_gate(apart, [*CLOSED, "fine"])
    assert measured == ["fine"]
    check_refused(said, CLOSED)


BENCH = ("bench", TARGET, "--rounds", "5", "--iterations", "100", "--warmup", "100", "--json")


@pytest.mark.usefixtures("own_loop")
@pytest.mark.parametrize("how", ["segfault"])
def test_an_agent_is_told_what_ended_a_target_and_where_the_rest_is(
    apart: Command, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_told(how, monkeypatch)


@pytest.mark.hostile
@pytest.mark.usefixtures("own_loop")
@pytest.mark.parametrize("how", ENDS)
def test_an_agent_is_told_whatever_ends_a_target(
    apart: Command, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_told(how, monkeypatch)


def check_told(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line, and a record of the rounds there were."""
    pytest.importorskip("mcp")
    from hotloop.core.errors import InputError
    from hotloop.mcp import server as running
    from hotloop.mcp.server import ToolServer

    monkeypatch.setattr(running, "STEP_S", 3.0)
    here = Path.cwd()

    class Caller:
        async def report_progress(self, *_: Any) -> None: ...

    copy(HOSTILE, here)  # a server opens nothing outside its folder
    words = [word.replace(f"{Path(HOSTILE).parent}/", "") for word in BENCH] + [f"how={how}", "at=350"]
    with pytest.raises(InputError) as refusal:
        asyncio.run(ToolServer(here)._run(Caller(), words))  # type: ignore[arg-type]
    said = str(refusal.value)
    assert "\n" not in said
    assert "in step 350" in said
    (kept,) = (here / "artifacts/throughput").glob("*.json")
    record = Record.from_json(kept.read_text())
    assert (record.partial, len(record.values["env_steps_per_s"])) == (True, 1)
    assert record.exit_code == (ExitCode.INTERRUPTED if how == "sigint" else ExitCode.USAGE)
