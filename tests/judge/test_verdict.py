from dataclasses import replace

import pytest

from hotloop.core.record import PhaseRatio, Ratio
from hotloop.judge.compare import Evidence, weigh

FASTER = Ratio(estimate=1.2, low=1.18, high=1.22, pairs=40)
EQUAL = Ratio(estimate=1.0, low=0.995, high=1.005, pairs=40)
FOUND = Evidence(band=0.02, ratio=FASTER, noise=EQUAL)


def phase(ratio: Ratio, *, control: bool) -> tuple[PhaseRatio, ...]:
    return (PhaseRatio(phase="actions", ratio=ratio, share=0.2, worth=1.04, control=control),)


def test_a_control_that_moved_forbids_a_verdict():
    outcome, why = weigh(replace(FOUND, phases=phase(FASTER, control=True)))
    assert outcome == "cannot tell"
    assert why == "actions, which the change cannot touch, moved by 20.0%"


@pytest.mark.parametrize("phases", [phase(EQUAL, control=True), phase(FASTER, control=False)])
def test_a_control_that_stood_still_and_a_phase_that_may_move_forbid_nothing(phases):
    assert weigh(replace(FOUND, phases=phases))[0] == "faster"


def test_a_difference_outranks_whatever_was_timed():
    outcome, why = weigh(replace(FOUND, difference="step 3, rewards[0]: 1.0 against 2.0"))
    assert outcome == "cannot tell"
    assert why.startswith("the sides answer differently: step 3")


def test_without_an_interval_nothing_can_be_told():
    assert weigh(replace(FOUND, ratio=None))[0] == "cannot tell"
