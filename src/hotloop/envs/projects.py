"""Targets of two projects at once, each project in a process of its own.

Two folders may each have a `physics.py`, and a process has room for one module of that name: whichever comes
first would be both. So while targets of several homes are held against each other, none is opened here. What
passes between the processes is JSON with raw bytes of arrays, and no pickles: a pickle runs code where it is
read, and what one side of a comparison answers comes from user code.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import HotloopError, InputError, Notice, TheirError
from hotloop.core.machine import need, read_sources
from hotloop.core.process import lifeline
from hotloop.core.process.guard import PR_SET_PDEATHSIG, prctl
from hotloop.core.settings import Target
from hotloop.envs import callables
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
            status = self._process.wait()
            how = f"ended itself with {status}"
            if status < 0:
                how = f"was ended by {signal.Signals(-status).name}"
            raise TheirError(f"{self.name}: its process {how}{lifeline.at_step()}") from None
        self._whole = True
        if failed:
            raise answer
        for each, state in zip(generators(words), states, strict=True):
            each.bit_generator.state = state
        return answer

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
def open_separately(*targets: Target) -> Iterator[None]:
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


def process_of(target: Target) -> Process:
    """Return the process of the home of a target that is apart."""
    projects = PROJECTS.get()
    assert projects is not None
    return projects.process(target)


def new_apart(target: Target, maker: str, *given: Any, **more: Any) -> Subject:
    """Let a function of ours make a subject of a target in the process of its home."""
    return RemoteSubject(process_of(target).new(maker, target, *given, **more))


def parameters(target: Target, *, required: bool = False) -> tuple[str, ...]:
    """The parameters of a callable, or those without a default, looked at where it is opened."""
    if not is_apart(target):
        function = callables.find(target.name)
        return callables.required_of(function) if required else callables.parameters_of(function)
    more = {"required": required}
    names: tuple[str, ...] = process_of(target).ask("run", f"{__name__}:parameters", (target,), more)
    return names


def sources(target: Target) -> dict[str, str]:
    """The loaded sources of a target, read in the process where it is open."""
    if not is_apart(target):
        return read_sources(target.name)
    function = "hotloop.core.machine:read_sources"
    texts: dict[str, str] = process_of(target).ask("run", function, (target.name,), {})
    return texts


def generators(words: Any) -> list[np.random.Generator]:
    """The random generators among the arguments of a call: what draws from them there moves them here."""
    parts = (each for part in words for each in (part if isinstance(part, tuple) else (part,)))
    return [each for each in parts if isinstance(each, np.random.Generator)]


def serve(descriptor: int) -> None:
    """Answer until the line is closed; the process that started this one takes it with it."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lifeline.join()
    line, objects = Connection(descriptor), dict[int, Any]()
    with suppress(EOFError, OSError):
        while True:
            words = receive(line)
            answer: Any
            try:
                failed, answer = False, answer_to(words, objects)
            except HotloopError as error:
                failed, answer = True, error
            except BaseException as error:  # noqa: BLE001 - whatever user code raises is an answer
                failed, answer = True, TheirError(f"it raised: {callables.last_words(error)}")
            states = [each.bit_generator.state for each in generators(words)]
            try:
                send(line, (failed, answer, states))
            except InputError as error:
                send(line, (True, error, states))


def answer_to(words: Any, objects: dict[int, Any]) -> Any:
    match words:
        case ("new", str() as maker, given, more):
            objects[len(objects)] = own_object(maker)(*given, **more)
            return len(objects) - 1
        case ("run", str() as function, given, more):
            return own_object(function)(*given, **more)
        case ("get", int() as number, str() as name):
            value = getattr(objects[number], name)
            return (True, None) if callable(value) else (False, value)
        case ("call", int() as number, str() as name, *given):
            return getattr(objects[number], name)(*given)
    raise InputError(f"nobody knows what {words[0]} means")


KIND = "\0"  # The key that marks a value with a type of its own; no other mapping has it

OURS = "hotloop."


@dataclass(frozen=True, slots=True)
class Opaque:
    """An object of a library, by its type and its own text: its equals have both."""

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text


def send(line: Connection, value: object) -> None:
    """Send a value; InputError if it has a part that cannot pass."""
    buffers: list[bytes] = []
    text = json.dumps(encode(value, buffers))
    line.send_bytes(json.dumps([len(each) for each in buffers]).encode())
    line.send_bytes(text.encode())
    for each in buffers:
        line.send_bytes(each)


def receive(line: Connection) -> Any:
    """Return the next value; EOFError if the other process has ended."""
    sizes = json.loads(line.recv_bytes())
    text = line.recv_bytes()
    buffers = [line.recv_bytes() for _ in sizes]
    return decode(json.loads(text), buffers)


def encode(value: Any, buffers: list[bytes]) -> Any:
    """Return a value as JSON; the bytes of its arrays join the buffers."""
    cls = type(value)
    if value is None or cls in (bool, int, float, str):
        return value
    if cls.__module__.startswith(OURS):
        return encode_own(value, buffers)
    for types, encoder in ENCODERS:
        if isinstance(value, types):
            return encoder(value, buffers)
    if (cls.__module__, cls.__name__) == ("torch", "Tensor"):
        return {KIND: "tensor", "value": encode_array(value.detach().cpu().numpy(), buffers)}
    if getattr(value, "__module__", "").startswith(OURS) and hasattr(value, "__qualname__"):
        return {KIND: "name", "class": f"{value.__module__}:{value.__qualname__}"}
    return {KIND: "opaque", "kind": f"{cls.__module__}.{cls.__qualname__}", "text": str(value)}


def encode_own(value: Any, buffers: list[bytes]) -> Any:
    """Return a value of one of Hotloop's own classes, by the class's name and its fields."""
    cls = type(value)
    name = f"{cls.__module__}:{cls.__qualname__}"
    if isinstance(value, Enum):
        return {KIND: "enum", "class": name, "name": value.name}
    if isinstance(value, HotloopError):
        return {KIND: "error", "class": name, "text": str(value)}
    if isinstance(value, tuple):  # named
        return {KIND: "named", "class": name, "items": encode_items(value, buffers)}
    if is_dataclass(value) and not isinstance(value, Opaque):
        own = {each.name: encode(getattr(value, each.name), buffers) for each in fields(value) if each.init}
        return {KIND: "dataclass", "class": name, "fields": own}
    raise InputError(f"a {getattr(value, 'kind', cls.__name__)} cannot pass between processes")


def encode_array(array: NDArray[Any], buffers: list[bytes]) -> dict[str, Any]:
    if array.dtype.hasobject:
        items = encode_items(array.ravel().tolist(), buffers)
        return {KIND: "objects", "shape": array.shape, "items": items}
    described, buffer = np.lib.format.dtype_to_descr(array.dtype), add_buffer(array.tobytes(), buffers)
    return {KIND: "array", "dtype": described, "shape": array.shape, "buffer": buffer}


def encode_items(values: Iterable[Any], buffers: list[bytes]) -> list[Any]:
    return [encode(each, buffers) for each in values]


def add_buffer(content: bytes, buffers: list[bytes]) -> int:
    """Return the number of a new buffer."""
    buffers.append(content)
    return len(buffers) - 1


def encode_generator(value: Any, buffers: list[bytes]) -> dict[str, Any]:
    if isinstance(value, np.random.Generator):
        kind, state = "generator", value.bit_generator.state
    elif isinstance(value, np.random.RandomState):
        kind, state = "legacy", value.get_state(legacy=False)
    else:
        kind, state = "python", value.getstate()
    return {KIND: kind, "state": encode(state, buffers)}


ENCODERS: tuple[tuple[Any, Callable[[Any, list[bytes]], Any]], ...] = (
    (np.ndarray, encode_array),
    (np.generic, lambda value, buffers: {KIND: "number", "value": encode_array(np.asarray(value), buffers)}),
    ((bytes, bytearray), lambda value, buffers: {KIND: "bytes", "buffer": add_buffer(bytes(value), buffers)}),
    (
        (dict, MappingProxyType),
        lambda value, buffers: {KIND: "dict", "items": encode_items(map(list, value.items()), buffers)},
    ),
    (list, encode_items),
    *(
        (kind, lambda value, buffers, name=kind.__name__: {KIND: name, "items": encode_items(value, buffers)})
        for kind in (tuple, set, frozenset)
    ),
    # Subclasses of plain values, such as the enumerations of a library.
    (int, lambda value, _: int(value)),
    (float, lambda value, _: float(value)),
    (str, lambda value, _: str.__str__(value)),
    (Path, lambda value, _: {KIND: "path", "text": str(value)}),
    ((np.random.Generator, np.random.RandomState, random.Random), encode_generator),
)


def decode(value: Any, buffers: list[bytes]) -> Any:
    """Return the value that `encode` made JSON of."""
    if isinstance(value, list):
        return [decode(each, buffers) for each in value]
    if not isinstance(value, dict):
        return value
    return DECODERS[value[KIND]](value, buffers)


def decode_objects(value: Mapping[str, Any], buffers: list[bytes]) -> NDArray[Any]:
    array = np.empty(len(value["items"]), object)
    array[:] = decode_items(value, buffers)
    return array.reshape(value["shape"])


def decode_items(value: Mapping[str, Any], buffers: list[bytes]) -> list[Any]:
    return [decode(each, buffers) for each in value["items"]]


def own_object(words: str) -> Any:
    """Return a class or function of Hotloop's own by its name, `module:name`."""
    module, _, name = words.partition(":")
    found: Any = import_module(module) if module.startswith(OURS) else None
    for part in name.split("."):
        found = getattr(found, part)
    return found


def decode_error(value: Mapping[str, Any], _: list[bytes]) -> HotloopError:
    cls = own_object(value["class"])
    assert issubclass(cls, HotloopError)
    error: HotloopError = cls.__new__(cls)
    error.args = (value["text"],)
    return error


def decode_generator(value: Mapping[str, Any], buffers: list[bytes]) -> Any:
    """Return a random generator of NumPy's or of Python's own, in the state it had."""
    state = decode(value["state"], buffers)
    if value[KIND] == "generator":
        bits = getattr(np.random, state["bit_generator"])()
        bits.state = state
        return np.random.Generator(bits)
    if value[KIND] == "legacy":
        legacy = np.random.RandomState()
        legacy.set_state(state)
        return legacy
    own = random.Random()
    own.setstate(state)
    return own


DECODERS: dict[str, Callable[[Mapping[str, Any], list[bytes]], Any]] = {
    "array": lambda value, buffers: (
        np.frombuffer(buffers[value["buffer"]], np.lib.format.descr_to_dtype(value["dtype"]))
        .reshape(value["shape"])
        .copy()
    ),
    "objects": decode_objects,
    "tensor": lambda value, buffers: need("torch").from_numpy(decode(value["value"], buffers)),
    "name": lambda value, _: own_object(value["class"]),
    "number": lambda value, buffers: decode(value["value"], buffers)[()],
    "bytes": lambda value, buffers: buffers[value["buffer"]],
    "dict": lambda value, buffers: dict(decode_items(value, buffers)),
    "tuple": lambda value, buffers: tuple(decode_items(value, buffers)),
    "set": lambda value, buffers: set(decode_items(value, buffers)),
    "frozenset": lambda value, buffers: frozenset(decode_items(value, buffers)),
    "path": lambda value, _: Path(value["text"]),
    "generator": decode_generator,
    "legacy": decode_generator,
    "python": decode_generator,
    "enum": lambda value, _: own_object(value["class"])[value["name"]],
    "error": decode_error,
    "named": lambda value, buffers: own_object(value["class"])(*decode_items(value, buffers)),
    "dataclass": lambda value, buffers: own_object(value["class"])(
        **{name: decode(each, buffers) for name, each in value["fields"].items()}
    ),
    "opaque": lambda value, _: Opaque(value["kind"], value["text"]),
}
