"""Whether this machine is fit to measure: facts first, then one check each, with what to do about it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any, Literal

from hotloop.core.clock import now_ns
from hotloop.core.machine import install_line, machine
from hotloop.envs import cuda, native
from hotloop.judge.course import BUSY_LOAD
from hotloop.judge.judge import CLOCKS, GOVERNORS, STEAL_SHARE

State = Literal["ok", "warn", "bad"]

Facts = Mapping[str, Any]

Finding = tuple[State, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One line of the report."""

    name: str
    state: State
    found: str
    remedy: str  # What to do; empty where all is well


def examine(facts: Facts) -> list[Check]:
    """Make every check."""
    checks = []
    for name, (judged, remedy) in CHECKS.items():
        state, found = judged(facts)
        checks.append(Check(name=name, state=state, found=found, remedy="" if state == "ok" else remedy))
    return checks


def is_fit(checks: list[Check]) -> bool:
    """Whether a number measured now would mean anything: nothing is bad."""
    return all(check.state != "bad" for check in checks)


def gather() -> dict[str, Any]:
    """The machine of a record, and what else measuring depends on."""
    build, cuda_build, gpu = native.build(), cuda.build(), cuda.device()
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    compilers = (os.environ.get("CXX"), "c++", "g++", "clang++")
    return {
        **machine(),
        "timer_ns": timer_ns(),
        "compiler": next(filter(None, (shutil.which(name) for name in compilers if name)), None),
        "native": asdict(build) if build else None,
        "cuda": {
            "build": asdict(cuda_build) if cuda_build else None,
            "device": None if isinstance(gpu, str) else asdict(gpu),
            "why_not": gpu if isinstance(gpu, str) else None,
        },
        "torch": installed_version("torch"),
        "py_spy": shutil.which("py-spy", path=programs),
        "may_trace": may_trace(),
    }


def timer_ns(reads: int = 1000, tries: int = 5) -> float:
    """What one reading of the clock costs."""
    took = []
    for _ in range(tries):
        begin = now_ns()
        for _ in range(reads):
            now_ns()
        took.append((now_ns() - begin) / reads)
    return median(took)


def installed_version(package: str) -> str | None:
    """The version of an installed package, without importing it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def may_trace() -> bool | None:
    """Whether a profiler may look into a process of ours; None where /proc does not say."""
    if not Path("/proc/self/mem").exists():
        return None
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:  # ends with its input
        try:
            Path(f"/proc/{child.pid}/mem").open("rb").close()
        except PermissionError:
            return False
    return True


def less_is_better(value: float, *, warn: float, bad: float) -> State:
    return "ok" if value < warn else "warn" if value < bad else "bad"


def cores(facts: Facts) -> Finding:
    usable = facts["usable_cores"] or 1
    return "ok" if usable > 1 else "warn", f"{usable} of {facts['cores']} usable, {facts['cpu']}"


def load(facts: Facts) -> Finding:
    if facts["load"] is None:
        return "ok", "unknown on this system"
    usable = facts["usable_cores"] or 1
    state = less_is_better(facts["load"] / usable, warn=BUSY_LOAD, bad=1.0)
    return state, f"{facts['load']:.1f} on {usable} cores"


def steal(facts: Facts) -> Finding:
    share = facts["steal_share"] or 0.0
    state = less_is_better(share, warn=STEAL_SHARE, bad=0.10)
    return state, f"{share:.1%} of the time since boot went to other machines"


def one_of(key: str, good: Collection[str | None], unknown: str) -> Callable[[Facts], Finding]:
    """Return the check that a fact is one of some good values."""
    return lambda facts: ("ok" if facts[key] in good else "warn", facts[key] or unknown)


def present(key: str, absent: str) -> Callable[[Facts], Finding]:
    """Return the check that something is installed."""
    return lambda facts: ("ok", facts[key]) if facts[key] else ("warn", absent)


def timer(facts: Facts) -> Finding:
    return less_is_better(facts["timer_ns"], warn=200, bad=2000), f"{facts['timer_ns']:.0f} ns a reading"


def native_module(facts: Facts) -> Finding:
    build = facts["native"]
    if build is None:
        return "warn", "not built: only twins run"
    return "ok", f"{build['compiler']}, {build['flags']}"


def cuda_module(facts: Facts) -> Finding:
    found = facts["cuda"]
    build, gpu = found["build"], found["device"]
    if build is None:
        state: State = "warn" if facts["gpu"] else "ok"
        return state, "not built: device=cuda is refused"
    if gpu is None:
        return "warn", found["why_not"]
    return "ok", f"{build['compiler']} for {build['isa']}, on {gpu['name']} ({gpu['memory'] / 1e9:.0f} GB)"


def gpu(facts: Facts) -> Finding:
    found = facts["gpu"]
    return "ok", f"{found['count']} x {found['name']}" if found else "none: everything runs on the CPU"


def py_spy(facts: Facts) -> Finding:
    if not facts["py_spy"]:
        return "warn", "not installed"
    return ("warn", "may not look into processes") if facts["may_trace"] is False else ("ok", facts["py_spy"])


# Every check by name, and what to do where it is not ok
CHECKS: dict[str, tuple[Callable[[Facts], Finding], str]] = {
    "cores": (cores, "give the measurement a core of its own"),
    "load": (load, "stop other work and wait a minute"),
    "steal": (steal, "measure on a machine of its own, or trust interleaved comparisons only"),
    "governor": (
        one_of("governor", GOVERNORS, "not visible, the host decides"),
        "sudo cpupower frequency-set -g performance",
    ),
    "clock source": (
        one_of("clocksource", CLOCKS, "unknown on this system"),
        "boot with clocksource=tsc where the machine allows it",
    ),
    "timer": (timer, "use a machine whose clock is read without a system call"),
    "compiler": (present("compiler", "none found"), "install a C++20 compiler such as g++ 12"),
    "native module": (native_module, "install hotloop again where there is a compiler"),
    "CUDA module": (
        cuda_module,
        "install hotloop again with -C cmake.define.HOTLOOP_CUDA=ON where there are nvcc and a GPU",
    ),
    "torch": (present("torch", "not installed"), f"{install_line('torch')}; only training needs it"),
    "GPU": (gpu, ""),
    "py-spy": (py_spy, f"{install_line('py-spy')}; a container also needs --cap-add SYS_PTRACE"),
}
