"""What users can measure stays as it was stored: results, fields, codes, schemas, exports and files."""

import json
from collections.abc import Callable
from difflib import unified_diff
from pathlib import Path

import pytest

pytest.importorskip("mcp")
pytest.importorskip("torch")
pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")
pytest.importorskip("stable_baselines3")

from frozen_facts import (
    FACTS,
    FRESH,
    draw_everywhere,
    draw_report,
    filled_fields,
    fresh_result,
    judge_again,
    judged_kinds,
    stored_results,
)
from frozen_runs import FROZEN

INDEX = json.loads((FROZEN / "results.json").read_text("utf-8"))

MOST_LINES = 60
"""Of a difference that is shown."""

SLOW = ("facts/replays.json", "facts/log_tables.txt")
"""Those that start processes."""

MOST_BYTES = 3_000_000


def check_same(path: str, now: str) -> None:
    """Fail with the lines that differ from a stored file, and the command that stores it anew."""
    with (FROZEN / path).open(encoding="utf-8", newline="") as file:
        then = file.read()
    if then == now:
        return
    lines = unified_diff(then.splitlines(), now.splitlines(), f"stored {path}", "now", lineterm="", n=1)
    shown = "\n".join(line[:300] for line in list(lines)[:MOST_LINES]) or "only the ends of lines differ"
    part = path.partition("/")[0]
    pytest.fail(
        f"tests/frozen/{path} is not what Hotloop does now:\n{shown}\n"
        f"If users are to see this change, store it: python tools/freeze.py {part}",
        pytrace=False,
    )


@pytest.mark.parametrize(
    ("path", "made"),
    [pytest.param(*each, id=each[0], marks=[pytest.mark.slow] * (each[0] in SLOW)) for each in FACTS.items()],
)
def test_what_users_can_measure_is_as_it_was_stored(path: str, made: Callable[[], str]) -> None:
    check_same(path, made())


@pytest.mark.parametrize("name", INDEX)
def test_a_stored_result_gets_the_same_judgement_again(name: str) -> None:
    known = {key: value for key, value in INDEX[name].items() if key != "command"}
    assert judge_again(stored_results()[name]) == known


@pytest.mark.parametrize("name", INDEX)
def test_a_stored_result_is_drawn_in_every_format(name: str) -> None:
    screen, text, page = draw_everywhere(stored_results()[name])
    assert all(len(each.splitlines()) >= 3 for each in (screen, text))
    assert "<" in page


@pytest.mark.long
@pytest.mark.parametrize("name", FRESH)
def test_the_command_of_a_stored_result_fills_the_same_fields_today(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOTLOOP_IN_PROCESS")
    then, now = filled_fields(stored_results()[name]), filled_fields(fresh_result(name))
    assert sorted(then - now) == []
    assert sorted(now - then) == []


def test_all_stored_results_are_on_one_page() -> None:
    page = draw_report()
    assert all(json.loads(text)["run_id"] in page for text in stored_results().values())


def test_results_of_every_kind_are_stored() -> None:
    kinds = {each["kind"] for each in INDEX.values()}
    assert kinds == judged_kinds(), "a new kind of result needs a command in tools/frozen_runs.py"
    assert stored_results().keys() == INDEX.keys()


def test_results_of_every_exit_code_of_a_judgement_are_stored() -> None:
    assert {0, 1, 2, 3, 4} <= {each["exit_code"] for each in INDEX.values()}


def test_the_stored_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FROZEN.rglob("*") if path.is_file()) < MOST_BYTES


def test_a_difference_is_shown_with_the_command_that_stores_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "facts").mkdir()
    (tmp_path / "facts" / "exit_codes.txt").write_text("0 fine\n1 unstable\n")
    monkeypatch.setattr(f"{__name__}.FROZEN", tmp_path)
    with pytest.raises(pytest.fail.Exception) as failed:
        check_same("facts/exit_codes.txt", "0 fine\n1 unsteady\n")
    message = str(failed.value)
    assert "-1 unstable\n+1 unsteady\n" in message
    assert "python tools/freeze.py facts" in message
