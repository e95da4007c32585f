import os
import signal
from collections.abc import Iterator

import pytest
from support.trainings import ctrl_c_heard

from hotloop.lab.stopping import Stop


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    with ctrl_c_heard():
        yield


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_ctrl_c_asks_and_the_second_interrupts() -> None:
    said: list[str] = []
    with Stop(said.append) as stop:
        press()
        assert stop.asked
        assert len(said) == 1
        with pytest.raises(KeyboardInterrupt):
            press()


def test_afterwards_ctrl_c_is_what_it_was() -> None:
    with Stop(print):
        pass
    with pytest.raises(KeyboardInterrupt):
        press()


def test_who_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Stop(print) as stop:
        press()
        assert not stop.asked
