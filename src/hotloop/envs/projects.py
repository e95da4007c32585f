"""Targets of two projects at once, each project in a process of its own.

Two folders may each have a `physics.py`, and a process has room for one module of that name: whichever comes
first would be both. So while targets of several homes are held against each other, none is opened here. What
passes between the processes are messages of envs/messages.py, and no pickles.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

import numpy as np

from hotloop.core.errors import HotloopError, InputError, TheirError
from hotloop.core.machine import read_sources
from hotloop.core.notices import Notice
from hotloop.core.process import lifeline
from hotloop.core.process.guard import PR_SET_PDEATHSIG, prctl
from hotloop.core.target import Target
from hotloop.envs import callables
from hotloop.envs.messages import receive, send
from hotloop.envs.spec import Spec
from hotloop.envs.subject import Proxy, Subject

# What names begin with whose code is installed, and so belongs to no folder.
INSTALLED = ("gym", "pettingzoo", "puffer")

PROGRAM = "from hotloop.envs.projects import serve; serve({descriptor})"

Home = str  # The folder whose modules a target imports first; empty where it is installed


def home_of(target: Target) -> Home:
    place, _, _ = target.name.rpartition(":")
    if place.endswith(".py"):
        return str(Path(place).resolve().parent)
    return "" if target.name.partition(":")[0] in INSTALLED else str(Path.cwd())


class Process:
    """Another Python, asked for one thing after another."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._process, self._line = self._started()
        self._whole = True
        """Whether every question had its answer; else the next answer may be another's."""

    def _started(self) -> tuple[subprocess.Popen[bytes], Connection]:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", PROGRAM.format(descriptor=theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,
                env={**os.environ, **lifeline.shared()},
            )
        return process, Connection(ours.detach())

    def new(self, maker: str, *given: Any, **more: Any) -> "Remote":
        """What a function of ours, `module:name`, makes there."""
        return Remote(self, self.ask("new", maker, given, more))

    def ask(self, *words: Any) -> Any:
        if not self._whole:
            raise TheirError(f"the process of {self.name} was interrupted")
        self._whole = False
        try:
            send(self._line, words)
            failed, answer, states = receive(self._line)
        except (EOFError, OSError):
            raise self._ended() from None
        self._whole = True
        if failed:
            raise answer
        restore(words, states)
        return answer

    def _ended(self) -> TheirError:
        status = self._process.wait()
        how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended itself with {status}"
        return TheirError(f"{self.name}: its process {how}{lifeline.at_step()}")

    def close(self) -> None:
        with suppress(OSError):
            self._line.close()
        self._process.kill()
        self._process.wait()


class Remote:
    """An object in another process: what it is asked for is asked there."""

    def __init__(self, process: Process, number: int) -> None:
        self._process, self._number = process, number

    def __getattr__(self, name: str) -> Any:
        is_method, value = self._process.ask("get", self._number, name)
        if not is_method:
            return value
        method = partial(self._process.ask, "call", self._number, name)
        setattr(self, name, method)
        return method


class RemoteSubject(Proxy):
    """A subject in another process."""

    def __init__(self, remote: Remote) -> None:
        super().__init__(cast("Subject", remote))
        self._spec = self._subject.spec

    @property
    def spec(self) -> Spec:
        return self._spec

    def faults(self, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
        return self._subject.faults(None if actions is None else list(actions))


class Projects:
    """The processes of targets that are held against each other, one a home."""

    def __init__(self, homes: frozenset[Home]) -> None:
        self.homes = homes
        self._processes: dict[Home, Process] = {}

    def process(self, target: Target) -> Process:
        home = home_of(target)
        if home not in self._processes:
            self._processes[home] = Process(target.name)
        return self._processes[home]

    def close(self) -> None:
        for process in self._processes.values():
            process.close()


PROJECTS: ContextVar[Projects | None] = ContextVar("projects", default=None)


@contextmanager
def apart(*targets: Target) -> Iterator[None]:
    """Open targets of several homes in processes of their own meanwhile; those of one stay here."""
    homes = frozenset(home_of(each) for each in targets if each.is_foreign)
    known = PROJECTS.get()
    if len(homes) < 2 or (known is not None and homes <= known.homes):
        yield
        return
    projects = Projects(homes)
    token = PROJECTS.set(projects)
    try:
        yield
    finally:
        PROJECTS.reset(token)
        projects.close()


def is_apart(target: Target) -> bool:
    projects = PROJECTS.get()
    return projects is not None and target.is_foreign and home_of(target) in projects.homes


def open_apart(target: Target, *, profile: bool) -> Subject:
    """Open a target in the process of its home."""
    projects = PROJECTS.get()
    assert projects is not None
    return RemoteSubject(
        projects.process(target).new("hotloop.envs.open:open_target", target, profile=profile)
    )


def new_apart(target: Target, maker: str, *given: Any) -> Subject:
    """Let a function of ours make a subject of a target in the process of its home."""
    projects = PROJECTS.get()
    assert projects is not None
    return RemoteSubject(projects.process(target).new(maker, target, *given))


def parameters(target: Target, *, required: bool = False) -> tuple[str, ...]:
    """The parameters of a callable, or those without a default, looked at where it is opened."""
    projects = PROJECTS.get()
    if projects is None or not is_apart(target):
        function = callables.find(target.name)
        return callables.required_of(function) if required else callables.parameters_of(function)
    more = {"required": required}
    found: tuple[str, ...] = projects.process(target).ask("run", f"{__name__}:parameters", (target,), more)
    return found


def sources(target: Target) -> dict[str, str]:
    """The loaded sources of a target, read in the process where it is open."""
    projects = PROJECTS.get()
    if projects is None or not is_apart(target):
        return read_sources(target.name)
    found: dict[str, str] = projects.process(target).ask(
        "run", "hotloop.core.machine:read_sources", (target.name,), {}
    )
    return found


def generators(words: Any) -> list[np.random.Generator]:
    """The random generators among the arguments of a call: who draws from them there moves them here."""
    return [each for part in words if isinstance(part, tuple) for each in part if is_generator(each)] + [
        each for each in words if is_generator(each)
    ]


def is_generator(each: Any) -> bool:
    return isinstance(each, np.random.Generator)


def restore(words: Any, states: list[Any]) -> None:
    for each, state in zip(generators(words), states, strict=True):
        each.bit_generator.state = state


def serve(descriptor: int) -> None:
    """Answer until nobody asks any more; whoever started this process takes it with him."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lifeline.join()
    line, objects = Connection(descriptor), dict[int, Any]()
    with suppress(EOFError, OSError):
        while True:
            words = receive(line)
            tell(line, *answered(words, objects), words)


def tell(line: Connection, failed: bool, answer: Any, words: Any) -> None:
    states = [each.bit_generator.state for each in generators(words)]
    try:
        send(line, (failed, answer, states))
    except InputError as error:
        send(line, (True, error, states))


def answered(words: Any, objects: dict[int, Any]) -> tuple[bool, Any]:
    """Whether it failed, and the answer or the error."""
    try:
        return False, answer_to(words, objects)
    except HotloopError as error:
        return True, error
    except BaseException as error:  # noqa: BLE001 - whatever somebody's code raises is an answer
        return True, TheirError(f"it raised: {callables.last_words(error)}")


def answer_to(words: Any, objects: dict[int, Any]) -> Any:
    match words:
        case ("new", str() as maker, given, more):
            objects[len(objects)] = found(maker)(*given, **more)
            return len(objects) - 1
        case ("run", str() as function, given, more):
            return found(function)(*given, **more)
        case ("get", int() as number, str() as name):
            value = getattr(objects[number], name)
            return (True, None) if callable(value) else (False, value)
        case ("call", int() as number, str() as name, *given):
            return getattr(objects[number], name)(*given)
    raise InputError(f"nobody knows what {words[0]} means")


def found(function: str) -> Any:
    module, _, name = function.partition(":")
    return getattr(import_module(module), name)
