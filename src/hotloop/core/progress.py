"""How an experiment says how far it is, and how it is interrupted where that is safe.

Ctrl-C, SIGTERM from a scheduler and SIGHUP from a closed terminal let work under way be finished; the second
one ends it at once.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Self

from hotloop.core.process import lifeline

# Called between measurements with what is done and what there is in all.
Progress = Callable[[int, int], None]


def silent(done: int, total: int) -> None:
    """Listen to nothing."""


ENDINGS = (signal.SIGTERM, signal.SIGHUP)  # Signals that interrupt a command as Ctrl-C does

SIGNALS: tuple[signal.Signals, ...] = (signal.SIGINT, *ENDINGS)

Handler = Callable[[int, FrameType | None], None]

OURS: list[Handler] = []  # Handlers of these signals that are set


def not_in_children(handler: Handler) -> Handler:
    """The handler, which forked processes are rid of: a program that ends its workers expects them to end."""
    if handler not in OURS:
        OURS.append(handler)
    return handler


def forget() -> None:
    """What a forked process does first."""
    for each in ENDINGS:
        if signal.getsignal(each) in OURS:
            signal.signal(each, signal.SIG_DFL)


os.register_at_fork(after_in_child=forget)


class InterruptFlag:
    """Whether the user asked to stop, while it is entered; only the main thread hears of it."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._handling = ExitStack()
        self.asked = False

    def __enter__(self) -> Self:
        # A supervisor passes on Ctrl-C alone; the other signals there are the target's own.
        signals = SIGNALS if lifeline.line is None else SIGNALS[:1]
        self._handling.enter_context(handling(self._hear, signals))
        return self

    def __exit__(self, *_: object) -> None:
        self._handling.close()

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._say("stopping after this update, with a checkpoint; Ctrl-C again stops at once")


@contextmanager
def defer_interrupt() -> Iterator[list[int]]:
    """Note an interruption instead of raising it; yield the list of signals that came."""
    pressed: list[int] = []
    with handling(lambda number, _: pressed.append(number)):
        yield pressed


@contextmanager
def handling(handler: Handler, signals: Sequence[signal.Signals] | None = None) -> Iterator[None]:
    """Handle signals, by default those that would interrupt the command now; an ignored one stays ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in SIGNALS}
    if signals is None:
        signals = [signal.SIGINT, *(each for each in ENDINGS if before[each] in OURS)]
    heard = [each for each in signals if before[each] is not signal.SIG_IGN]
    for each in heard:
        signal.signal(each, not_in_children(handler))
    try:
        yield
    finally:
        for each in heard:
            signal.signal(each, before[each])
        if handler in OURS:
            OURS.remove(handler)
