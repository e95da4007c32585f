"""Time the turns of a side: wall time, CPU time of the whole process tree, and what disturbed them.

Wall time is never corrected: time that a side's own threads and processes take from it is its own.
Standard library only, because worker.py loads this file by its path in the Python of any commit.
"""

import gc
import os
import resource
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from time import clock_gettime_ns, perf_counter_ns, process_time_ns, sleep, thread_time_ns
from typing import Any, NamedTuple

# One in so many calls of a turn is made before its clock starts: the side before left its own caches.
RUN_IN = 10

LITTER = 5_000  # Objects that the collector may have to look at before it is called between two turns

# CPU time below this share of a turn, or below so many ns, is noise of the clocks.
#
# Waiting that is as short disturbs nothing.
WORK_SHARE, WORK_NS = 0.01, 20_000

PAUSE_NS = 20_000_000  # How long a turn's other threads and processes are given to finish what the turn began

POLL_S = 0.0005

IDLE_SHARE = 0.1  # Of the time between two looks that others may run for and still count as idle

# Whatever still runs so long after a turn has no end: it polls, if it runs at the rate of the turns.
POLLING_NS = 300_000_000

SAME_RATE = 0.1

LONG_ENOUGH_NS = 1_000_000  # A shorter turn does not tell at which rate others run

# Turns of a side that polls, of which one begins after a pause: work that goes on meanwhile shows there.
REST_ONE_IN = 8

FRESH_NS = 20_000_000  # How long a list of child processes is used before it is read again


# How often a side is watched for so long without an answer before it is taken for one that works.
LONG_LOOKS = 3


class Spent(NamedTuple):
    """CPU time used so far, in ns, and how long this thread waited for a core."""

    process_ns: int
    thread_ns: int
    children_ns: int  # Of the processes that belong to one owner
    all_children_ns: int  # Of every process that descends from this one
    queued_ns: int  # For how long this thread could have run and had no core

    @property
    def others_ns(self) -> int:
        """Return the CPU time of everything of the owner's but this thread."""
        return self.process_ns - self.thread_ns + self.children_ns


class Turn(NamedTuple):
    """One timed turn of one side: what it took, and what was done in it."""

    ns: int
    env_steps: int = 0
    # Nanoseconds in each, and in `step` as a whole; empty if they are not timed.
    phases: Mapping[str, int] = {}
    rested: bool = False  # Whether the side's pollers had a pause before it
    cpu_ns: int = 0  # Of the whole process tree, late work included
    others_ns: int = 0  # Of other threads and processes while the stretch ran
    children_ns: int = 0  # Of other processes alone
    late_ns: int = 0  # Of other threads and processes after the stretch had returned, until they were idle
    late_children_ns: int = 0  # Of other processes alone, after the stretch had returned
    # Whether this thread waited for a core while nothing else of its process tree ran.
    disturbed: bool = False
    # Whether other threads or processes spin without end, so that their CPU time says nothing.
    polls: bool = False

    @property
    def ns_per_env_step(self) -> float:
        return self.ns / self.env_steps

    @property
    def cpu_ns_per_env_step(self) -> float:
        return self.cpu_ns / self.env_steps


def repeat(actions: Sequence[Any], calls: int) -> Iterator[Any]:
    """Yield the actions of a number of calls, from the beginning again if there are fewer."""
    again = calls > len(actions)  # to repeat them is to keep a copy of each
    return islice(cycle(actions) if again else actions, calls)


def collect_rest() -> None:
    """Collect what was left behind, outside every clock, if the collector is off and it is much."""
    if not gc.isenabled() and gc.get_count()[0] > LITTER:
        gc.collect()


class ProcessFamily:
    """The processes that descend from this one, and to which side each belongs; seen on Linux only."""

    def __init__(self) -> None:
        self._owners: dict[int, int] = {}
        self._clocks: list[tuple[int, int | None]] = []
        self._read_at: int | None = None

    @contextmanager
    def noting(self, claim: list[int]) -> Iterator[None]:
        """Put the children that are started meanwhile into a list, to be claimed."""
        before = {child for _, child in descendants()}
        yield
        claim += sorted({child for _, child in descendants()} - before)

    def claim(self, children: Iterable[int], owner: int) -> None:
        """Note that these children, and all that descend from them, belong to one side."""
        self._owners |= dict.fromkeys(children, owner)
        self._read_at = None

    def clocks(self, owner: int | None = None) -> list[int]:
        """Return the CPU clocks of all descendants, or of those that no other owner has claimed."""
        now = perf_counter_ns()
        if self._read_at is None or now - self._read_at > FRESH_NS:
            self._read_at = now
            # The kernel numbers the CPU clock of a process ~pid << 3 | 2 (see clock_getcpuclockid).
            self._clocks = [(~pid << 3 | 2, self._owners.get(child)) for pid, child in descendants()]
        return [clock for clock, whose in self._clocks if None in (owner, whose) or owner == whose]

    def cpu_ns(self, owner: int | None = None) -> int:
        """Return the CPU time of descendants, with that of children which have ended."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        total = round((ended.ru_utime + ended.ru_stime) * 1e9)
        for clock in self.clocks(owner):
            with suppress(OSError):  # it has ended since the list was read
                total += clock_gettime_ns(clock)
        return total


def descendants() -> list[tuple[int, int]]:
    """Return the process id of each descendant, and that of the child of ours which it descends from."""
    found, parents = list[tuple[int, int]](), [("self", 0)]
    while parents:
        parent, root = parents.pop()
        with suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):  # noqa: PTH208 - this runs twice a turn
                with suppress(OSError), open(f"/proc/{parent}/task/{task}/children") as file:  # noqa: PTH123
                    children = [(pid, root or int(pid)) for pid in file.read().split()]
                    found += [(int(pid), child) for pid, child in children]
                    parents += children
    return found


FAMILY = ProcessFamily()


def spent(owner: int | None = None) -> Spent:
    """Read the clocks of this process, this thread and its descendants."""
    return Spent(process_time_ns(), thread_time_ns(), FAMILY.cpu_ns(owner), FAMILY.cpu_ns(), queued_ns())


def queued_ns() -> int:
    """Return how long this thread has been ready to run without a core; 0 if the kernel does not say."""
    with suppress(OSError, ValueError, IndexError), open("/proc/thread-self/schedstat") as file:  # noqa: PTH123
        return int(file.read().split()[1])
    return 0


def is_work(cpu_ns: int, ns: int) -> bool:
    """Return whether CPU time within a stretch of so many ns is more than noise of the clocks."""
    return cpu_ns > max(WORK_NS, WORK_SHARE * ns)


def timed(play: Callable[[], int], owner: int | None = None) -> Turn:
    """Time a stretch that returns its own wall time; nothing is waited for afterwards."""
    before = spent(owner)
    ns = play()
    after = spent(owner)
    children_ns = max(0, after.children_ns - before.children_ns)
    others_ns = max(0, after.others_ns - before.others_ns)
    # A process of the other side that takes the core is no disturbance from outside.
    theirs_ns = after.all_children_ns - before.all_children_ns - children_ns
    is_alone = not is_work(others_ns + max(0, theirs_ns), ns)
    waited = is_work(after.queued_ns - before.queued_ns, ns)
    return Turn(
        ns=ns,
        cpu_ns=after.process_ns - before.process_ns + children_ns,
        others_ns=others_ns,
        children_ns=children_ns,
        disturbed=waited and is_alone,
    )


class TurnClock:
    """Times the turns of one side, and learns whether its other threads and processes work or only poll.

    A poller spins while it waits for the next step. Its CPU time after a turn is no work, unless the next
    turn is quicker for it; so one turn in eight begins after a pause, to be compared with the others.
    """

    def __init__(self, owner: int | None = None) -> None:
        """`owner` is who has claimed the processes of this side; None if it is the only side here."""
        self.polls = False
        self._owner, self._turns, self._long_looks = owner, 0, 0

    def rest(self) -> bool:
        """Pause before one turn in eight of a side that polls; return whether this one was."""
        self._turns += 1
        if not self.polls or self._turns % REST_ONE_IN:
            return False
        sleep(PAUSE_NS / 1e9)
        return True

    def time(self, play: Callable[[], int]) -> Turn:
        """Time a stretch, and wait within bounds until what it set going has finished."""
        took = timed(play, self._owner)
        children_ns = FAMILY.cpu_ns(self._owner)
        late_ns = 0 if self.polls else self._late_ns(took)
        late_children_ns = 0 if self.polls else max(0, FAMILY.cpu_ns(self._owner) - children_ns)
        return took._replace(
            cpu_ns=took.cpu_ns + late_ns,
            late_ns=late_ns,
            late_children_ns=late_children_ns,
            polls=self.polls,
        )

    def _late_ns(self, took: Turn) -> int:
        """Return the CPU time that others use after a stretch; 0, and remember it, if they only poll."""
        is_alone = threading.active_count() == 1 and not FAMILY.clocks(self._owner)
        if is_alone and not is_work(took.others_ns, took.ns):
            return 0
        used_ns, waited_ns, is_idle = self._watch_others(PAUSE_NS)
        if is_idle or took.ns < LONG_ENOUGH_NS or self._long_looks == LONG_LOOKS:
            return used_ns
        self._long_looks += 1
        more_ns, longer_ns, is_idle = self._watch_others(POLLING_NS)
        used_ns, waited_ns = used_ns + more_ns, waited_ns + longer_ns
        # While this thread pauses, pollers may get the core that it had in its turn.
        lowest = (1 - SAME_RATE) * took.others_ns / took.ns
        highest = (1 + SAME_RATE) * took.cpu_ns / took.ns
        self.polls = not is_idle and lowest <= used_ns / waited_ns <= highest
        return 0 if self.polls else used_ns

    def _watch_others(self, limit_ns: int) -> tuple[int, int, bool]:
        """Wait until others are idle; return the CPU ns they used, the ns waited, and whether they are."""
        begin = now = spent(self._owner).others_ns
        began = at = perf_counter_ns()
        is_idle = False
        while not is_idle and at - began < limit_ns:
            sleep(POLL_S)
            before, looked = now, at
            now, at = spent(self._owner).others_ns, perf_counter_ns()
            is_idle = now - before < IDLE_SHARE * (at - looked)
        return max(0, now - begin), at - began, is_idle
