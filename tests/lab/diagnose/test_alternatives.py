"""Other ways of a phase, and settings before and after: what both come to, and how sure that is."""

from dataclasses import replace
from typing import Any

import pytest
from support.records import PROFILE
from support.sides import FakeContender

from hotloop.core.record import Record
from hotloop.core.record.comparison import PhaseRatio, Ratio
from hotloop.core.settings import Target
from hotloop.judge.diagnose import diagnose, since
from hotloop.lab import alternatives

OLD, NEW = Target("grid/toy", {"encoder": "original"}), Target("grid/toy", {"encoder": "optimized"})

LEVELS = (8.0, 8.4, 8.8, 8.5, 8.6, 8.1)
"""How many times as fast each pair of instances is, though its own turns never vary."""


def with_encoder(name: str, **method: Any) -> Record:
    target = replace(PROFILE.target, keys={"encoder": name}, variant={"encoder": name, "num_envs": 5})
    return replace(PROFILE, target=target, method=replace(PROFILE.method, **method))


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Sides whose times are made up: each old instance is as slow as the next level says."""
    sides: list[tuple[str, str]] = []
    levels = iter(LEVELS * 4)

    class Contender(FakeContender):
        def __init__(self, target: Target) -> None:
            old = target.keys["encoder"] == "original"
            ns = 1e6 * next(levels) if old else 1e6
            super().__init__(target.words, lambda _: ns)

        def side(self, policy: str, *, profile: bool = False, seed: int | None = None) -> Any:
            sides.append((self.name, policy))
            return super().side(policy, profile=profile)

    monkeypatch.setattr(alternatives, "TargetContender", Contender)
    return sides


def test_an_interval_is_as_wide_as_instances_differ_and_not_as_their_turns_do(
    played: list[tuple[str, str]],
) -> None:
    found = alternatives.side_by_side(OLD, NEW, "random", 0)
    assert (found.low, found.estimate, found.high) == pytest.approx((8.0, (8.4 * 8.5) ** 0.5, 8.8))
    assert found.pairs == alternatives.PAIRS
    assert len(played) == 2 * alternatives.PAIRS


def test_another_way_is_predicted_by_a_whole_step_and_what_is_seen_agrees(
    played: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A way of one phase that makes others faster too: by the phase alone it would be half of that."""
    there = Ratio(estimate=10.0, low=9.9, high=10.1, pairs=24)
    phases = (PhaseRatio(phase="observations", ratio=there, share=0.64, worth=2.36, control=False),)
    monkeypatch.setattr(alternatives, "compare_phases", lambda *_: phases)
    before, after = with_encoder("original"), replace(with_encoder("optimized"), run_id="later")
    (found,) = diagnose(before, alternatives.alternatives(before, budget_ns=0)).candidates
    assert found.gain == pytest.approx((8.4 * 8.5) ** 0.5)
    assert found.interval == pytest.approx((8.0, 8.8))
    (outcome,) = since(before, after, [found], alternatives.in_turns(before, after, budget_ns=0)).outcomes
    assert outcome.said == "as predicted"


def test_what_was_played_is_what_is_measured(played: list[tuple[str, str]]) -> None:
    """The same player on both sides and at both times; what cannot be played again is not measured."""
    before, after = (
        with_encoder(name, policy="teacher (replayed tape)") for name in ("original", "optimized")
    )
    assert alternatives.in_turns(before, after, budget_ns=0) is not None
    assert {policy for _, policy in played} == {"teacher"}
    assert {name for name, _ in played} == {
        f"grid/toy encoder={name} num_envs=5" for name in ("original", "optimized")
    }
    taped = with_encoder("optimized", policy="tape:mine.tape")
    assert alternatives.policy_of(taped) is None
    assert alternatives.in_turns(before, taped, budget_ns=0) is None
    assert alternatives.policy_of(replace(taped, kind="train")) == "random"


def test_turns_are_long_enough_for_the_quicker_side() -> None:
    length = alternatives.length_for([8e4, 1e4], grain=4, budget_ns=10**12)
    assert length.env_steps * 1e4 == alternatives.QUICKER_NS
    assert alternatives.length_for([8e4, 1e4], grain=4, budget_ns=0).env_steps == 4
