"""Ray: a cluster that is started here or reached by its address, and left as it was found.

What is said on the way is one line of ours: a cluster that does not answer is said within ten seconds.
"""

import fcntl
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from time import monotonic, sleep
from types import ModuleType
from typing import Any

from hotloop.core.errors import InputError, SetupError
from hotloop.core.machine import need, usable_cores
from hotloop.core.progress import SIGNALS

LOCAL = "ray"  # A cluster of this machine alone, started for one command

SCHEME = "ray://"

PORT = 10_001  # Of Ray's client server, where none is given
ANSWER_S = 4.0  # What a machine may take to answer at all
STORE_BYTES = 256 << 20  # Of the object store of a cluster that is started here

# Tries, where a machine is too busy to make the processes of who connects in the time that Ray gives it.
CONNECTS = 3

# What Ray says then, of a cluster and of one that it starts.
SLOW = ("Initialization failure from server", "timed out during startup")

# What the folder of a cluster that is started here is called, and the file in it that its process locks.
FOLDER, LOCK = "hotloop-ray-", ".lock"

# For Ray's processes to end and leave the folder alone, and between two looks at it.
ENDING_S, LOOK_S = 10.0, 0.1

LONGEST = 32  # Letters of where that folder lies: the names of sockets in it have to be short

# Paths that are left out of the working directory uploaded to Ray.
LEFT_AT_HOME = ["artifacts", "train_dir", "build", ".git", ".venv", "venv", "__pycache__", "*.pyc"]

# Of the environment: nothing is reported, and a connection that does not answer is given up soon.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "1",
    "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": "2",
}


def check_address(word: str) -> str:
    """The address as it was typed; InputError where it is none."""
    if word == LOCAL or (word.startswith(SCHEME) and word != SCHEME):
        return word
    raise InputError(f"{word!r} names no cluster: expected {LOCAL} or {SCHEME}HOST:PORT")


def place_of(address: str) -> tuple[str, int]:
    """The host and the port of an address."""
    host, _, port = address.removeprefix(SCHEME).partition(":")
    if port and not port.isdecimal():
        raise InputError(f"{address} names no cluster: expected {SCHEME}HOST:PORT, and {port} is no port")
    return host, int(port or PORT)


def load() -> ModuleType:
    """Ray itself, told to be quiet before it is imported."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    return need("ray")


@contextmanager
def connected(address: str, *, carry: Path | None = None, cores: int | None = None) -> Iterator[Any]:
    """Ray, connected meanwhile; `carry` is a folder that travels to machines that are not this one."""
    check_address(address)
    if address != LOCAL:
        host, port = place_of(address)
        try:
            socket.create_connection((host, port), timeout=ANSWER_S).close()
        except OSError as error:
            why = ray_error_text(error)
            raise SetupError(f"{address} cannot be reached: {why}; is a Ray head running there?") from None
    ray = load()
    if ray.is_initialized():
        raise SetupError("this process is connected to Ray already: disconnect first")
    with ExitStack() as stack:
        stack.enter_context(silence_ray())
        place = stack.enter_context(own_folder()) if address == LOCAL else None
        with signals_kept():
            begin(ray, address, carry, cores, place)
        try:
            yield ray
        finally:
            with signals_kept():
                ray.shutdown()


@contextmanager
def silence_ray() -> Iterator[None]:
    """Keep Ray from printing paragraphs on lost workers: the caller says what became of them."""
    module, name = sys.modules.get("ray._private.worker"), "print_to_stdstream"
    printing = getattr(module, name, None)
    if module is None or printing is None:
        yield
        return
    setattr(module, name, lambda *_, **__: None)
    try:
        yield
    finally:
        setattr(module, name, printing)


@contextmanager
def own_folder() -> Iterator[Path]:
    """Where a cluster that is started here keeps logs and sockets; goes with it, as do those of the dead.

    It is locked while its process lives; one that was killed leaves it to the next one.
    """
    usual = os.environ.get("RAY_TMPDIR") or tempfile.gettempdir()
    root = Path(usual if len(usual) <= LONGEST else "/tmp")
    for left in root.glob(f"{FOLDER}*/{LOCK}"):
        with suppress(OSError), left.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove_folder(left.parent)
    made = Path(tempfile.mkdtemp(prefix=FOLDER, dir=root))
    try:
        with (made / "new").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            (made / "new").rename(made / LOCK)  # seen only once it is locked
            yield made
    finally:
        remove_folder(made)


def remove_folder(folder: Path) -> None:
    """Remove the folder of a cluster, once Ray's processes have left it alone.

    The lock goes last, so that the next cluster takes what they still write after that.
    """
    lock, until = folder / LOCK, monotonic() + ENDING_S
    while folder.exists():
        for each in [each for each in folder.iterdir() if each != lock]:
            rmtree(each, ignore_errors=True)
            with suppress(OSError):
                each.unlink()
        lock.unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()
            return
        lock.touch()
        if monotonic() > until:
            return
        sleep(LOOK_S)


def begin(ray: Any, address: str, carry: Path | None, cores: int | None, place: Path | None = None) -> None:
    """Start Ray, or connect to it."""
    usual: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == LOCAL:
        usual |= {"address": "local", "num_cpus": cores or usable_cores() or 1, "include_dashboard": False}
        usual |= {"object_store_memory": STORE_BYTES, "_temp_dir": str(place) if place else None}
    else:
        host, port = place_of(address)
        travels = {"working_dir": str(carry), "excludes": LEFT_AT_HOME} if carry else {}
        usual |= {"address": f"{SCHEME}{host}:{port}", "runtime_env": travels}
    for left in reversed(range(CONNECTS)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ray.init(**usual)
        except Exception as error:  # noqa: BLE001 - which is what Ray itself raises
            ray.shutdown()
            if not (left and any(words in str(error) for words in SLOW)):
                raise SetupError(f"{address} cannot be used: {ray_error_text(error)}") from None
        except BaseException:  # interrupted, with processes that have begun
            ray.shutdown()
            raise
        else:
            return


def ray_error_text(error: BaseException) -> str:
    """An error of others in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (
        ": ".join(dict.fromkeys((lines[0].rstrip(".:"), lines[-1].rstrip("."))))
        if lines
        else type(error).__name__
    )


@contextmanager
def signals_kept() -> Iterator[None]:
    """Keep the handlers of Ctrl-C, SIGTERM and SIGHUP, which Ray would replace."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.getsignal(each) for each in SIGNALS}
    try:
        yield
    finally:
        for each, handler in before.items():
            if handler is not None:  # which one that is not of Python's is
                signal.signal(each, handler)
