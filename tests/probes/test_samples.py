import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from support.scenes import scene, turn

from hotloop.core.record import stacks
from hotloop.core.registry import ProbeError
from hotloop.probes import samples
from hotloop.probes.samples import (
    OURS,
    SampleCounts,
    ThreadTime,
    describe,
    describe_threads,
    look,
    read_threads,
    tables_of,
    without_ours,
    worked_shares,
)

Row = tuple[object, ...]

PLAYED = ("played", f"{OURS}/lab/profile/probes.py", 1)
OURS_TOO = ("SingleSubject.step", f"{OURS}/envs/foreign/single.py", 2)
WRAPPER = ("OrderEnforcing.step", "/site/wrappers/common.py", 3)
ENV = ("CartPoleEnv.step", "/site/classic_control/cartpole.py", 4)
ELSEWHERE = ("CartPoleEnv.step", "/site/classic_control/cartpole.py", 5)
CALLER = ("main", "/home/train.py", 6)


def test_what_is_ours_is_cut_off_and_callers_of_hotloop_with_it() -> None:
    assert without_ours((CALLER, PLAYED, OURS_TOO, WRAPPER, ENV), "played") == (WRAPPER, ENV)
    assert without_ours((CALLER, PLAYED, OURS_TOO), "played") == ()
    assert without_ours((CALLER, WRAPPER), "played") == (CALLER, WRAPPER)


def hot(found: dict[stacks.Stack, int], whole: int, cpu: dict[stacks.Stack, int] | None = None) -> list[Row]:
    return [
        (row[0], row[1], row[3], row[5])
        for row in tables_of(found, whole, worked_shares(found, cpu or {}), 100)[-1].rows
    ]


def test_a_function_is_one_row_at_its_hottest_line_by_its_own_time() -> None:
    assert hot({(WRAPPER, ENV): 30, (WRAPPER, ELSEWHERE): 50, (WRAPPER,): 10}, 100) == [
        ("CartPoleEnv.step (classic_control/cartpole.py:5)", 0.8, 0.8, None),
        ("OrderEnforcing.step (wrappers/common.py:3)", 0.1, 0.9, None),
    ]


def test_two_comprehensions_of_one_function_are_two_rows() -> None:
    first, second = (("step.<listcomp>", ENV[1], line) for line in (8, 9))
    rows = hot({(ENV, first): 60, (ENV, second): 40}, 100)
    assert [row[1] for row in rows if row[0].startswith("step.<listcomp>")] == [0.6, 0.4]


def test_a_function_that_waits_is_told_from_one_that_works() -> None:
    rows = hot({(WRAPPER, ENV): 50, (WRAPPER,): 50}, 100, {(WRAPPER, ENV): 50, (WRAPPER,): 5})
    assert [row[3] for row in rows] == [0.55, 1.0]


def test_the_lever_stands_first_among_the_users_functions_with_an_interval() -> None:
    step, learn = ("Env.step", "/me/env.py", 1), ("Env.learn", "/me/env.py", 2)
    torch = ("backward", "/v/lib/python3.11/site-packages/torch/graph.py", 3)
    found = tables_of({(step, learn, torch): 69, (step,): 31}, 100, {}, 1_000)
    assert [table.title for table in found] == [samples.YOURS, samples.TITLE]
    assert [row[0] for row in found[0].rows] == ["Env.learn (me/env.py:2)", "Env.step (me/env.py:1)"]
    assert found[0].rows[0][1:5] == (0.0, "[0.0%, 0.4%]", 0.69, "[66.1%, 71.8%]")


def test_a_caller_that_does_nothing_beside_the_lever_is_no_function_to_change() -> None:
    main, step, learn = (("main", "/me/env.py", 1), ("step", "/me/env.py", 2), ("learn", "/me/env.py", 3))
    found = tables_of({(main, step, learn): 70, (main, step): 29, (main,): 1}, 100, {}, 1_000)
    assert [row[0].partition(" ")[0] for row in found[0].rows] == ["learn", "step"]


def test_shares_are_of_the_whole_play_and_what_is_hardly_there_has_no_row() -> None:
    ns = Counter({(PLAYED, WRAPPER, ENV): 1_000, (PLAYED, OURS_TOO): 1_000, (PLAYED, ENV): 0})
    found = describe(SampleCounts(ns=ns, samples=7), "played", {})
    assert found.facts == {"samples": 7, "below_share": 0.5}
    assert [(row[1], row[3]) for row in found.tables[-1].rows] == [(0.5, 0.5), (0.0, 0.5)]
    assert hot({(ENV,): 1, (CALLER,): 999}, 1_000) == [("main (home/train.py:6)", 0.999, 0.999, None)]


def test_a_slow_function_is_the_first_row_and_the_stacks_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples, "SHORTEST_NS", 100_000_000)
    found = look(scene(tmp_path, turn))
    assert found.tables[0].rows[0][0].startswith("slow (support/scenes.py:")
    assert {path.name for path in tmp_path.iterdir()} == set(found.files)
    assert any(stack[-1][0] == "slow" for stack in stacks.read(tmp_path / "samples.speedscope.json"))


class Glimpses:
    """Samples as many as there were calls, where they are enough for one."""

    asked = 0

    def __enter__(self) -> Self:
        self.ns, self.cpu_ns = Counter({(ENV,): 1}), Counter[stacks.Stack]()
        self.samples = Glimpses.asked // 16
        return self

    def __exit__(self, *_: object) -> None: ...


def test_a_play_that_is_over_before_the_first_look_is_made_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(calls: int) -> Callable[[], None]:
        Glimpses.asked = calls
        asked.append(calls)
        return lambda: None

    asked: list[int] = []
    monkeypatch.setattr(samples, "StackSampler", Glimpses)
    monkeypatch.setattr(samples, "SHORTEST_NS", 0)
    seen = samples.sampled(replace(scene(tmp_path, turn), draw=draw, calls=3))
    assert (asked, seen.samples) == ([3, 6, 12, 24], 1)


def test_the_line_that_takes_most_of_the_lever_is_told_with_its_code(tmp_path: Path) -> None:
    program = tmp_path / "eco.py"
    program.write_text("def look():\n    fetch()\n    count()\n")
    look_, other = ("look", str(program), 2), ("look", str(program), 3)
    library = ("execute", "/v/site-packages/db.py", 9)
    found = {(look_, library): 80, (other,): 20}
    assert samples.hottest_line(found) == {"hottest_line": "eco.py:2: fetch()", "hottest_line_share": 0.8}
    assert samples.hottest_line({(ENV,): 1}) == {}


MAIN, WORK, WAIT = ("main", "/me/a.py", 3), ("work", "/me/a.py", 7), ("wait", "/me/a.py", 9)

PROGRAM = """
import threading, time
def wait(): time.sleep(600)
def work(): return sum(range(3000))
threading.Thread(target=wait, name="sleeper", daemon=True).start()
print("ready", flush=True)
while True: work()
"""


def test_a_thread_that_waits_is_idle_and_has_no_samples(tmp_path: Path) -> None:
    busy = ThreadTime(name="MainThread 1", share=0.5, seconds={(MAIN, WORK): 1.5, (MAIN,): 0.5})
    sleeper = ThreadTime(name="sleeper 2", share=0.0, seconds={(WAIT,): 0.2})
    found = describe_threads([sleeper, busy], 4.0, tmp_path)
    assert found.tables[0].rows == (("MainThread 1", 0.5, 0.5), ("sleeper 2", 0.0, 1.0))
    assert found.facts["samples"] == 2 * samples.OUTSIDE_RATE
    assert {row[0]: row[1] for row in found.tables[-1].rows} == {
        "work (me/a.py:7)": 0.75,
        "main (me/a.py:3)": 0.25,
    }
    assert {path.name for path in tmp_path.iterdir()} == set(found.files)


def test_a_process_that_only_waits_has_its_threads_and_no_functions(tmp_path: Path) -> None:
    found = describe_threads([ThreadTime(name="MainThread 1", share=0.0, seconds={})], 4.0, tmp_path)
    assert [table.rows for table in found.tables] == [(("MainThread 1", 0.0, 1.0),)]


def test_threads_are_known_by_the_number_of_the_kernel(tmp_path: Path) -> None:
    stacks.write(tmp_path / "x.json", 'Thread 12 "half"', {(MAIN,): 1.0})
    assert read_threads(tmp_path / "x.json") == {12: ("half", {(MAIN,): 1.0})}


def test_a_running_process_is_attached_to_and_lives_on(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            found = samples.attach(child.pid, tmp_path, 1)
            assert child.poll() is None
        except ProbeError as error:
            pytest.skip(f"NOT TESTED: {error}")
        finally:
            child.kill()
    threads = {row[0].partition(" ")[0]: row[2] for row in found.tables[0].rows}
    assert threads["MainThread"] < threads["sleeper"]
    assert any(row[0].startswith("work ") for row in found.tables[1].rows)
