"""A run around somebody's own loop: windows of updates, an account of their time, and a record at the end."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import get_ident
from types import TracebackType
from typing import Any, Protocol, Self

from hotloop.core import spans
from hotloop.core.clock import clock_cost_ns, thread_ns
from hotloop.core.errors import InputError
from hotloop.core.interrupt import put_off_interrupt
from hotloop.core.record import Record
from hotloop.lab.diagnose import causal
from hotloop.lab.diagnose.causal import Experiment
from hotloop.lab.loop.account import Account, Ended, Timing, cuda_runs, elsewhere, open_account
from hotloop.lab.loop.record import Found, Origin, record_of, trace_of
from hotloop.lab.loop.windows import SAMPLES, STEPS, UPDATES, Counted, LoopWindow, Windows, whole
from hotloop.lab.measure.stepping import PauseClock
from hotloop.lab.profile.calls import Timeline
from hotloop.probes.resources import Sampler, reader

SAMPLE_S = 1.0
"""Between two looks at memory, CPU and GPU; one takes milliseconds."""

TRACED = 50_000
"""Spans and marks that a trace holds: the first ones of the run."""

READS = 200
"""Of a thread's clock, to see what one costs."""

LONGEST_WORDS = 300
"""Of an error, in a record."""

OURS = "hotloop"
"""The row of what the run itself does when a window ends."""

NO_UPDATES = "to iterate over a run give it updates=N; or use `with` and run.count(updates=1)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a run is to do."""

    name: str
    every: int = 10
    """Updates of a window; 0 is one window for all."""
    updates: int | None = None
    """To be made; only a run that is iterated over needs it."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """What changes results: runs that differ in it are unlike."""
    variant: Mapping[str, Any] = field(default_factory=dict)
    """What must not change results."""
    timing: Timing = "auto"
    wait: Callable[[], None] | None = None
    """Called at every boundary: returns when the work begun so far is done."""
    cpu: bool = True
    """Whether spans read the CPU clock of their thread, where the host's clock times them."""
    traced: int = TRACED

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("a run needs a name: hotloop.run('my-ppo')")
        for what, number in (("every", self.every), ("updates", self.updates), ("traced", self.traced)):
            if number is not None:
                whole(what, number)


class Watch(Protocol):
    """Who looks on, and keeps what was found."""

    def window(self, window: LoopWindow) -> None: ...

    def keep(self, record: Record, trace: Any) -> None:
        """Take the finished record and its trace; never raises what is not a fault of ours."""

    def close(self) -> None: ...


_open: "Run | None" = None


class Run:
    """Entered around a loop, or iterated over; `count` says what the loop did."""

    def __init__(self, asked: Asked, watch: Watch) -> None:
        self.asked = asked
        self.record: Record | None = None
        """Of the whole run, once it has ended."""
        self._watch = watch
        self._counts = {UPDATES: 0, STEPS: 0, SAMPLES: 0}
        self._due = 0
        """Updates at which the window ends; 0 is never."""
        self._experiment: Experiment | None = None

    def __enter__(self) -> Self:
        global _open  # noqa: PLW0603 - like the spans themselves, one for the process
        if _open is not None:
            raise InputError(
                f"run {_open.asked.name!r} is open and {self.asked.name!r} would be inside it: "
                "end it first, and use spans for the parts of one run"
            )
        if self.record is not None:
            raise InputError(f"run {self.asked.name!r} has ended: begin another with hotloop.run")
        self._was_on, self._was_clocked, self._origin = spans.enabled(), spans.clocked(), Origin.now()
        self._sampler = Sampler(reader(), SAMPLE_S)
        self._begin_account()
        _open = self
        return self

    def _begin_account(self) -> None:
        self._windows, self._pending = Windows(), deque[tuple[Counted, Ended]]()
        self._so_far = {UPDATES: 0, STEPS: 0}
        self._counted = dict(self._counts)
        self._thread, self._due = get_ident(), self.asked.every
        self._hosted = False
        self._account: Account = open_account(self.asked.timing, self.asked.wait)
        spans.watch(self._account.boundary)
        self._mark_ns, self._thread_clock_ns = spans.mark_cost_ns(), clock_cost_ns(READS, thread_ns)
        self._sampler.__enter__()
        self._pauses = PauseClock().__enter__()
        self._timeline = Timeline()
        spans.keep(self.asked.traced)
        spans.enable(cpu=self.asked.cpu and self._account.how != "events")
        self._account.begin()
        self._experiment = causal.from_environment()
        if self._experiment is not None:
            self._experiment.begin()

    def count(self, *, updates: int = 0, steps: int = 0, samples: int = 0) -> None:
        """Say what the loop has done since it said so last; a window ends with its last update."""
        counts = self._counts
        if steps:
            counts[STEPS] += whole("steps", steps)
        if samples:
            counts[SAMPLES] += whole("samples", samples)
        if updates:
            counts[UPDATES] += whole("updates", updates)
            if self._experiment is not None:
                self._experiment.turn()
            if 0 < self._due <= counts[UPDATES] and get_ident() == self._thread:
                self._turn()

    def __iter__(self) -> Iterator[int]:
        """The numbers of the updates from 0; each turn of the loop is counted as one."""
        total = self.asked.updates
        if total is None:
            raise InputError(NO_UPDATES)
        made = 0
        if _open is self:
            while made < total:
                yield made
                made += 1
                self.count(updates=1)
            return
        self.__enter__()
        try:
            while made < total:
                yield made
                made += 1
                self.count(updates=1)
        finally:
            short = None if made == total else f"the loop after {made} of its {total} updates"
            self._end(short)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(None if kind is None else " ".join(f"{kind.__name__}: {error}".split())[:LONGEST_WORDS])

    def _turn(self) -> None:
        """End a window; what that takes belongs to the next one."""
        ended, counts = self._account.turn(), self._counts
        gained = {name: counts[name] - before for name, before in self._counted.items()}
        self._counted = dict(counts)
        self._due = counts[UPDATES] + self.asked.every if self.asked.every else 0
        self._pending.append((Counted(counts=gained, wall_ns=0), ended))
        with spans.span(OURS):
            self._read_pending()
        if self._account.how != "events" and self.asked.wait is None and cuda_runs():
            self._go_on_with_events()

    def _go_on_with_events(self) -> None:
        """The loop has begun to use a GPU: what was timed so far is said to be the host's."""
        if self.asked.timing != "auto":
            return
        self._hosted = True
        self._account = open_account("auto", None)
        spans.watch(self._account.boundary)

    def _read_pending(self, *, wait: bool = False) -> None:
        """Read the windows whose times are known, in their order."""
        if wait:
            self._account.wait()
        while self._pending and (wait or self._pending[0][1].ready):
            counted, ended = self._pending.popleft()
            times = ended.read()
            told = Counted(counts=counted.counts, wall_ns=times.wall_ns)
            self._windows.add(told, times)
            for name in self._so_far:
                self._so_far[name] += told.counts[name]
            if any(told.counts.values()):
                self._watch.window(
                    LoopWindow(
                        name=self.asked.name,
                        updates=self._so_far[UPDATES],
                        steps=self._so_far[STEPS],
                        counted=told,
                        times=times,
                    )
                )

    def _end(self, broken: str | None) -> None:
        """Stop looking, make the record, and let whoever looks on keep it; Ctrl-C waits for that."""
        with put_off_interrupt() as pressed:
            try:
                found = self._stop(broken)
            finally:
                self._let_go()
            self.record = record_of(found)
            self._keep(self.record)
            self._watch.close()
            spans.keep(0)
            if self._was_on:
                spans.enable(cpu=self._was_clocked)
        if pressed and broken is None:
            raise KeyboardInterrupt

    def _keep(self, record: Record) -> None:
        """Hand the record over; of a loop that was delayed, only what the delays came to."""
        if self._experiment is not None:
            causal.write(self._experiment)
        else:
            self._watch.keep(record, trace_of(self._timeline, record) if self.asked.traced else None)

    def _stop(self, broken: str | None) -> Found:
        if self._experiment is not None:
            self._experiment.end()
        left_open = spans.opened()
        self._due = 0
        self._turn()
        spans.watch(None)
        self._read_last(broken)
        spans.disable()
        self._timeline.read_clock()
        return Found(
            asked=self.asked,
            origin=self._origin,
            windows=self._windows,
            counts=dict(self._counts),
            left_open=left_open,
            threads=elsewhere(),
            how=self._account.how,
            hosted=self._hosted,
            mark_ns=self._mark_ns,
            thread_clock_ns=self._thread_clock_ns,
            samples=self._sampler.samples,
            pauses=self._pauses.pauses,
            broken=broken,
        )

    def _read_last(self, broken: str | None) -> None:
        """Wait once, now that the loop is over; a device that failed with it tells no times any more."""
        try:
            self._read_pending(wait=True)
        except RuntimeError:
            if broken is None:
                raise
            self._pending.clear()

    def _let_go(self) -> None:
        global _open  # noqa: PLW0603
        spans.watch(None)
        spans.disable()
        self._pauses.__exit__()
        self._sampler.__exit__(None, None, None)
        _open = None


class Off:
    """A run that is switched off: it counts nothing, times nothing and writes nothing."""

    record: Record | None = None

    def __init__(self, updates: int | None = None) -> None:
        self._updates = updates

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __iter__(self) -> Iterator[int]:
        if self._updates is None:
            raise InputError(NO_UPDATES)
        return iter(range(self._updates))

    def count(self, *, updates: int = 0, steps: int = 0, samples: int = 0) -> None:
        """Nothing is counted."""
