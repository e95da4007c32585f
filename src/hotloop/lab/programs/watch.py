"""Watching a program from outside while it runs: what its processes and their threads use."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hotloop.core.record.profile import Finding, Table
from hotloop.probes.resources import EVERY_S, Sample, describe, reader
from hotloop.probes.threads import BUSY_SHARE

THREADS_EVERY = 4
"""Samples of the whole between two of the threads."""

COLUMNS = ("thread", "cpu_ns", "cpu_share")


class Outside:
    """Takes samples of a program from its beginning until it is told to end, or the program has gone."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self.threads: dict[tuple[int, int], tuple[str, int]] = {}
        """Process and thread to its name and the CPU ns it had used when it was last seen."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, pid: int) -> None:
        """Called with the program's pid as it starts."""
        import psutil

        with suppress(psutil.NoSuchProcess):
            read = reader(pid)
            self._thread = threading.Thread(
                target=self._run, args=(pid, read), name="hotloop-watch", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    def _run(self, pid: int, read: Callable[[], Sample]) -> None:
        import psutil

        number = 0
        with suppress(psutil.NoSuchProcess, ValueError):  # it has gone, or all of it has
            while True:
                self.samples.append(read())
                if number % THREADS_EVERY == 0:
                    self._look_at_threads(psutil.Process(pid))
                number += 1
                if self._over.wait(EVERY_S):
                    return

    def _look_at_threads(self, root: Any) -> None:
        import psutil

        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                for each in process.threads():
                    ns = round((each.user_time + each.system_time) * 1e9)
                    self.threads[process.pid, each.id] = (name_of(process.pid, each.id), ns)

    def resources(self) -> Finding | None:
        """What all of it used; None where it was gone before two looks at it."""
        return describe(self.samples, 0) if len(self.samples) > 1 else None

    def by_thread(self, wall_ns: int) -> Finding:
        """CPU time of each thread, as it was last seen."""
        used = sorted(self.threads.values(), key=lambda item: -item[1])
        rows = tuple((name, ns, ns / wall_ns) for name, ns in used)
        busy = sum(share > BUSY_SHARE for _, _, share in rows)
        table = Table(title="CPU time by thread", columns=COLUMNS, rows=rows)
        return Finding(probe="threads", facts={"threads": len(rows), "busy_threads": busy}, tables=(table,))


def name_of(pid: int, thread: int) -> str:
    """The kernel's name of a thread, which is the program's own for the first one."""
    try:
        name = Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip()
    except OSError:
        name = "thread"
    return f"{name} {thread}"
