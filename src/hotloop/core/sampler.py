"""A sampler of stacks inside a process, driven by a timer of the kernel's.

The timer's signal is handled by Python between two instructions, wherever that is: another thread that asks
instead is answered where the lock of the interpreter is let go, again and again at the same few lines.
A sample stands for the time since the one before, so that native code, which no signal gets into, has its
whole time where Python called it.

It uses the standard library alone and imports nothing of ours, so that a program's own Python can load this
file by its path, whatever else is installed there.
"""

import signal
import sys
import threading
import time
from collections import Counter
from types import CodeType, FrameType, TracebackType
from typing import Self

EVERY_S = 0.00097  # Between two samples, about; not a whole number of anything

# How long a signal may take that was sent before the timer stopped, to a thread that waits for a core.
ON_ITS_WAY_S = 0.005

Frame = tuple[str, str, int]  # Function with its class, file, and the line it was at

Stack = tuple[Frame, ...]  # From the outermost caller inwards

# What runs where no Python does: before its first line and after its last.
NO_FRAME: Stack = (("the interpreter", "", 0),)


class StackSampler:
    """Looks at the stack of the thread that enters it, for as long as it is entered.

    Outside the main thread, or where the timer is in use, a side thread looks instead.
    """

    def __init__(self, every_s: float = EVERY_S) -> None:
        self.ns: Counter[Stack] = Counter()
        """Wall time by stack."""
        self.cpu_ns: Counter[Stack] = Counter()
        """The part of it in which the thread had a core; empty where it is looked at from another one."""
        self.samples = 0
        self._every_s = every_s
        self._last_ns = self._last_cpu_ns = 0
        self._noting = False
        self._by: SignalTimer | SideThread | None = None

    def __enter__(self) -> Self:
        self._last_ns, self._last_cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
        is_free = (  # the timer and its signal, and this thread is the one that is told
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
            and signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
        )
        self._by = (SignalTimer if is_free else SideThread)(self)
        self._by.start(self._every_s)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._by:
            self._by.stop()

    def note(self, frame: FrameType | None, *, is_own: bool) -> None:
        """Take a sample, of the calling thread if it `is_own`."""
        if self._noting:  # the timer went off again meanwhile
            return
        self._noting = True
        now_cpu_ns, now_ns = time.thread_time_ns(), time.perf_counter_ns()
        stack = stack_of(frame)
        self.ns[stack] += now_ns - self._last_ns
        if is_own:
            self.cpu_ns[stack] += now_cpu_ns - self._last_cpu_ns
        self.samples += 1
        # From here to its end the CPU's stretch lies within the wall's: nothing works longer than it takes.
        self._last_ns, self._last_cpu_ns = time.perf_counter_ns(), time.thread_time_ns()
        self._noting = False


class SignalTimer:
    """Has the kernel's timer interrupt the main thread; system calls under way go on by themselves."""

    def __init__(self, sampler: StackSampler) -> None:
        self._sampler = sampler

    def start(self, every_s: float) -> None:
        signal.signal(signal.SIGALRM, self._hear)
        signal.siginterrupt(signal.SIGALRM, False)
        signal.setitimer(signal.ITIMER_REAL, every_s, every_s)

    def stop(self) -> None:
        """Give the timer back; a signal that is still on its way finds a handler that does nothing."""
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, lambda *_: None)
        time.sleep(ON_ITS_WAY_S)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._sampler.note(frame, is_own=True)


class SideThread:
    """Looks from a side thread, whenever it is let."""

    def __init__(self, sampler: StackSampler) -> None:
        self._sampler = sampler
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._before_s = sys.getswitchinterval()

    def start(self, every_s: float) -> None:
        sys.setswitchinterval(min(self._before_s, every_s))
        self._thread = threading.Thread(
            target=self._run, args=(every_s,), name="hotloop-samples", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join()
        sys.setswitchinterval(self._before_s)

    def _run(self, every_s: float) -> None:
        while not self._over.wait(every_s):
            self._sampler.note(sys._current_frames().get(self._watched), is_own=False)  # noqa: SLF001 - it is documented


def stack_of(frame: FrameType | None) -> Stack:
    """The frames of a stack, the outermost caller first; without our own at its end, and never none."""
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    found: list[Frame] = []
    while frame is not None:
        found.append((name_of(frame.f_code), frame.f_code.co_filename, line_of(frame)))
        frame = frame.f_back
    return tuple(reversed(found)) or NO_FRAME


def line_of(frame: FrameType) -> int:
    """Return the current line; that of the definition for functions without a name, which differ by it."""
    code = frame.f_code
    return (
        code.co_firstlineno
        if code.co_name.startswith("<") and code.co_name != "<module>"
        else (frame.f_lineno or code.co_firstlineno)
    )


def name_of(code: CodeType) -> str:
    return short_name(code.co_qualname)


def short_name(qualified: str) -> str:
    """Return a function with its class, and what has no name of its own with the function that it is in."""
    *around, last = qualified.split(".<locals>.")
    if not last.startswith("<"):
        return last
    named = next((each for each in reversed(around) if not each.startswith("<")), "")
    return f"{named}.{last}" if named else last
