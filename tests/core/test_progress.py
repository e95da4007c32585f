import os
import signal
from collections.abc import Iterator

import pytest
from support.trainings import ctrl_c_heard

from hotloop.core.progress import InterruptFlag


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    with ctrl_c_heard():
        yield


def press(number: int = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_asks_and_the_second_interrupts(number: int) -> None:
    said: list[str] = []
    before = signal.getsignal(number)
    with InterruptFlag(said.append) as stop:
        press(number)
        assert stop.asked
        assert len(said) == 1
        with pytest.raises(KeyboardInterrupt):
            press(number)
    assert signal.getsignal(number) is before


def test_afterwards_ctrl_c_is_what_it_was() -> None:
    with InterruptFlag(print):
        pass
    with pytest.raises(KeyboardInterrupt):
        press()


def test_who_ignores_ctrl_c_goes_on_ignoring_it() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with InterruptFlag(print) as stop:
        press()
        assert not stop.asked
        press(signal.SIGTERM)
        assert stop.asked, "a SIGTERM is not ignored"
