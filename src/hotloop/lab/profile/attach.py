"""Attaching: a look at a process that runs already, which nobody has to stop or change."""

from pathlib import Path

from hotloop.core.clock import utc_now
from hotloop.core.errors import MissingError, SetupError
from hotloop.core.machine import code, machine
from hotloop.core.record import Method, Record, new_record
from hotloop.core.record.metadata import Described, PathRan, Work
from hotloop.core.registry import ProbeError
from hotloop.judge.judge import judge
from hotloop.lab.profile.probes import Picture, no_picture
from hotloop.probes import _running, pyspy


def attach(pid: int, folder: Path, seconds: int, picture: Picture = no_picture) -> Record:
    """What a process does for some seconds, as a record that has no speed of its own.

    InputError where there is no such process, SetupError where it may not be looked at.
    """
    check(pid)
    now, ran = utc_now(), code(None)
    command = command_of(pid)
    try:
        found = picture(_running.attach(pid, folder, seconds))
    except ProbeError as error:
        raise SetupError(str(error)) from None
    name = f"pid:{pid}"
    made = new_record(
        "profile",
        now=now,
        code=ran,
        name=name,
        target=Described(
            name=name,
            world=None,
            impl="foreign",
            device="cpu",
            params={"command": command},
            workload_hash="",
            variant={},
        ),
        machine=machine(),
        method=Method(
            rounds=0, iterations=0, warmup=0, threads=1, order="single", clock="py-spy", policy="its own"
        ),
        work=Work(),
        path=PathRan(requested="foreign"),
        values={},
        findings=(found,),
    )
    return judge(made)


def check(pid: int) -> None:
    """Refuse a process that is not there, and a machine without py-spy."""
    pyspy.check_pid(pid)
    obstacle = pyspy.why_not()
    if obstacle is not None:
        raise MissingError(f"{obstacle.why}: {obstacle.remedy}")


def watch(pid: int) -> None:
    """Show what a process does, live, until Ctrl-C; SetupError where it may not be looked at."""
    check(pid)
    try:
        pyspy.top(pid)
    except ProbeError as error:
        raise SetupError(str(error)) from None


def command_of(pid: int) -> str:
    """The command line of a process."""
    import psutil

    try:
        return " ".join(psutil.Process(pid).cmdline())
    except psutil.Error:
        return "unknown"
