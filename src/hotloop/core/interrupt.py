"""Interruption where it is safe: Ctrl-C lets work under way be finished; pressed again it ends it at once.

A scheduler that wants its machine back sends SIGTERM, and is heard just as well.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

from hotloop.core.isolate import lifeline

SIGNALS = (signal.SIGINT, signal.SIGTERM)

Handler = Callable[[int, FrameType | None], None]

OURS: list[Handler] = []
"""Handlers of SIGTERM that are set."""


def not_in_children(handler: Handler) -> Handler:
    """The handler, which forked processes are rid of: whoever ends his workers expects them to end."""
    if handler not in OURS:
        OURS.append(handler)
    return handler


def forget() -> None:
    """What a forked process does first."""
    if signal.getsignal(signal.SIGTERM) in OURS:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


os.register_at_fork(after_in_child=forget)


class Stop:
    """Whether somebody asked to stop, while it is entered; only the main thread hears of it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._before: dict[int, Any] = {}
        self.asked = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            # Where somebody watches over this process, it passes on a Ctrl-C; a SIGTERM is the target's own.
            signals = SIGNALS if lifeline.line is None else SIGNALS[:1]
            heard = [each for each in signals if signal.getsignal(each) is not signal.SIG_IGN]
            self._before = {each: signal.signal(each, not_in_children(self._hear)) for each in heard}
        return self

    def __exit__(self, *_: object) -> None:
        for each, before in self._before.items():
            signal.signal(each, before)
        if self._hear in OURS:
            OURS.remove(self._hear)
        self._before = {}

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._say("stopping after this update, with a checkpoint; Ctrl-C again stops at once")


@contextmanager
def put_off_interrupt() -> Iterator[list[int]]:
    """Take down a Ctrl-C instead of raising it, where it would have been raised: here, and not ignored."""
    pressed: list[int] = []
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield pressed
        return
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def hear_interrupt(heard: Callable[[], None]) -> Iterator[None]:
    """Call something at every Ctrl-C instead of raising it, where it would have been raised."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: heard())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
