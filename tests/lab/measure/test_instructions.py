import shutil
from typing import Any, Self

import pytest

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.progress import silent
from hotloop.core.record.metadata import Instructions
from hotloop.core.settings import Target
from hotloop.lab import bench as benching
from hotloop.lab.measure import resources as lab
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.measure.resources import count, long_enough, on_one_thread, subtract

needs_valgrind = pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")

START = 900_000_000


class FakeCounter:
    """Counts a start-up, a thousand for each action drawn, and what each call takes."""

    def __init__(self, per_call: int) -> None:
        self.per_call = per_call
        self.asked: list[dict[str, int]] = []
        self.facts: dict[str, Any] = {"num_envs": 4, "isa": ["x86_64", "AVX2"]}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def count(self, stretch: dict[str, int]) -> int:
        self.asked.append(stretch)
        return START + 1000 * stretch["drawn"] + self.per_call * stretch["played"]


def counting(monkeypatch: pytest.MonkeyPatch, per_call: int) -> FakeCounter:
    fake = FakeCounter(per_call)
    monkeypatch.setattr(lab, "Counter", lambda *_: fake)
    return fake


def test_the_start_up_cancels() -> None:
    found = subtract(((64, START + 640), (1064, START + 10_640)), isa="x86_64")
    assert found.per_env_step == 10.0


def test_both_runs_draw_the_actions_of_the_longer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = counting(monkeypatch, 40_000_000)
    found = count(Target("grid/toy", {}))
    assert found == Instructions(
        per_env_step=10_000_000.0,
        runs=((4, START + 5_000 + 40_000_000), (20, START + 5_000 + 200_000_000)),
        isa="x86_64 AVX2",
    )
    assert fake.asked[-2:] == [{"drawn": 5, "played": 1}, {"drawn": 5, "played": 5}]


def test_the_other_side_can_be_counted_over_the_same_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    counting(monkeypatch, 40_000_000)
    one = count(Target("grid/toy", {}))
    fake = counting(monkeypatch, 70_000_000)
    other = count(Target("grid/toy", {}), env_steps=one.runs[-1][0])
    assert [steps for steps, _ in other.runs] == [steps for steps, _ in one.runs]
    assert len(fake.asked) == 2


@pytest.mark.parametrize(("per_call", "calls"), [(200_000_000, 2), (99_999_999, 3), (1_000_000, 129)])
def test_a_light_target_is_counted_over_more_calls(per_call: int, calls: int) -> None:
    assert long_enough(FakeCounter(per_call), silent) == calls  # type: ignore[arg-type]


def test_progress_ends_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    counting(monkeypatch, 1_000_000)
    shown: list[tuple[int, int]] = []
    count(Target("grid/toy", {}), progress=lambda done, total: shown.append((done, total)))
    assert shown == [(part, 5) for part in range(6)]


def test_a_preset_is_counted_on_one_thread_and_a_callable_keeps_its_arguments() -> None:
    ours = Target("grid/toy", {"threads": "4", "agents": "3"})
    assert on_one_thread(ours).keys == {"threads": 1, "agents": "3"}
    theirs = Target("mine.py:make", {"threads": "4"})
    assert on_one_thread(theirs) == theirs


def test_an_interrupted_count_leaves_the_rounds_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(benching, "count", interrupted)
    rounds, extras = Rounds(count=2, iterations=1, warmup=0), benching.Extras(instructions=True)
    left = benching.bench(Target("grid/toy", {}), rounds, extras=extras)
    assert (left.partial, left.exit_code, left.instructions) == (True, ExitCode.INTERRUPTED, None)
    assert len(left.values["env_steps_per_s"]) == 2


@pytest.mark.slow
@needs_valgrind
def test_the_same_code_counts_the_same_and_a_hundredth_more_is_seen() -> None:
    small = {"num_envs": 8, "impl": "native"}
    one = count(Target("grid/toy", small))
    again, slowed = (
        count(Target("grid/toy", small | more), env_steps=one.runs[-1][0]) for more in ({}, {"drag": 80})
    )
    assert again.per_env_step == pytest.approx(one.per_env_step, rel=0.001)
    # Two instructions a turn at least, whatever the compiler made of the loop.
    assert one.per_env_step + 2 * 80 <= slowed.per_env_step * 1.0001
    assert 1.005 < slowed.per_env_step / one.per_env_step < 1.03


@pytest.mark.slow
@needs_valgrind
def test_a_wrong_target_is_wrong_under_valgrind_too() -> None:
    with pytest.raises(InputError, match="unknown key 'agnets'"):
        count(Target("grid/toy", {"agnets": 3}))
