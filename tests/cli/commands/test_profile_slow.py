import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hotloop.cli.commands import profile
from hotloop.cli.commands import profile as module
from hotloop.core.errors import ExitCode
from hotloop.core.record import read

SHORT = ("num_envs=4", "agents=3", "--steps", "160")
STEM = "profile-20250102-0304"

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 8)
    monkeypatch.setattr("hotloop.judge.judge.label", lambda cv: "excellent")
    for each in (module, profile):
        monkeypatch.setattr(each, "utc_now", lambda: datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC))


def names() -> list[str]:
    return sorted(path.name for path in Path(".design").iterdir())


def test_a_profile_shows_single_calls_and_the_slowest(hotloop: Command) -> None:
    said = hotloop("profile", "grid/toy", *SHORT, "--slow")
    assert said.code == ExitCode.FINE
    assert "µs of single calls, 40 calls of 4 envs" in said.out
    assert "Slowest steps" in said.out
    page = Path(f".design/{STEM}.md").read_text()
    assert "## Single Calls" in page
    assert "## Slowest Steps" in page


@pytest.mark.parametrize("target", ["grid/toy", "support.stalling:make"])
def test_a_trace_is_written_beside_the_profile(hotloop: Command, target: str) -> None:
    words = SHORT if target == "grid/toy" else ("--steps", "160")
    said = hotloop("profile", target, *words, "--trace", "--json")
    assert said.code == ExitCode.FINE
    assert {f"{STEM}.trace.json", f"{STEM}.speedscope.json"} <= set(names())
    trace = json.loads(Path(f".design/{STEM}.trace.json").read_text())
    assert trace["otherData"]["run_id"] == said.json["run_id"]
    assert trace["otherData"]["target"] == target
    assert any(event["name"] == "step" for event in trace["traceEvents"])


def test_no_trace_is_written_unless_asked_for(hotloop: Command) -> None:
    hotloop("profile", "grid/toy", *SHORT)
    assert not [name for name in names() if "trace" in name or "speedscope" in name]


def test_a_second_trace_of_one_minute_gets_a_number_like_its_profile(hotloop: Command) -> None:
    for _ in range(2):
        hotloop("profile", "grid/toy", *SHORT, "--trace")
    assert {f"{STEM}-2.trace.json", f"{STEM}-2.md"} <= set(names())


def test_a_slow_step_is_run_again(hotloop: Command) -> None:
    hotloop("profile", "grid/toy", *SHORT)
    said = hotloop("profile", "--replay-slow", f".design/{STEM}.json")
    assert said.code in (ExitCode.FINE, ExitCode.CANNOT_TELL)
    assert "slow step #1 of " in said.out
    assert "came to the same state as then" in said.out
    kept = read(Path(".design/replay-20250102-0304.json"))
    assert (kept.kind, kept.again.slow.rank) == ("replay", 1)


def test_a_number_after_the_record_chooses_the_step_and_json_prints_the_record(hotloop: Command) -> None:
    hotloop("profile", "grid/toy", *SHORT)
    said = hotloop("profile", "--replay-slow", f".design/{STEM}.json", "3", "--json")
    assert said.json["again"]["slow"]["rank"] == 3
    assert said.json == json.loads(Path(".design/replay-20250102-0304.json").read_text())


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--replay-slow", "gone.json"], "cannot read gone.json"),
        (["--replay-slow", f".design/{STEM}.md"], "not JSON"),
        (["--replay-slow", f".design/{STEM}.json", "77"], "there is no slow step #77"),
        (["--replay-slow", f".design/{STEM}.json", "grid/toy"], "expected the number of one slow step"),
        (["--replay-slow", f".design/{STEM}.json", "0"], "expected the number of one slow step"),
        (["--replay-slow", f".design/{STEM}.json", "1", "agents=4"], "settings are the record's"),
        ([], "TARGET"),
        (["--trace", "--pid", "1"], "--trace is for a target"),
        (["--replay-slow", f".design/{STEM}.json", "--steps", "9"], "--steps does not go with --replay-slow"),
    ],
)
def test_wrong_input_is_one_line(hotloop: Command, words: list[str], reason: str) -> None:
    hotloop("profile", "grid/toy", *SHORT)
    before = names()
    said = hotloop("profile", *words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert reason in said.err
    assert said.err.count("\n") == 1
    assert names() == before
