from collections.abc import Callable
from typing import Any

import pytest

from hotloop.core.errors import ExitCode
from hotloop.lab import doctor as lab

Command = Callable[..., Any]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the load of an otherwise quiet machine."""
    facts = lab.gather() | {"usable_cores": 2, "steal_share": 0.0, "timer_ns": 50.0}

    def set_load(load: float) -> None:
        monkeypatch.setattr(lab, "gather", lambda: facts | {"load": load})

    return set_load


def test_a_fit_machine_is_fine(hotloop: Command, load: Callable[[float], None]) -> None:
    load(0.1)
    said = hotloop("doctor")
    assert said.code == ExitCode.FINE
    assert said.out.splitlines()[-1] == "fit to measure"


def test_an_unfit_machine_cannot_tell(hotloop: Command, load: Callable[[float], None]) -> None:
    load(9.0)
    said = hotloop("doctor")
    assert said.code == ExitCode.CANNOT_TELL
    assert said.out.splitlines()[-1] == "not fit to measure now"
    assert "stop other work" in said.out


def test_json_has_the_verdict_the_checks_and_the_facts(
    hotloop: Command, load: Callable[[float], None]
) -> None:
    load(9.0)
    answer = hotloop("doctor", "--json").json
    assert answer["fit"] is False
    assert {"name": "load", "state": "bad"}.items() <= answer["checks"][1].items()
    assert answer["facts"]["load"] == 9.0


def test_extras_are_named_with_their_brackets(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = lab.gather() | {"torch": None}
    monkeypatch.setattr(lab, "gather", lambda: facts)
    assert "[train]'" in "".join(hotloop("doctor").out.split())
