"""Sampling a program from outside: py-spy at its first Python process, and at all that this one starts."""

import threading
import time
from collections import Counter
from pathlib import Path

from hotloop.core.probe import Obstacle, ProbeError
from hotloop.core.record.stacks import Stack
from hotloop.lab.programs import within
from hotloop.probes._outside import RATE, OutsideSampler
from hotloop.probes.pyspy import OURS
from hotloop.probes.samples import FEWEST, OUTSIDE, Seen

EVERY_S = 0.02
"""Between two looks for the first Python process."""

COVERED = 0.8
"""Share of the program's time that py-spy must have looked; it takes a moment to begin."""

TOO_SHORT = Obstacle(
    why="py-spy saw too little of the program", remedy="profile a run of at least several seconds"
)


class Spy:
    """Waits in a thread until a Python process of the program is ready, and has py-spy sample it."""

    def __init__(self, room: Path) -> None:
        self._room = room
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hotloop-spy", daemon=True)
        self._counts: Counter[Stack] = Counter()
        self._covered = 0.0
        self._obstacle: Obstacle | None = None

    def begin(self) -> None:
        """Start waiting for the program's Python."""
        self._thread.start()

    def end(self) -> None:
        """Stop py-spy if it still samples, and wait for what it writes."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def seen(self) -> Seen | Obstacle:
        """Return the samples from outside, or why those from inside must do."""
        if self._obstacle is not None:
            return self._obstacle
        ns: Counter[Stack] = Counter()
        # As the program ends, Hotloop's code in it writes what it saw: that is not the program's time.
        counts = {each: count for each, count in self._counts.items() if not each[0][1].startswith(OURS)}
        for stack, count in counts.items():
            ns[within.without_imports(stack)] += round(count * 1e9 / RATE)
        samples = sum(counts.values())
        if samples < FEWEST or self._covered < COVERED:
            return TOO_SHORT
        return Seen(ns=ns, samples=samples)

    def _run(self) -> None:
        while not (ready := sorted(self._room.glob("*.ready"), key=lambda path: path.stat().st_mtime_ns)):
            if self._over.wait(EVERY_S):
                self._obstacle = TOO_SHORT
                return
        try:
            with OutsideSampler(self._room / OUTSIDE, int(ready[0].stem), subprocesses=True) as sampler:
                begun_ns = time.time_ns()
                self._over.wait()
                ended_ns = time.time_ns()
            self._covered = (ended_ns - begun_ns) / max(1, ended_ns - ready[0].stat().st_mtime_ns)
            self._counts = sampler.counts
        except ProbeError as error:
            self._obstacle = error.obstacle
