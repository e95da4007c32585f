import pytest

from hotloop.core.errors import InputError
from hotloop.core.record.comparison import A, B
from hotloop.core.settings import Target
from hotloop.lab.compare.compare import ratios
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.sides import SubjectSide

ROUNDS = 24


def costs(**phases: float) -> list[dict[str, float]]:
    """Rounds whose costs vary by a thousandth, alternately."""
    return [{name: ns * (1 + k % 3 / 1_000) for name, ns in phases.items()} for k in range(ROUNDS)]


MEASURED = {
    A: costs(python=10, actions=30, observations=60),
    B: costs(python=10, actions=30, observations=20),
}


def test_each_phase_has_its_ratio_its_share_and_its_worth():
    observations = next(each for each in ratios(MEASURED, None) if each.phase == "observations")
    assert observations.ratio.estimate == pytest.approx(3.0, rel=0.01)
    assert observations.share == pytest.approx(0.6)
    assert observations.worth == pytest.approx(100 / 60, rel=0.01)  # 60 of 100 become 20


def test_the_control_is_the_phase_that_was_named():
    assert [each.phase for each in ratios(MEASURED, "actions") if each.control] == ["actions"]
    assert not any(each.control for each in ratios(MEASURED, None))
    with pytest.raises(InputError, match=r"unknown phase 'action': did you mean actions\?"):
        ratios(MEASURED, "action")


def test_a_phase_too_short_for_its_clock_is_left_out():
    measured = {side: costs(actions=1_000, rewards=1) for side in (A, B)}
    assert [each.phase for each in ratios(measured, None)] == ["actions"]


def test_intervals_are_wider_where_many_phases_are_looked_at():
    def spread(count: int) -> float:
        names = [f"phase{k}" for k in range(count)]
        noisy = {
            side: [dict.fromkeys(names, 100 + (k * 37 + shift) % 17) for k in range(ROUNDS)]
            for shift, side in enumerate((A, B))
        }
        found = ratios(noisy, None)[0].ratio
        return found.high / found.low

    assert spread(12) > spread(1)


def test_a_turn_of_an_instrumented_side_times_its_phases():
    side = TargetContender(Target("grid/toy", {"num_envs": "2"})).side("random", profile=True)
    assert isinstance(side, SubjectSide)
    turn = side.turn(20)
    assert {"actions", "observations", "step"} <= turn.phases.keys()
    assert 0 < sum(ns for name, ns in turn.phases.items() if name != "step") <= turn.phases["step"] * 1.01
    assert TargetContender(Target("grid/toy", {"num_envs": "2"})).side("random").turn(20).phases == {}
