"""The program between a supervisor and the process it watches over: `python guard.py REPLY COMMAND...`.

It starts the command in a session of its own and says what became of it, on the descriptor REPLY: its
number, then its status. When the command has ended, or the supervisor has, nothing that the command started
is left: orphans come to this process, wherever they hid, and it ends them. It needs nothing but the
standard library, and as little of that as there is, because it is waited for.
"""

import os
import select
import signal
import sys

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

# What the supervisor hears and passes on; the guard stays until its work is done.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    reply, command = int(sys.argv[1]), sys.argv[2:]
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    child = start(reply, command)
    for stream in (1, 2):
        os.close(stream)  # the reader of what the command prints sees its end
    say(reply, b"pid %d\n" % child)
    wait(child)
    end_all()


def prctl(option: int, value: int) -> None:
    """Ask the kernel, where it can be asked; elsewhere an orphan of an orphan may stay."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return


def start(reply: int, command: list[str]) -> int:
    """Start the command, which ends when this process does."""
    guard = os.getpid()
    child = os.fork()
    if child:
        return child
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != guard:
        os._exit(1)
    os.close(reply)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL)
    return os.execv(command[0], command)


def wait(child: int) -> None:
    """Until the child has ended, or the supervisor has: the other end of stdin is its."""
    heard = select.poll()
    heard.register(0, select.POLLIN | select.POLLHUP)
    heard.register(os.pidfd_open(child), select.POLLIN)
    while not heard.poll():
        continue
    if (
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    ):  # `end_all` says how it ended
        os.kill(child, signal.SIGKILL)


def end_all() -> None:
    """End whatever is below this process, and what comes to it meanwhile; say the status of the first."""
    reply = int(sys.argv[1])
    told = False
    while True:
        for pid in children_of(os.getpid()):
            os.kill(pid, signal.SIGKILL)
        try:
            _, status = os.wait()
        except ChildProcessError:
            return
        if not told:
            told = True
            say(reply, b"status %d\n" % status)


def say(reply: int, line: bytes) -> None:
    """Tell the supervisor; where it has ended, the work that is left is done all the same."""
    try:
        os.write(reply, line)
    except OSError:
        return


def children_of(pid: int) -> list[int]:
    """The children of a process of one thread; a dead one that was not waited for is among them."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as listed:  # noqa: PTH123 - as below
            return [int(each) for each in listed.read().split()]
    except OSError:  # a kernel that keeps no list: every process says who its parent is
        names = os.listdir("/proc")  # noqa: PTH208 - pathlib takes longer to load than all the rest
        return [int(name) for name in names if name.isdecimal() and parent_of(name) == pid]


def parent_of(name: str) -> int | None:
    try:
        with open(f"/proc/{name}/stat", "rb") as stat:  # noqa: PTH123 - as above
            return int(stat.read().rpartition(b")")[2].split()[1])
    except OSError:  # it has ended
        return None


if __name__ == "__main__":
    main()
