"""A run around a user's loop: windows of updates, an account of their time, and a record at the end."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import get_ident
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from hotloop.core import spans
from hotloop.core.clock import clock_cost_ns, now_ns, thread_ns
from hotloop.core.errors import InputError, SetupError
from hotloop.core.machine import need
from hotloop.core.progress import defer_interrupt
from hotloop.core.record import Record
from hotloop.core.record.profile import Finding
from hotloop.core.spans import resident_bytes
from hotloop.core.spans.device import Blocking, DeviceStream
from hotloop.core.spans.python import Boundary, Relay
from hotloop.core.time_tree import How, TimeTree, add
from hotloop.core.turn_clock import queued_ns
from hotloop.lab import causal
from hotloop.lab.causal import Experiment
from hotloop.lab.loop.record import (
    SAMPLES,
    STEPS,
    UPDATES,
    LoopLook,
    LoopWindow,
    RunMetadata,
    RunResult,
    Windows,
    cuda_runs,
    keep_few,
    record_of,
    total,
    trace_of,
    whole_number,
)
from hotloop.lab.measure.sides import PauseClock
from hotloop.lab.profile.calls import Timeline
from hotloop.probes.resources import Sampler, reader

if TYPE_CHECKING:
    from hotloop.probes.torch import TorchWindow

SAMPLE_S = 1.0  # Between two looks at memory, CPU and GPU; one takes milliseconds
TRACED = 50_000  # Spans and marks that a trace holds: the first ones of the run
READS = 200  # Of a thread's clock, to see what one costs
LONGEST_WORDS = 300  # Of an error, in a record
OURS = "hotloop"  # The row of what the run itself does when a window ends
LEAST_LOOK_NS = 20_000_000  # Between two looks at speed and memory: one takes up to 0.2 ms

NEVER_NS = 1 << 63

TURNS = ("wait", "warmup", "active")  # What torch's profiler is told, in updates

NO_UPDATES = "to iterate over a run give it updates=N; or use `with` and run.count(updates=1)"


Timing = Literal["auto", "events", "sync", "host"]

TIMINGS: tuple[Timing, ...] = ("auto", "events", "sync", "host")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopOptions:
    """What a run is to do."""

    name: str
    every: int = 10  # Updates of a window; 0 is one window for all
    updates: int | None = None  # To be made; only a run that is iterated over needs it
    # What changes results: runs that differ in it are unlike.
    params: Mapping[str, Any] = field(default_factory=dict)
    variant: Mapping[str, Any] = field(default_factory=dict)  # What must not change results
    timing: Timing = "auto"
    # Called at every boundary: returns when the work begun so far is done.
    wait: Callable[[], None] | None = None
    cpu: bool = True  # Whether spans read the CPU clock of their thread, where the host's clock times them
    traced: int = TRACED
    # Phase to the steps per second that are expected, from the least to the most.
    expect: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # Updates that torch's profiler waits, warms up for and keeps; None leaves it off.
    profiler: Mapping[str, int] | None = None
    trace_path: Path | None = None  # Where torch's profiler leaves its trace

    def __post_init__(self) -> None:
        for phase, ends in self.expect.items():
            if not 0 < ends[0] <= ends[1]:
                raise InputError(f"expect {phase}={ends!r}: expected (least, most) in steps per second")
        if not self.name.strip():
            raise InputError("a run needs a name: hotloop.run('my-ppo')")
        for what, number in (("every", self.every), ("updates", self.updates), ("traced", self.traced)):
            if number is not None:
                whole_number(what, number)
        unknown = sorted({*(self.profiler or {})} - {*TURNS})
        if unknown:
            raise InputError(f"profiler {unknown[0]!r} does not fit: it takes {', '.join(TURNS)}")
        if self.profiler is not None and self.trace_path is None:
            raise InputError("profiler= leaves a trace: give the run an output folder")


class RunObserver(Protocol):
    """Is shown the windows, and keeps the record."""

    def window(self, window: LoopWindow) -> None: ...

    def keep(self, record: Record, trace: Any) -> None:
        """Take the finished record and its trace; never raises what is not a fault of ours."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class EndedWindow:
    """A window that has ended, whose times may not be known yet."""

    is_ready: Callable[[], bool]  # Whether it can be read without waiting for a device
    read: Callable[[], TimeTree]


class HostAccount:
    """The host's clock: a window is what this thread's tree gained in it."""

    def __init__(self, how: How = "sync", boundary: Boundary | None = None) -> None:
        self.how: How = how
        self.boundary = boundary
        self.begin()

    def begin(self) -> None:
        self._now = TimeTree(
            total_ns=now_ns(),
            cpu_ns=thread_ns() if spans.clocked() else None,
            children=spans.tree_here(),
            how=self.how,
        )

    def turn(self) -> EndedWindow:
        """End the window here and begin the next; spans that are open go on in it."""
        before = self._now
        self.begin()
        times = self._now - before
        return EndedWindow(lambda: True, lambda: times)

    def wait(self) -> None:
        """Return when every window that has ended can be read."""


class StreamAccount:
    """Events on a stream: a window is known when the device has passed its last event."""

    how: How = "events"

    def __init__(self, stream: DeviceStream, wait: Callable[[], None]) -> None:
        self.boundary: DeviceStream = stream
        self.wait = wait

    def begin(self) -> None:
        self.boundary.begin()

    def turn(self) -> EndedWindow:
        stream, window = self.boundary, self.boundary.turn()

        def read() -> TimeTree:
            children = stream.tree_of(window)  # which reads the events, and so the window's time
            return TimeTree(total_ns=window.wall_ns, children=children, how="events")

        return EndedWindow(lambda: window.ready, read)


Account = HostAccount | StreamAccount  # Times windows that follow one another without a gap


def open_account(timing: Timing, wait: Callable[[], None] | None) -> Account:
    """Open the account that was asked for; `auto` takes events if torch works on a GPU already."""
    if timing not in TIMINGS:
        raise InputError(f"timing={timing!r} does not fit: expected one of {', '.join(TIMINGS)}")
    if wait is not None:
        return HostAccount("sync", Blocking(wait))
    gpu = cuda_runs()
    if timing == "events" and not gpu:
        raise InputError("timing='events' needs a GPU that torch uses: move the model there before the run")
    if gpu and timing in ("auto", "events"):
        from hotloop.train.timing import cuda_stream, cuda_waiter

        return StreamAccount(cuda_stream(), cuda_waiter())
    if gpu and timing == "sync":
        from hotloop.train.timing import cuda_wait

        return HostAccount("sync", cuda_wait())
    return HostAccount("async" if gpu else "sync")


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingLook:
    """A look whose times may not be known yet."""

    look: LoopLook  # Its times are still empty
    ended: EndedWindow
    ends_window: bool
    is_profiled: bool


_open: "Run | None" = None


class Run:
    """Entered around a loop, or iterated over; `count` says what the loop did."""

    def __init__(self, options: LoopOptions, observer: RunObserver) -> None:
        self.options = options
        self.record: Record | None = None
        """Of the whole run, once it has ended."""
        self._observer = observer
        self._counts = {UPDATES: 0, STEPS: 0, SAMPLES: 0}
        self._due = 0
        """Updates at which the window ends; 0 is never."""
        self._experiment: Experiment | None = None

    def __enter__(self) -> Self:
        global _open  # noqa: PLW0603 - like the spans themselves, one for the process
        if _open is not None:
            raise InputError(
                f"run {_open.options.name!r} is open and {self.options.name!r} would be inside it: "
                "end it first, and use spans for the parts of one run"
            )
        if self.record is not None:
            raise InputError(f"run {self.options.name!r} has ended: begin another with hotloop.run")
        self._was_on, self._was_clocked, self._origin = spans.enabled(), spans.clocked(), RunMetadata.now()
        self._sampler = Sampler(reader(), SAMPLE_S)
        self._windows, self._profiled, self._pending = Windows(), Windows(), deque[PendingLook]()
        self._looks: list[LoopLook] = []
        self._in_window: list[LoopLook] = []
        self._stage = ""
        self._so_far = {UPDATES: 0, STEPS: 0}
        self._counted = dict(self._counts)
        self._thread, self._due = get_ident(), self.options.every
        self._hosted = self._is_profiled = False
        self._account: Account = open_account(self.options.timing, self.options.wait)
        self._torch: TorchWindow | None = None
        profiler, path = self.options.profiler, self.options.trace_path
        if profiler is not None and path is not None:
            need("torch")
            from hotloop.probes import torch as probe

            turns = {name: int(count) for name, count in profiler.items()}
            self._torch = probe.TorchWindow(path, **turns)  # type: ignore[arg-type]
        self._watch_spans()
        self._mark_ns, self._thread_clock_ns = spans.mark_cost_ns(), clock_cost_ns(READS, thread_ns)
        self._sampler.__enter__()
        self._pauses = PauseClock().__enter__()
        self._timeline = Timeline()
        spans.keep(self.options.traced)
        spans.enable(cpu=self.options.cpu and self._account.how != "events")
        self._look_ns, self._queued_ns = now_ns() + LEAST_LOOK_NS, queued_ns()
        self._account.begin()
        self._experiment = causal.from_environment()
        if self._experiment is not None:
            self._experiment.begin()
        _open = self
        return self

    def count(self, *, updates: int = 0, steps: int = 0, samples: int = 0) -> None:
        """Say what the loop has done since it said so last; a window ends with its last update."""
        counts = self._counts
        if steps:
            counts[STEPS] += whole_number("steps", steps)
        if samples:
            counts[SAMPLES] += whole_number("samples", samples)
        if updates:
            counts[UPDATES] += whole_number("updates", updates)
            if self._experiment is not None:
                self._experiment.turn()
            if self._torch is not None:
                self._step_profiler(self._torch)
            ends_window = 0 < self._due <= counts[UPDATES]
            if (ends_window or now_ns() >= self._look_ns) and get_ident() == self._thread:
                self._turn(ends_window=ends_window)

    def phase(self, name: str) -> ExitStack:
        """Say that the loop is in a phase from here on, such as imitation; rows and speeds are per phase.

        To name the same phase again changes nothing. In a `with` statement the phase ends with the block.
        """
        if not name.strip():
            raise InputError(f"phase {name!r} does not fit: expected a name, as in run.phase('ppo')")
        back, before = ExitStack(), self._stage
        self._go_to(name)
        back.callback(self._go_to, before)
        return back

    def _go_to(self, stage: str) -> None:
        if _open is self and stage != self._stage and get_ident() == self._thread:
            self._turn()
            self._stage = stage

    def __iter__(self) -> Iterator[int]:
        """The numbers of the updates from 0; each turn of the loop is counted as one."""
        total = self.options.updates
        if total is None:
            raise InputError(NO_UPDATES)
        if _open is self:
            for made in range(total):
                yield made
                self.count(updates=1)
            return
        made = 0
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

    def _turn(self, *, ends_window: bool = True) -> None:
        """End a look, and a window with it; what that takes belongs to the next one."""
        ended, counts, queued = self._account.turn(), self._counts, queued_ns()
        gained = {name: counts[name] - before for name, before in self._counted.items()}
        self._counted = dict(counts)
        if ends_window:
            self._due = counts[UPDATES] + self.options.every if self.options.every else 0
        with spans.span(OURS):
            look = LoopLook(
                counts=gained,
                times=TimeTree(total_ns=0),
                stage=self._stage,
                rss_bytes=resident_bytes(),
                queued_ns=queued - self._queued_ns,
            )
            self._pending.append(
                PendingLook(look=look, ended=ended, ends_window=ends_window, is_profiled=self._is_profiled)
            )
            self._read_pending()
        self._queued_ns = queued
        self._look_ns = now_ns() + LEAST_LOOK_NS
        by_host = self._account.how != "events" and self.options.wait is None
        if by_host and self.options.timing == "auto" and cuda_runs():
            # The loop has begun to use a GPU: what was timed so far is said to be the host's.
            self._hosted = True
            self._account = open_account("auto", None)
            self._watch_spans()

    def _step_profiler(self, window: "TorchWindow") -> None:
        """Tell torch's profiler of an update; windows with it and without it are kept apart."""
        if get_ident() != self._thread or window.is_over:
            return
        with spans.span(OURS):
            window.step()
        if window.is_on != self._is_profiled:
            self._turn()
            self._is_profiled = window.is_on
            self._watch_spans()

    def _watch_spans(self) -> None:
        """Tell the account of spans, and torch's profiler as long as it is on."""
        boundary = self._account.boundary
        if self._is_profiled:
            from hotloop.probes.torch import SpanRegions

            regions = SpanRegions()
            boundary = regions if boundary is None else Relay(regions, boundary)
        spans.watch(boundary)

    def _read_pending(self, *, wait: bool = False) -> None:
        """Read the windows whose times are known, in their order."""
        if wait:
            self._account.wait()
        while self._pending and (wait or self._pending[0].ended.is_ready()):
            pending = self._pending.popleft()
            look = replace(pending.look, times=pending.ended.read())
            self._in_window.append(look)
            if not pending.is_profiled:
                self._looks = keep_few([*self._looks, look])
            if pending.ends_window:
                self._end_window(is_profiled=pending.is_profiled)

    def _end_window(self, *, is_profiled: bool = False) -> None:
        """Add up the looks of a window, and show it if anything was counted in it."""
        looks, self._in_window = self._in_window, []
        times = add(look.times for look in looks) or looks[-1].times
        counts = total([look.counts for look in looks])
        (self._profiled if is_profiled else self._windows).add(counts, times)
        for name in self._so_far:
            self._so_far[name] += counts[name]
        if any(counts.values()):
            self._observer.window(
                LoopWindow(
                    name=self.options.name,
                    updates=self._so_far[UPDATES],
                    steps=self._so_far[STEPS],
                    counts=counts,
                    times=times,
                )
            )

    def _end(self, broken: str | None) -> None:
        """Stop looking, make the record, and let the observer keep it; Ctrl-C waits for that."""
        global _open  # noqa: PLW0603
        with defer_interrupt() as pressed:
            try:
                found = self._stop(broken)
            finally:
                spans.watch(None)
                spans.disable()
                self._pauses.__exit__()
                self._sampler.__exit__(None, None, None)
                _open = None
            self.record = record_of(found)
            if self._experiment is not None:
                # Of a loop that was delayed, only what the delays came to is kept.
                causal.write_blocks(self._experiment)
            else:
                traced = self.options.traced
                self._observer.keep(self.record, trace_of(self._timeline, self.record) if traced else None)
            self._observer.close()
            spans.keep(0)
            if self._was_on:
                spans.enable(cpu=self._was_clocked)
        if pressed and broken is None:
            raise KeyboardInterrupt

    def _stop(self, broken: str | None) -> RunResult:
        if self._experiment is not None:
            self._experiment.end()
        left_open = spans.opened()
        self._turn()
        self._due, self._look_ns = 0, NEVER_NS
        spans.watch(None)
        try:
            # Wait once, now that the loop is over.
            self._read_pending(wait=True)
        except RuntimeError:
            # A device that failed with the loop tells no times any more.
            if broken is None:
                raise
            self._pending.clear()
        if self._in_window:
            self._end_window()
        spans.disable()
        self._timeline.read_clock()
        torch, no_trace = close_window(self._torch)
        profiled, windows = len(self._profiled.kept), self._windows
        every, here = (TimeTree(total_ns=0, children=each) for each in (spans.tree(), spans.tree_here()))
        if profiled and not windows.kept:
            windows = self._profiled
        return RunResult(
            options=self.options,
            origin=self._origin,
            windows=windows,
            looks=self._looks,
            profiled=profiled,
            torch=torch,
            no_trace=no_trace,
            counts=total([each.counts for each in windows.kept]) if profiled else dict(self._counts),
            left_open=left_open,
            threads=(every - here).children,
            how=self._account.how,
            hosted=self._hosted,
            mark_ns=self._mark_ns,
            thread_clock_ns=self._thread_clock_ns,
            samples=self._sampler.samples,
            pauses=self._pauses.pauses,
            broken=broken,
        )


def close_window(window: "TorchWindow | None") -> tuple[Finding | None, str]:
    """End torch's profiler; return what it found, or why it found nothing."""
    if window is None:
        return None, ""
    from hotloop.probes.torch import found_by

    try:
        window.close()
    except SetupError as error:
        return None, str(error)
    return found_by(window, window.turns), ""


class DisabledRun:
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

    def phase(self, _: str) -> ExitStack:
        """Nothing is kept apart."""
        return ExitStack()
