import numpy as np
import pytest
from support.micro import CALLED

from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.envs.foreign.open import open_foreign
from hotloop.envs.subject import Subject
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan

HERE = "support.micro"


@pytest.fixture(autouse=True)
def _anew() -> None:
    CALLED.clear()


def opened(name: str, **keys: object) -> Subject:
    return open_foreign(Target(f"{HERE}:{name}", keys), timed=False)


def test_a_function_that_returns_no_env_is_measured_itself_and_that_call_was_warm_up() -> None:
    subject = opened("query", n="5")
    assert CALLED == [5]
    assert subject.counters["env_steps"] == 0
    subject.reset()
    for actions in subject.draw(np.random.default_rng(0), 2):
        subject.step(actions)
    assert CALLED == [5, 5, 5]
    assert subject.counters["env_steps"] == 2
    assert subject.counters["resets"] == 0
    assert subject.answers()["observations"].tolist() == [10]
    assert subject.spec.described.variant["interface"] == "function"
    assert [each.code for each in subject.spec.notices] == ["function"]
    assert not subject.faults()


def test_a_function_that_raises_later_is_said_with_its_line() -> None:
    subject = opened("query", fail="true")
    subject.reset()
    with pytest.raises(InputError, match=r"raised: OSError: the database has gone \(.*in query\)"):
        subject.step(None)


def test_an_env_is_still_an_env_and_a_class_still_refused() -> None:
    assert (
        open_foreign(Target("support.theirs:make"), timed=False).spec.described.variant["interface"]
        != "function"
    )
    with pytest.raises(InputError, match="unexpected keyword argument"):
        opened("query", m="5")


def test_two_functions_are_compared_by_what_they_return() -> None:
    plan = Plan(budget_ns=200_000_000)
    same = compare(
        TargetContender(Target(f"{HERE}:query")),
        TargetContender(Target(f"{HERE}:quicker")),
        CompareSettings(plan=plan),
    )
    assert same.validation is not None
    assert (same.validation.mismatches, same.comparisons[0].difference) == (0, None)
    other = compare(
        TargetContender(Target(f"{HERE}:query")),
        TargetContender(Target(f"{HERE}:wrong", {"n": "4"})),
        CompareSettings(plan=plan),
    )
    assert other.exit_code == 2
