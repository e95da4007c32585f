import json
from typing import Any

import pytest

from hotloop.lab.doctor import examine, gather, installed_version, is_fit, timer_ns

QUIET: dict[str, Any] = {
    "cores": 8,
    "usable_cores": 8,
    "cpu": "Example CPU",
    "load": 0.2,
    "steal_share": 0.0,
    "governor": "performance",
    "clocksource": "tsc",
    "timer_ns": 40.0,
    "compiler": "/usr/bin/c++",
    "native": {"compiler": "GNU 12", "flags": "-O3"},
    "torch": "2.4",
    "gpu": None,
    "cuda": {"build": None, "device": None, "why_not": "no module"},
    "py_spy": "/usr/bin/py-spy",
    "may_trace": True,
}


def states(**facts: Any) -> dict[str, str]:
    """The checks that are not ok."""
    return {check.name: check.state for check in examine(QUIET | facts) if check.state != "ok"}


def test_a_quiet_machine_with_everything_is_fit() -> None:
    assert states() == {}
    assert is_fit(examine(QUIET))


def test_a_machine_that_does_not_say_is_not_blamed() -> None:
    assert states(load=None, steal_share=None, governor=None, clocksource=None, may_trace=None) == {}


@pytest.mark.parametrize(
    ("facts", "found"),
    [
        ({"usable_cores": 1}, {"cores": "warn"}),
        ({"load": 4.1}, {"load": "warn"}),
        ({"load": 8.1}, {"load": "bad"}),
        ({"steal_share": 0.02}, {"steal": "warn"}),
        ({"steal_share": 0.2}, {"steal": "bad"}),
        ({"governor": "powersave"}, {"governor": "warn"}),
        ({"clocksource": "hpet"}, {"clock source": "warn"}),
        ({"timer_ns": 300.0}, {"timer": "warn"}),
        ({"timer_ns": 3_000.0}, {"timer": "bad"}),
        ({"compiler": None}, {"compiler": "warn"}),
        ({"native": None}, {"native module": "warn"}),
        ({"torch": None}, {"torch": "warn"}),
        ({"py_spy": None}, {"py-spy": "warn"}),
        ({"may_trace": False}, {"py-spy": "warn"}),
    ],
)
def test_what_spoils_measuring_is_found(facts: dict[str, Any], found: dict[str, str]) -> None:
    assert states(**facts) == found
    assert is_fit(examine(QUIET | facts)) is ("bad" not in found.values())


def test_every_line_that_is_not_ok_says_what_to_do() -> None:
    busy = {"usable_cores": 1, "load": 9.0, "steal_share": 0.5, "governor": "powersave"}
    slow = {"clocksource": "hpet", "timer_ns": 9_000.0}
    bare = dict.fromkeys(("compiler", "native", "torch", "py_spy"))
    for check in examine(QUIET | busy | slow | bare):
        assert bool(check.remedy) is (check.state != "ok")


def test_the_facts_of_this_machine_can_be_examined_and_printed() -> None:
    facts = gather()
    assert len(examine(facts)) == len(examine(QUIET))
    assert json.loads(json.dumps(facts)) == facts


def test_a_clock_reading_costs_something() -> None:
    assert timer_ns(reads=10, tries=3) > 0


def test_a_package_that_is_not_there_has_no_version() -> None:
    assert installed_version("hotloop-no-such-package") is None
    assert installed_version("numpy")
