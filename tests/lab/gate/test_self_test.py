from collections.abc import Callable
from typing import Any

import pytest

from hotloop.core.record.experiments import BudgetResult
from hotloop.judge import judge
from hotloop.lab.gate.init import planted, self_test
from hotloop.lab.gate.measure import COUNTED, Checkouts

BY_COUNT = [case for case in planted() if case.metric == COUNTED]

Plant = Callable[[pytest.MonkeyPatch], None]


@pytest.mark.usefixtures("gauges")
def test_a_gate_that_works_passes() -> None:
    cases = self_test(cases=BY_COUNT)
    assert [case.found for case in cases] == ["fine", "regression", "fine"]
    assert all(case.passed for case in cases)


def never_consulted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(judge.CODES, "gate", ())


def wrong_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    right: Any = BudgetResult.bound
    monkeypatch.setattr(BudgetResult, "bound", property(lambda held: -right.fget(held)))


def with_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkouts, "at", lambda places, ref: places.tree())


@pytest.mark.usefixtures("gauges")
@pytest.mark.parametrize("plant", [never_consulted, wrong_sign, with_itself])
def test_a_gate_that_is_broken_does_not(monkeypatch: pytest.MonkeyPatch, plant: Plant) -> None:
    plant(monkeypatch)
    assert not all(case.passed for case in self_test(cases=BY_COUNT))


@pytest.mark.long
def test_the_whole_self_test_passes_on_the_machine_as_it_is() -> None:
    cases = self_test()
    assert [case for case in cases if not case.passed] == []
