from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from support.scenes import scene, turn

from hotloop.core.record import stacks
from hotloop.probes import samples
from hotloop.probes.samples import OURS, Seen, describe, look, rows_of, without_ours

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


def test_a_function_is_one_row_at_its_hottest_line_by_its_own_time() -> None:
    rows = rows_of({(WRAPPER, ENV): 30, (WRAPPER, ELSEWHERE): 50, (WRAPPER,): 10}, 100)
    assert rows == (
        ("CartPoleEnv.step (classic_control/cartpole.py:5)", 0.8, 0.8, None),
        ("OrderEnforcing.step (wrappers/common.py:3)", 0.1, 0.9, None),
    )


def test_a_function_that_waits_is_told_from_one_that_works() -> None:
    rows = rows_of({(WRAPPER, ENV): 50, (WRAPPER,): 50}, 100, {(WRAPPER, ENV): 50, (WRAPPER,): 5})
    assert [row[3] for row in rows] == [0.55, 1.0]


def test_shares_are_of_the_whole_play_and_what_is_hardly_there_has_no_row() -> None:
    ns = Counter({(PLAYED, WRAPPER, ENV): 1_000, (PLAYED, OURS_TOO): 1_000, (PLAYED, ENV): 0})
    found = describe(Seen(ns=ns, samples=7), "played")
    assert found.facts == {"samples": 7, "below_share": 0.5}
    assert [row[1:3] for row in found.tables[0].rows] == [(0.5, 0.5), (0.0, 0.5)]
    assert rows_of({(ENV,): 1, (CALLER,): 999}, 1_000) == (("main (home/train.py:6)", 0.999, 0.999, None),)


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
