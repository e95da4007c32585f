import json
from pathlib import Path

from hotloop.core.record.stacks import functions, place, read, write

RUN, STEP, SQRT = ("run", "/a/b/loop.py", 3), ("step", "/a/env.py", 9), ("<built-in sqrt>", "~", 0)
SECONDS = {(RUN,): 0.5, (RUN, STEP): 1.5, (RUN, STEP, SQRT): 2.0}


def test_stacks_survive_being_written_and_read(tmp_path: Path) -> None:
    write(tmp_path / "a.json", "mine", SECONDS)
    assert read(tmp_path / "a.json") == SECONDS


def test_the_file_is_what_speedscope_asks_for(tmp_path: Path) -> None:
    write(tmp_path / "a.json", "mine", SECONDS)
    told = json.loads((tmp_path / "a.json").read_text())
    assert told["$schema"].startswith("https://www.speedscope.app/")
    (profile,) = told["profiles"]
    assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "seconds", 0)
    assert profile["endValue"] == sum(profile["weights"]) == 4.0
    assert len(profile["samples"]) == len(profile["weights"])
    assert all(index < len(told["shared"]["frames"]) for sample in profile["samples"] for index in sample)
    assert told["shared"]["frames"][0] == {"name": "run", "file": "/a/b/loop.py", "line": 3}


def test_the_same_stack_of_several_profiles_is_added_up(tmp_path: Path) -> None:
    write(tmp_path / "a.json", "mine", {(RUN,): 1.0})
    told = json.loads((tmp_path / "a.json").read_text())
    told["profiles"] *= 2
    (tmp_path / "b.json").write_text(json.dumps(told))
    assert read(tmp_path / "b.json") == {(RUN,): 2.0}


def test_a_place_is_short_enough_to_read_and_long_enough_to_find() -> None:
    assert place(RUN) == "run (b/loop.py:3)"
    assert place(SQRT) == "<built-in sqrt>"


def test_functions_are_at_their_hottest_lines_and_count_once_where_they_call_themselves() -> None:
    a1, a2, b = ("a", "f.py", 1), ("a", "f.py", 2), ("b", "f.py", 9)
    found = functions({(a1, b): 2.0, (a2, a1): 3.0, (a2,): 4.0})
    assert [(each.place, each.own, each.total) for each in found] == [
        ("a (f.py:1)", 7.0, 9.0),
        ("b (f.py:9)", 2.0, 2.0),
    ]
