"""An env is made as often as needed, and each knows its number."""

from pathlib import Path

import gymnasium
import pytest
from support import made
from support.profiles import profile

import hotloop
from hotloop.core.settings import Target
from hotloop.envs.callables import VARIABLE, Numbers, lent
from hotloop.envs.open import open_target
from hotloop.lab.bench import bench
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan, Rounds

ROUNDS = Rounds(count=6, iterations=20, warmup=20, box_iterations=False)

TARGET = Target("support.made:make")


@pytest.fixture(autouse=True)
def forgotten() -> None:
    made.MADE.clear()


def different() -> int:
    """How many were made, none of them twice."""
    assert len(set(made.MADE)) == len(made.MADE)
    return len(made.MADE)


def test_bench_makes_one() -> None:
    bench(TARGET, ROUNDS)
    assert different() == 1


def test_profile_makes_two() -> None:
    profile(TARGET, steps=40)
    assert different() == 2


def test_compare_makes_three() -> None:
    a, b = TargetContender(TARGET), TargetContender(TARGET)
    record = compare(a, b, CompareSettings(plan=Plan(budget_ns=50_000_000, fewest=6, band=100.0)))
    assert record.comparisons[0].outcome != "faster"
    assert different() == 3


def test_a_function_given_from_python_may_take_its_number() -> None:
    hotloop.profile(made.make, steps=40)
    assert different() == 2


def test_a_number_replaces_its_place_in_the_value_of_a_key(tmp_path: Path) -> None:
    target = Target("support.made:with_file", {"path": f"{tmp_path}/{{instance}}.db"})
    record = profile(target, steps=40)
    assert record.target.params["path"].endswith("/{instance}.db")
    assert not list(tmp_path.iterdir())


def test_workers_of_a_vector_env_have_different_ones(tmp_path: Path) -> None:
    keys = {"path": f"{tmp_path}/{{instance}}.db", "num_envs": 2, "vector": "async"}
    subject = open_target(Target("support.made:with_file", keys))
    subject.reset()
    assert len(list(tmp_path.iterdir())) == 2
    subject.close()


def test_an_id_may_have_the_number_in_its_keys() -> None:
    gymnasium.register("Numbered-v0", entry_point=made.Numbered, disable_env_checker=True)
    try:
        subject = open_target(Target("gym:Numbered-v0", {"path": "/dev/shm/hotloop-{instance}"}))
        assert subject.env.unwrapped.path.name.removeprefix("hotloop-").isdecimal()  # type: ignore[attr-defined]
        subject.close()
    finally:
        del gymnasium.registry["Numbered-v0"]


def test_another_process_has_numbers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "7")
    ours = Numbers(7)
    assert [ours.take(), ours.take(3), ours.take()] == [7, 8, 11]
    assert int(lent()[VARIABLE]) < int(lent()[VARIABLE])
