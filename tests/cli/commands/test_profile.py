from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.boxes import shorten_passes

from hotloop.cli.commands import profile as module
from hotloop.core.errors import ExitCode
from hotloop.core.record import Record, read

SHORT = ("num_envs=4", "agents=3", "--steps", "160")

Command = Callable[..., Any]


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.profile.profile.WARMUP", 8)
    monkeypatch.setattr("hotloop.judge.judge.label", lambda cv: "excellent")
    shorten_passes(monkeypatch)
    monkeypatch.setattr(module, "utc_now", lambda: datetime(2025, 1, 2, 3, 4, 5, tzinfo=UTC))


def names() -> list[str]:
    return sorted(path.name for path in Path(".design").iterdir())


def test_a_page_and_a_record_are_written_under_the_minute(hotloop: Command) -> None:
    said = hotloop("profile", "grid/toy", *SHORT)
    assert said.code == ExitCode.FINE
    assert names() == ["profile-20250102-0304.json", "profile-20250102-0304.md"]
    record = read(Path(".design/profile-20250102-0304.json"))
    assert (record.kind, record.work.env_steps) == ("profile", 160)
    assert Path(".design/profile-20250102-0304.md").read_text().startswith("# Profile of grid/toy")
    assert "observations" in said.out


def test_a_policy_is_played_by_both_sides_and_named(hotloop: Command) -> None:
    said = hotloop("profile", "grid/guard", "num_envs=4", "--steps", "160", "--policy", "teacher", "--json")
    assert said.json["method"]["policy"] == "teacher (replayed tape)"
    assert said.json["work"]["env_steps"] == 160


def test_a_second_profile_of_one_minute_gets_a_number(hotloop: Command) -> None:
    for _ in range(2):
        hotloop("profile", "grid/toy", *SHORT)
    assert names() == [
        *("profile-20250102-0304-2.json", "profile-20250102-0304-2.md"),
        *("profile-20250102-0304.json", "profile-20250102-0304.md"),
    ]


def test_json_prints_the_saved_record_and_nothing_else(hotloop: Command) -> None:
    said = hotloop("profile", "grid/toy", *SHORT, "--json")
    assert Record.from_json(said.out) == read(Path(".design/profile-20250102-0304.json"))


def test_a_bare_world_profiles_all_its_presets(hotloop: Command) -> None:
    from hotloop.core.registry import find, presets

    said = hotloop("profile", "grid", *SHORT, "--json")
    targets = [found.target for found in presets(find("grid").world)]
    assert [record["target"]["name"] for record in said.json] == targets
    assert len(names()) == 2 * len(targets)


def test_several_threads_print_that_the_split_is_not_clean(hotloop: Command) -> None:
    assert "2 threads" in hotloop("profile", "grid/toy", *SHORT, "threads=2").err


@pytest.mark.parametrize("words", [["grid/toi"], ["grid/toy", "--steps", "0"], ["grid/toy", "profile=1"]])
def test_wrong_input_writes_nothing(hotloop: Command, words: list[str]) -> None:
    said = hotloop("profile", *words)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert said.err.count("\n") == 1
    assert list(Path().iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(hotloop: Command) -> None:
    Path(".design").write_text("a file")
    said = hotloop("profile", "grid/toy", *SHORT)
    assert (said.code, said.out) == (ExitCode.USAGE, "")
    assert ".design" in said.err
