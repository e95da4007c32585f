"""Runs programs, one after another, for whoever tells it to over stdin.

`python -I -S launcher.py`, then one line of JSON an order:

    {"words": ["python", "train.py"], "out": FILE, "err": FILE, "environment": {..} or null}

and two lines back: its pid; then wall_ns, cpu_ns, rss_peak_bytes, status. Or one: the error of its start. The
kernel counts a program's peak from before it became itself, so whoever starts it has to be small: this needs
the standard library alone, and of that a few modules. Where its stdin ends or it is asked to end, the program
ends with it, and with all that it had started and not sent away.
"""

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any

PATIENCE_S = 2.0
"""For a program to end by itself where it is interrupted."""

IN_KIB = sys.platform != "darwin"
"""The unit of a peak; it is bytes there."""

CHANGED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGPIPE)
"""Signals that Python, or this program, treats otherwise than the next one should."""


ENDING = (signal.SIGTERM,)


def main() -> None:
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
    begin = time.perf_counter_ns()
    try:
        pid = started(order["words"], order["out"], order["err"], order["environment"] or {})
    except (OSError, ValueError) as error:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        return {"error": getattr(error, "strerror", None) or str(error)}
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        say({"pid": pid})
        status, used = waited(pid, ended)
        wall_ns = time.perf_counter_ns() - begin
    finally:
        end_all(pid, signal.SIGKILL)
    return {
        "wall_ns": wall_ns,
        "cpu_ns": round((used.ru_utime + used.ru_stime) * 1e9),
        "rss_peak_bytes": used.ru_maxrss * (1024 if IN_KIB else 1),
        "status": os.waitstatus_to_exitcode(status),
    }


def started(words: list[str], out: str, err: str, environment: dict[str, str]) -> int:
    """Start a program in a session of its own, so that all of it can be ended at once."""
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
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


def waited(pid: int, ended: int) -> tuple[int, Any]:
    """Its status and what it used; where nobody is left to tell, it is ended, and so is this."""
    try:
        while True:
            done, status, used = os.wait4(pid, os.WNOHANG)
            if done:
                return status, used
            ready, _, _ = select.select([sys.stdin, ended], [], [])
            if ended in ready:
                os.read(ended, 4096)
            if sys.stdin in ready:
                sys.exit(1)
    except SystemExit:
        interrupt(pid)
        raise


def interrupt(pid: int) -> None:
    """Press Ctrl-C, and wait a little."""
    end_all(pid, signal.SIGINT)
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
        except ChildProcessError:
            return
        time.sleep(0.01)


def end_all(pid: int, number: int) -> None:
    """Send a signal to a program and to all that is still in its session's group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


if __name__ == "__main__":
    main()
