"""A target, `hostile_env.py:make`, that behaves as badly as `how=` says, at call `at` of `where`.

It is plain Python on purpose: what it costs to start is what a process of its own costs.
"""

import atexit
import ctypes
import gc
import logging
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOREVER = 3600


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Bare(BaseException):
    """What is no Exception."""


def raises(error: BaseException) -> Callable[["Env"], None]:
    def do(_: "Env") -> None:
        raise error

    return do


def signals(number: int) -> Callable[["Env"], None]:
    return lambda _: os.kill(os.getpid(), number)


def recurse(env: "Env") -> None:
    recurse(env)


def overflow(env: "Env") -> None:
    sys.setrecursionlimit(10**9)
    threading.stack_size()
    deep: Any = eval("(" * 90 + ")" * 90)
    for _ in range(10**6):
        deep = (deep,)
    hash(deep)


def backtrack(_: "Env") -> None:
    import re

    re.match(r"(a+)+$", "a" * 64 + "b")  # holds the interpreter's lock for ever


def spin(_: "Env") -> None:
    while True:
        pass


def deaf(_: "Env") -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))
    time.sleep(FOREVER)


def hungry(_: "Env") -> None:
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    bytearray(1 << 40)


def forks(_: "Env") -> None:
    os.fork()  # and the copy comes back into the loop


ENDS: dict[str, Callable[["Env"], None]] = {
    "exit_0": lambda _: os._exit(0),
    "exit_1": lambda _: os._exit(1),
    "exit_2": lambda _: os._exit(2),
    "exit_3": lambda _: os._exit(3),
    "exit_70": lambda _: os._exit(70),
    "sys_exit": lambda _: sys.exit(2),
    "sys_exit_0": lambda _: sys.exit(0),
    "sys_exit_words": lambda _: sys.exit("enough"),
    "value_error": raises(ValueError("bad value")),
    "stop_iteration": raises(StopIteration()),
    "generator_exit": raises(GeneratorExit()),
    "base_exception": raises(Bare("bare")),
    "no_space": raises(OSError(28, "No space left on device")),
    "broken_pipe": raises(BrokenPipeError()),
    "assertion": raises(AssertionError()),
    "two_lines": raises(ValueError("one\ntwo \x1b[31mred")),
    "unprintable": raises(Unprintable()),
    "recursion": recurse,
    "overflow": overflow,
    "memory": hungry,
    "segfault": lambda _: ctypes.string_at(0) and None,
    "abort": lambda _: os.abort(),
    "sigkill": signals(signal.SIGKILL),
    "sigbus": signals(signal.SIGBUS),
    "sigfpe": signals(signal.SIGFPE),
    "sighup": signals(signal.SIGHUP),
    "sigterm": signals(signal.SIGTERM),
    "sigint": signals(signal.SIGINT),
    "sigusr1": signals(signal.SIGUSR1),
    "sigstop": signals(signal.SIGSTOP),
    "alarm": lambda _: signal.alarm(1) or time.sleep(FOREVER),
    "sleeps": lambda _: time.sleep(FOREVER),
    "spins": spin,
    "holds_the_lock": backtrack,
    "deaf": deaf,
}
"""What no measurement survives."""

HANGS = ("sleeps", "spins", "holds_the_lock", "deaf", "sigstop")


def chdir(_: "Env") -> None:
    os.chdir("/")


def removed(_: "Env") -> None:
    import tempfile

    made = tempfile.mkdtemp()
    os.chdir(made)
    Path(made).rmdir()


def clears(_: "Env") -> None:
    os.environ.clear()


def thread(*, daemon: bool) -> Callable[["Env"], None]:
    return lambda _: threading.Thread(target=time.sleep, args=(FOREVER,), daemon=daemon, name="left").start()


def process(_: "Env") -> None:
    Env.kept = subprocess.Popen(["sleep", str(FOREVER)])


def daemon(_: "Env") -> None:
    words = "import os, time; os.fork() and os._exit(0); os.setsid(); time.sleep(3600)"
    subprocess.run([sys.executable, "-S", "-c", words], check=True)


def close_descriptors(first: int, last: int) -> Callable[["Env"], None]:
    return lambda _: os.closerange(first, last)


def reopened(_: "Env") -> None:
    os.closerange(0, 256)
    Env.kept = [os.open(os.devnull, os.O_WRONLY) for _ in range(250)]


def no_streams(_: "Env") -> None:
    sys.stdout = sys.stderr = None  # type: ignore[assignment]


def closes_streams(_: "Env") -> None:
    sys.stdout.close()
    sys.__stdout__.close()  # type: ignore[union-attr]


def floods(_: "Env") -> None:
    for _ in range(1000):
        os.write(1, b"x" * 999 + b"\n")


def traced(_: "Env") -> None:
    sys.settrace(lambda *_: None)


def talks(_: "Env") -> None:
    """Says something now and for ever, also while the result is printed."""

    def talk() -> None:
        while True:
            sys.stdout.write("still here\n")
            time.sleep(0.001)

    threading.Thread(target=talk, daemon=True, name="talks").start()


def logs(_: "Env") -> None:
    logging.basicConfig(level=0, force=True, stream=sys.stdout)
    logging.getLogger("target").warning("logged by the target")


def stopped_clock(_: "Env") -> None:
    for name in ("time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "perf_counter_ns"):
        setattr(time, name, lambda: 1)
    time.sleep = lambda _: None


def own_process(_: "Env") -> None:
    Env.kept = multiprocessing.get_context("fork").Process(target=time.sleep, args=(FOREVER,))
    Env.kept.start()


def strict_numbers(_: "Env") -> None:
    import numpy as np

    np.seterr(all="raise")
    np.set_printoptions(threshold=0)


def few_files(_: "Env") -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))


STANDS: dict[str, Callable[["Env"], None]] = {
    "fine": lambda _: None,
    "chdir": chdir,
    "folder_removed": removed,
    "umask": lambda _: os.umask(0o777) and None,
    "ignores_sigint": lambda _: signal.signal(signal.SIGINT, signal.SIG_IGN) and None,
    "own_sigterm": lambda _: signal.signal(signal.SIGTERM, lambda *_: None) and None,
    "own_sigalrm": lambda _: signal.signal(signal.SIGALRM, lambda *_: None) and None,
    "clears_variables": clears,
    "thread": thread(daemon=False),
    "daemon_thread": thread(daemon=True),
    "process": process,
    "daemon_process": daemon,
    "closes_stdio": close_descriptors(0, 3),
    "closes_everything": close_descriptors(0, 4096),
    "closes_and_reopens": reopened,
    "no_streams": no_streams,
    "closes_streams": closes_streams,
    "prints": lambda _: sys.stdout.write("printed by the target\n") and None,
    "writes_to_1": lambda _: os.write(1, b"written by the target\n\xff\n") and None,
    "floods": floods,
    "seeds": lambda _: random.seed(1),
    "path": lambda _: sys.path.clear(),
    "argv": lambda _: sys.argv.clear(),
    "collects": lambda _: gc.enable() or (gc.collect() and None),
    "freezes": lambda _: gc.freeze(),
    "traced": traced,
    "warnings": lambda _: warnings.simplefilter("error"),
    "at_exit_raises": lambda _: atexit.register(raises(ValueError("too late")), None) and None,
    "at_exit_exits": lambda _: atexit.register(os._exit, 3) and None,
    "nice": lambda _: os.nice(5) and None,
    "few_files": few_files,
    "talks": talks,
    "logs": logs,
    "stopped_clock": stopped_clock,
    "own_process": own_process,
    "strict_numbers": strict_numbers,
    "profiled": lambda _: sys.setprofile(lambda *_: None),
    "forks": forks,
}
"""What a measurement survives, with a notice where something had to be undone."""

UNTIDY = {
    "chdir": "changed the folder",
    "folder_removed": "changed the folder",
    "umask": "changed the umask",
    "path": "folders off sys.path",
    "ignores_sigint": "changed the handlers of SIGINT",
    "own_sigterm": "changed the handlers of SIGTERM",
    "own_sigalrm": "changed the handlers of SIGALRM",
    "clears_variables": "changed the variables",
    "thread": "left threads running (left",
    "daemon_thread": "left threads running (left",
    "talks": "left threads running (talks",
    "process": "running",
    "own_process": "running",
    "daemon_process": "running",
    "closes_stdio": "closed stdout",
    "closes_everything": "closed stdout",
}
"""What is said of it."""


class Env:
    """Counts its steps; episodes last fifty."""

    num_actions = 2
    kept: Any = None

    def __init__(self, how: str, at: int, where: str) -> None:
        self.how = {**ENDS, **STANDS}[how]
        self.at, self.where = at, where
        self.calls = {"make": 0, "reset": 0, "step": 0, "close": 0}
        self.age = 0
        self._call("make")

    def _call(self, method: str) -> None:
        self.calls[method] += 1
        if method == self.where and self.calls[method] == self.at:
            self.how(self)

    def reset(self, seed: int | None = None) -> tuple[int, dict[str, Any]]:
        self._call("reset")
        self.age = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._call("step")
        self.age += 1
        return self.age, 1.0, self.age == 50, False, {}

    def close(self) -> None:
        self._call("close")


def make(how: str = "fine", at: int = 1, where: str = "step", size: int = 1) -> Env:
    """`at` is the call that does it: of step, reset or close, or the first of make; `size` does nothing."""
    return Env(how, at, where)


def taught(how: str = "fine", at: int = 1, where: str = "step", size: int = 1) -> Any:
    """The same as an env of Gymnasium, which can be trained on."""
    import gymnasium
    import numpy as np

    class Taught(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(0, 1, (1,))
        action_space = gymnasium.spaces.Discrete(2)
        own = Env(how, at, where)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
            return np.float32([self.own.reset()[0] / 50]), {}

        def step(self, action: Any) -> Any:
            seen, *rest = self.own.step(action)
            return np.float32([seen / 50]), *rest

        def close(self) -> None:
            self.own.close()

    return Taught()


def tidy() -> Env:
    """An env that ends in close what it has started."""
    env = Env("fine", 1, "close")
    worker = subprocess.Popen(["sleep", "600"])
    env.how = lambda _: worker.kill() or (worker.wait() and None)
    return env


def untidy() -> Env:
    """An env that does all it can to its process in its third step."""
    env = Env("fine", 3, "step")
    kinds = (
        *("chdir", "umask", "own_sigalrm", "daemon_thread", "process", "daemon_process"),
        "closes_everything",
    )

    def soil(_: Env) -> None:
        for each in kinds:
            STANDS[each](env)

    env.how = soil
    return env


def loud() -> Env:
    """An env that writes past Python in its third step, and raises when it is closed."""
    env = Env("writes_to_1", 3, "step")
    env.close = lambda: raises(ValueError("at the end"))(env)  # type: ignore[method-assign]
    return env


def slow(seconds: float = 0.3) -> Env:
    """An env whose steps take long and go on."""
    env = Env("fine", 0, "step")
    step = env.step

    def slowly(action: int) -> Any:
        time.sleep(seconds)
        return step(action)

    env.step = slowly  # type: ignore[method-assign]
    return env
