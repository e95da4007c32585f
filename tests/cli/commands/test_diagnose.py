"""hotloop diagnose on records of this folder, as somebody types it."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.cases import loop
from support.records import BENCH, PROFILE

from hotloop.core.errors import ExitCode
from hotloop.core.machine import machine
from hotloop.core.record import Record, write
from hotloop.core.record.comparison import Ratio
from hotloop.judge.case import Alternative
from hotloop.lab import alternatives

Command = Callable[..., Any]

SLOW = {"env": (10, 0.3), "learn": (10, 0.3), "teacher": (10, 0.38)}

FAST = {"env": (10, 0.4), "learn": (10, 0.58), "teacher": (10, 0.01)}

ORIGINAL = replace(PROFILE, target=replace(PROFILE.target, variant={"encoder": "original", "num_envs": 5}))


@pytest.fixture
def at_hand(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a record into the folder of this machine's records."""
    monkeypatch.setattr(alternatives, "copy_bytes_per_s", lambda: 1e10)
    fingerprint = machine()["fingerprint"]

    def put(record: Record, name: str, *, here: bool = True) -> Path:
        path = Path(".design", f"{name}.json")
        mine = {**record.machine, "fingerprint": fingerprint} if here else record.machine
        write(path, replace(record, run_id=name, machine=mine))  # type: ignore[arg-type]
        return path

    return put


def test_the_newest_record_is_diagnosed_and_the_checklist_is_kept(hotloop: Command, at_hand: Any) -> None:
    at_hand(loop(SLOW), "run-own")
    said = hotloop("diagnose")
    assert said.code == ExitCode.FINE
    assert "teacher takes 38.0% of the time" in said.out
    assert "teacher calls: buys at most 1.61x" in said.out
    (page,) = Path(".design").glob("diagnosis-*.md")
    assert "[ ] teacher calls" in page.read_text().replace("\\", "")


def test_after_a_change_predicted_and_seen_stand_side_by_side(hotloop: Command, at_hand: Any) -> None:
    before = at_hand(loop(SLOW), "run-before")
    hotloop("diagnose", str(before))
    after = at_hand(loop(FAST, speed=1.6), "run-after")
    said = hotloop("diagnose", str(after), "--since", str(before))
    assert "predicted  1.61x" in said.out
    assert "as predicted" in said.out
    assert "moved from teacher" in said.out


def test_json_has_all_of_it_and_nothing_else(hotloop: Command, at_hand: Any) -> None:
    at_hand(loop(SLOW), "run-own")
    told = json.loads(hotloop("diagnose", "--json").out)
    assert told["run_id"] == "run-own"
    assert told["candidates"][0]["rule"] == "teacher"
    assert told["since"] is None


def test_a_worlds_other_way_is_measured_and_its_gain_predicted(
    hotloop: Command, at_hand: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Alternative(
        phase="observations",
        keys={"encoder": "optimized"},
        ratio=Ratio(estimate=8.0, low=7.5, high=8.5, pairs=24),
    )
    monkeypatch.setattr(alternatives, "measure_rival", lambda *_: found)
    at_hand(ORIGINAL, "profile-a")
    said = hotloop("diagnose")
    assert "encoder=optimized was 8.00 times as fast there" in said.out
    assert "buys 2.27x" in said.out


def test_a_record_of_another_machine_is_diagnosed_and_nothing_is_expected(
    hotloop: Command, at_hand: Any
) -> None:
    at_hand(ORIGINAL, "profile-a", here=False)
    said = hotloop("diagnose")
    assert said.code == ExitCode.FINE
    assert "no expectations: the record is from another machine" in said.out
    assert "observations takes 64.0% of the time" in said.out


@pytest.mark.parametrize(
    ("name", "expected"),
    [("", "there is nothing here to diagnose"), ("bench", "without phases: look inside it: hotloop profile")],
)
def test_what_cannot_be_diagnosed_is_said_with_what_to_run(
    hotloop: Command, at_hand: Any, name: str, expected: str
) -> None:
    words = [str(at_hand(BENCH, name))] if name else []
    said = hotloop("diagnose", *words)
    assert said.code == ExitCode.USAGE
    assert expected in said.err


def test_a_record_of_another_version_is_refused(hotloop: Command, at_hand: Any) -> None:
    path = at_hand(PROFILE, "profile-a")
    plain = json.loads(path.read_text()) | {"schema": 99}
    path.write_text(json.dumps(plain))
    said = hotloop("diagnose", str(path))
    assert said.code == ExitCode.USAGE
    assert "use the version that wrote it" in said.err


def test_since_itself_is_refused(hotloop: Command, at_hand: Any) -> None:
    path = at_hand(loop(SLOW), "run-own")
    assert "measure again after the change" in hotloop("diagnose", "--since", str(path)).err


def test_the_other_ways_are_those_of_the_world_that_did_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    target = replace(ORIGINAL, target=replace(ORIGINAL.target, keys={"encoder": "original"}))
    monkeypatch.setattr(alternatives, "measure_rival", lambda _, rival, __: rival)
    (rival,) = alternatives.alternatives(target)
    assert (rival.parameter, rival.reference) == ("encoder", "original")
    assert alternatives.target_again(target).words == "grid/toy encoder=original num_envs=5"
    assert not alternatives.alternatives(loop(SLOW))


def test_what_cannot_be_delayed_says_what_can(hotloop: Command, at_hand: Any) -> None:
    own = at_hand(loop(SLOW), "run-own")
    assert "hotloop diagnose --causal -- python YOUR_LOOP.py" in hotloop("diagnose", "--causal", str(own)).err
    assert "go with --causal" in hotloop("diagnose", "--time", "a.b").err


def test_a_program_is_asked_for_causal(hotloop: Command) -> None:
    said = hotloop("diagnose", "--", "python", "loop.py")
    assert said.code == ExitCode.USAGE
    assert "or delay its parts with --causal" in said.err
