"""Who writes: a thread that takes what waits in a queue, or whoever hands it over."""

import sqlite3
import threading
from collections.abc import Callable
from queue import Full, Queue
from typing import Generic, TypeVar

from hotloop.core.clock import now_ns

T = TypeVar("T")

Trouble = (sqlite3.Error, OSError)
"""What a disk or a database may come with."""


class Direct(Generic[T]):
    """Writes at once, in the thread of whoever steps."""

    waits = wait_ns = 0

    def __init__(self, write: Callable[[T], None]) -> None:
        self._write = write
        self.trouble: Exception | None = None

    def put(self, item: T) -> None:
        if self.trouble is None:
            try:
                self._write(item)
            except Trouble as error:
                self.trouble = error

    def drain(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing waits."""


class Background(Generic[T]):
    """A thread and the queue before it; a full queue makes whoever steps wait, and nothing is dropped.

    After trouble the thread takes what comes and writes none of it, so that nobody waits for ever; a fault is
    trouble, too, and for whoever steps to raise.
    """

    def __init__(self, write: Callable[[T], None], places: int) -> None:
        self._write = write
        self._queue: Queue[T | None] = Queue(places)
        self.trouble: Exception | None = None
        self.waits = self.wait_ns = 0
        self._thread = threading.Thread(target=self._run, name="hotloop-log", daemon=True)
        self._thread.start()

    def put(self, item: T) -> None:
        try:
            self._queue.put_nowait(item)
        except Full:
            begin = now_ns()
            self._queue.put(item)
            self.waits += 1
            self.wait_ns += now_ns() - begin

    def drain(self) -> None:
        self._queue.join()

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            try:
                if self.trouble is None:
                    self._write(item)
            except Exception as error:  # noqa: BLE001 - whoever steps raises it
                self.trouble = error
            finally:
                self._queue.task_done()
