"""Stopping where it is safe: Ctrl-C lets work under way be finished; pressed again it ends it at once."""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self


class Stop:
    """Whether somebody asked to stop, while it is entered; only the main thread hears of Ctrl-C."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._before: Any = None
        self.asked = False

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._say("stopping after this update, with a checkpoint; Ctrl-C again stops at once")
