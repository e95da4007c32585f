"""What a profiled program runs before anything of its own: Python imports a module of this name by itself.

HOTLOOP_WITHIN names a folder for what is found and HOTLOOP_LOOK what to look with, commas between: samples,
cprofile, memory. Every Python process of the program has its own files, by its pid. It uses the standard
library alone, and the program's own sitecustomize is run after it. Nothing here may break the program: what
cannot look says why in a file.
"""

import atexit
import importlib.machinery
import importlib.util
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).resolve().parent

SAMPLER = HERE.parents[2] / "core" / "sampler.py"

FOLDER = os.environ.get("HOTLOOP_WITHIN", "")

# A process that Python starts for itself, and which only waits.
BOOKKEEPER = "multiprocessing.resource_tracker"

MOST_STACKS = 20_000  # Kept of one process; the rarest are left out


def begin() -> None:
    """Start whatever is asked for; each tells how it is ended."""
    starts = {"samples": samples, "cprofile": cprofile, "memory": memory}
    for name in filter(None, os.environ.get("HOTLOOP_LOOK", "").split(",")):
        try:
            end = starts[name]()
        except Exception as error:  # noqa: BLE001 - the program has to go on
            file(f"{name}.error").write_text(f"{type(error).__name__}: {error}")
        else:
            atexit.register(end)


def file(name: str) -> Path:
    return Path(FOLDER) / f"{os.getpid()}.{name}"


def load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def samples() -> Callable[[], None]:
    """Stacks of the main thread, by a timer, until the program wants its signal for itself."""
    sampler = load(SAMPLER, "hotloop_sampler").StackSampler()
    begun, given = time.perf_counter_ns(), signal.signal
    mine, ended = os.getpid(), list[bool]()

    def signal_or_end(number: int, handler: Any) -> Any:
        if number == signal.SIGALRM and os.getpid() == mine:
            end()
        return given(number, handler)

    def end() -> None:
        if ended or os.getpid() != mine:
            return
        ended.append(True)
        vars(signal)["signal"] = given
        sampler.__exit__(None, None, None)
        most = sampler.ns.most_common(MOST_STACKS)
        stacks = [[list(stack), ns, sampler.cpu_ns[stack]] for stack, ns in most]
        told = {"samples": sampler.samples, "wall_ns": time.perf_counter_ns() - begun, "stacks": stacks}
        file("samples.json").write_text(json.dumps(told))

    def end_before(event: str, _: object) -> None:
        if event == "os.exec":  # the timer would go on in whatever comes then
            end()

    allow_tracing()
    file("ready").touch()
    sampler.__enter__()
    vars(signal)["signal"] = signal_or_end
    sys.addaudithook(end_before)
    return end


def allow_tracing() -> None:
    """Let Hotloop look at this process from outside if the machine allows that to parents only."""
    with suppress(Exception):
        if Path("/proc/sys/kernel/yama/ptrace_scope").read_text().strip() == "1":
            import ctypes

            ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER


def cprofile() -> Callable[[], None]:
    """Every function of the main thread."""
    import cProfile

    profiler = cProfile.Profile()
    profiler.enable()

    def end() -> None:
        profiler.disable()
        profiler.dump_stats(file("pstats"))

    return end


def memory() -> Callable[[], None]:
    """Every allocation, by memray, if this Python has it."""
    import memray

    kept = memray.FileDestination(file("memory.bin"), overwrite=True, compress_on_exit=False)
    tracker = memray.Tracker(destination=kept, trace_python_allocators=True)
    tracker.__enter__()

    def end() -> None:
        tracker.__exit__(None, None, None)

    return end


def run_the_other_one() -> None:
    """Run the sitecustomize that this one stands before, if there is one."""
    rest = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    found = importlib.machinery.PathFinder.find_spec("sitecustomize", rest)
    if found and found.origin:
        with suppress(FileNotFoundError):
            load(Path(found.origin), "sitecustomize")


if FOLDER and Path(FOLDER).is_dir():
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
    if not any(BOOKKEEPER in word for word in sys.orig_argv):
        begin()
    run_the_other_one()
