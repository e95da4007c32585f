"""Runs programs, one after another, as commands on stdin say.

`python -I -S launcher.py`, then one line of JSON an order:

    {"words": ["python", "train.py"], "out": FILE, "err": FILE, "environment": {..} or null,
     "settle_s": 30.0, "end_s": 2.0}

and two lines back: its pid; then wall_ns, cpu_ns, rss_peak_bytes, status, left. Or one: the error of its
start. The kernel counts a program's peak from before it became itself, so its parent has to be small:
this needs the standard library alone, and of that a few modules. Where its stdin ends or it is asked to end,
the program ends with it, and with all that it had started.

Orphans of a program come to this process (Linux). After the program's end those that use CPU are waited for,
in the program's time; those that only sleep are not. Whatever is left then is listed and ended.
"""

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

ADOPTS = "adopts-orphans"  # The argument of this process once orphans come to it

PR_SET_CHILD_SUBREAPER = 36

SETTLE_S = 30.0  # For what a program left behind to stop using CPU
END_S = 2.0  # For a program to end by itself where it is interrupted

# Between two looks at what was left behind, and for how long none of it may use CPU.
LOOK_S, CALM_S = 0.02, 0.2

# Of the time between two looks: a process that used less CPU, or waited less for a core, sleeps.
BUSY_SHARE = 0.1

KILL_S = 2.0  # For the kernel to end what was killed
MOST_CHARACTERS = 100  # Of a command line
IN_KIB = sys.platform != "darwin"  # The unit of a peak; it is bytes there

# Signals that Python, or this program, treats otherwise than the next one should.
CHANGED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE)


ENDING = (signal.SIGTERM,)


def main() -> None:
    if ADOPTS not in sys.argv:
        with suppress(ImportError, OSError, AttributeError):  # orphans come to this process only on Linux
            import ctypes

            ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        os.execv(sys.executable, [*sys.orig_argv, ADOPTS])  # ctypes would add to every program's peak
    ended, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for line in iter(sys.stdin.readline, ""):
        say(run(json.loads(line), ended))


def say(told: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def run(order: dict[str, Any], ended: int) -> dict[str, object]:
    """Run one program to its end and say what it took."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)  # until it is known whom to end
    begin_ns = time.perf_counter_ns()
    try:
        pid = start_program(order["words"], order["out"], order["err"], order["environment"] or {})
    except (OSError, ValueError) as error:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        return {"error": getattr(error, "strerror", None) or str(error)}
    family = Family(pid)
    left: list[dict[str, object]] = []
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        say({"pid": pid})
        end_ns = wait_for_end(family, ended, order.get("end_s", END_S))
        if family.status == 0:
            end_ns, left = wait_until_calm(family, ended, end_ns, order.get("settle_s", SETTLE_S))
    finally:
        end_all(family)
    return {
        "wall_ns": end_ns - begin_ns,
        "cpu_ns": family.cpu_ns,
        "rss_peak_bytes": family.peak * (1024 if IN_KIB else 1),
        "status": os.waitstatus_to_exitcode(family.status or 0),
        "left": left,
    }


def start_program(words: list[str], out: str, err: str, environment: dict[str, str]) -> int:
    """Start a program in a session of its own, so that all of it can be ended at once."""
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND  # both may be one file
    return os.posix_spawnp(
        words[0],
        words,
        {**os.environ, **environment},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, out, writing, 0o600),
            (os.POSIX_SPAWN_OPEN, 2, err, writing, 0o600),
        ],
        setsid=True,
        setsigdef=CHANGED,
        setsigmask=(),
    )


class Family:
    """A program and its orphans: what those used that have ended."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.status: int | None = None
        """Of the program itself, as the kernel has it; None while it runs."""
        self.cpu_ns = self.peak = 0

    def reap(self) -> dict[int, int]:
        """Take note of all that have ended since; return the CPU ns of each, with its own children's."""
        gone: dict[int, int] = {}
        with suppress(ChildProcessError):
            while (ended := os.wait4(-1, os.WNOHANG))[0]:
                pid, status, used = ended
                gone[pid] = round((used.ru_utime + used.ru_stime) * 1e9)
                self.cpu_ns += gone[pid]
                self.peak = max(self.peak, used.ru_maxrss)
                if pid == self.pid:
                    self.status = status
        return gone


def wait_for_end(family: Family, ended: int, end_s: float) -> int:
    """Wait for the program and return when it ended; interrupt it if stdin closes."""
    try:
        while True:
            family.reap()
            if family.status is not None:
                return time.perf_counter_ns()
            pause(ended)
    except SystemExit:
        interrupt(family, end_s)
        raise


def pause(ended: int, seconds: float | None = None) -> None:
    """Wait until a child has ended, or for so long; end this process if stdin closes."""
    ready, _, _ = select.select([sys.stdin, ended], [], [], seconds)
    if ended in ready:
        os.read(ended, 4096)
    if sys.stdin in ready:
        sys.exit(1)


def wait_until_calm(
    family: Family, ended: int, end_ns: int, settle_s: float
) -> tuple[int, list[dict[str, object]]]:
    """Wait for what was left behind to stop using CPU; return when it did, and what is left.

    Of what is left, `is_busy` are those that went on for longer than they are waited for.
    """
    worked_ns = before_ns = end_ns
    seen, busy = demands(), set[int]()
    while seen and before_ns - worked_ns < CALM_S * 1e9 and before_ns - end_ns < settle_s * 1e9:
        pause(ended, LOOK_S)
        gone, now_ns, found = family.reap(), time.perf_counter_ns(), demands()
        least_ns = BUSY_SHARE * (now_ns - before_ns)
        busy = {pid for pid, ns in {**gone, **found}.items() if ns - seen.get(pid, 0) >= least_ns}
        if busy:
            worked_ns = now_ns
        seen, before_ns = found, now_ns
    return worked_ns, [{"pid": pid, "command": command_of(pid), "is_busy": pid in busy} for pid in seen]


def demands() -> dict[int, int]:
    """Return what runs below this process, and for how many ns each used a core or waited for one."""
    found: dict[int, int] = {}
    for pid in descendants() if has_children() else ():
        folder = f"/proc/{pid}/task"
        told = [read(f"{folder}/{task}/schedstat").split()[:2] for task in list_folder(folder)]
        found[pid] = sum(int(ns) for each in told for ns in each)
        if not any(told):  # a kernel without schedstat
            fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
            found[pid] = sum(map(int, fields[11:13])) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    return found


def has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def descendants() -> list[int]:
    """Return the processes below this one that have not ended; none where there is no /proc."""
    parents: dict[int, int] = {}
    for name in filter(str.isdecimal, list_folder("/proc")):
        state, parent = (read(f"/proc/{name}/stat").rpartition(")")[2].split() or ["Z", "0"])[:2]
        if state not in "ZX":
            parents[int(name)] = int(parent)
    below, new = {os.getpid()}, {os.getpid()}
    while new:
        new = {pid for pid, parent in parents.items() if parent in new} - below
        below |= new
    return sorted(below - {os.getpid()})


def command_of(pid: int) -> str:
    """Return the command line of a process, or its name where it has none."""
    words = read(f"/proc/{pid}/cmdline").replace("\0", " ").strip() or read(f"/proc/{pid}/comm").strip()
    return " ".join(words.split())[:MOST_CHARACTERS]


def list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - pathlib takes longer to load than all the rest
    except OSError:
        return []


def read(file: str) -> str:
    """Return what a file of the kernel's says; nothing where its process has ended."""
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123 - as above
            return opened.read()
    except OSError:
        return ""


def interrupt(family: Family, end_s: float) -> None:
    """Press Ctrl-C, and wait a little."""
    signal_group(family.pid, signal.SIGINT)
    until = time.monotonic() + end_s
    while family.status is None and time.monotonic() < until:
        time.sleep(0.01)
        family.reap()


def end_all(family: Family) -> None:
    """End all that is left of a program, wherever it went."""
    if family.status is None or sys.platform != "linux":  # its number may be another's by now
        signal_group(family.pid, signal.SIGKILL)
    until = time.monotonic() + KILL_S
    family.reap()
    while has_children() and time.monotonic() < until:
        for pid in descendants():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        family.reap()
        time.sleep(0.001)


def signal_group(pid: int, number: int) -> None:
    """Send a signal to a program and to all that is still in its session's group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


if __name__ == "__main__":
    main()
