from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import plan

    return plan


def asked(plan: ModuleType, **other: float) -> object:
    usual = plan.Plan(
        machines=1,
        samples=100,
        collect_s=1.0,
        spread=0.0,
        learn_s=0.1,
        rollout_bytes=1e3,
        weights_bytes=1e3,
        staleness=1,
    )
    return replace(usual, **other)


def test_one_machine_brings_what_it_collects(plan: ModuleType) -> None:
    found = plan.simulate(asked(plan))
    assert found.samples_per_s == pytest.approx(100, rel=0.02)
    assert found.bound == "collecting"


def test_many_machines_bring_what_the_learner_takes(plan: ModuleType) -> None:
    found = plan.simulate(asked(plan, machines=100))
    assert found.samples_per_s == pytest.approx(1_000, rel=0.02)
    assert found.bound == "learning"


def test_who_waits_for_every_rollout_is_slower(plan: ModuleType) -> None:
    ahead, waiting = (plan.simulate(asked(plan, machines=8, staleness=k)) for k in (1, 0))
    assert waiting.samples_per_s < 0.7 * ahead.samples_per_s


def test_large_weights_fill_the_link(plan: ModuleType) -> None:
    found = plan.simulate(asked(plan, machines=50, learn_s=1e-3, weights_bytes=1e8))
    assert found.bound == "weights out"
    assert found.outgoing == pytest.approx(1, rel=0.05)
