"""The machine a number was measured on: what it is, what limits it, and how busy it was."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from hotloop.core.record.metadata import Gpu, Limits, Machine

ROOT = Path("/")
"""The file system facts are read from; tests give a folder of their own."""

ISA = (
    *("sse4_2", "avx", "avx2", "fma", "bmi2"),
    *("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vbmi", "avx512_vbmi2", "avx512_vnni"),
    *("amx_tile", "asimd", "sve", "sve2"),
)
"""The instruction sets worth telling machines apart by, as /proc/cpuinfo spells them."""

UNLIMITED_BYTES = 1 << 60
"""Version 1 writes no limit as a number near 2**63."""

GPU_QUERY = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]

PATIENCE_S = 20


def machine(root: Path = ROOT) -> Machine:
    """The `machine` part of a record; what cannot be found out here is None or empty."""
    hardware = describe_hardware(root)
    facts = {"fingerprint": fingerprint(hardware), **hardware, **describe_system(), **describe_moment(root)}
    return cast("Machine", facts)


def describe_hardware(root: Path) -> dict[str, Any]:
    """What the machine is: the same under any load, at any time and after a reboot."""
    import psutil

    cpuinfo = read_cpuinfo(root)
    return {
        "cpu": cpuinfo.get("model name") or platform.processor() or platform.machine(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "isa": isa(cpuinfo),
        "gpu": gpu(),
        "limits": container_limits(root),
    }


def describe_system() -> dict[str, Any]:
    """The software under the measured code."""
    return {"kernel": f"{platform.system()} {platform.release()}", "python": platform.python_version()}


def describe_moment(root: Path) -> dict[str, Any]:
    """What the machine was doing when it was asked."""
    cpu = root / "sys/devices/system"
    return {
        "usable_cores": usable_cores(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "governor": read_text(cpu / "cpu/cpu0/cpufreq/scaling_governor"),
        "steal_share": steal_share(root),
        "clocksource": read_text(cpu / "clocksource/clocksource0/current_clocksource"),
    }


def fingerprint(hardware: dict[str, Any]) -> str:
    """Twelve hex digits that two machines share where their numbers can be compared.

    Memory counts to the GiB, since kernels keep a little for themselves; drivers and memory limits do not.
    """
    accelerator = hardware["gpu"] and (hardware["gpu"]["name"], hardware["gpu"]["count"])
    memory_gib = round(hardware["memory_bytes"] / 2**30)
    facts = [hardware[key] for key in ("cpu", "architecture", "cores", "isa")]
    text = json.dumps([*facts, memory_gib, accelerator, hardware["limits"]["cpus"]])
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_text(path: Path) -> str | None:
    """The stripped text of a file, None where it cannot be read."""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return None


def read_cpuinfo(root: Path) -> dict[str, str]:
    """The fields of the first processor in /proc/cpuinfo; empty on systems without it."""
    first = (read_text(root / "proc/cpuinfo") or "").partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def isa(cpuinfo: dict[str, str]) -> list[str]:
    """The known instruction sets this processor has; x86 calls them flags, ARM features."""
    has = set((cpuinfo.get("flags") or cpuinfo.get("Features") or "").split())
    return [name for name in ISA if name in has]


def usable_cores() -> int | None:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def steal_share(root: Path) -> float | None:
    """The share of time since boot that the hypervisor gave to others."""
    ticks = cpu_ticks(root)
    total = sum(ticks)
    return ticks[7] / total if len(ticks) == 8 and total else None


def stolen_ticks(root: Path = ROOT) -> int | None:
    """Hundredths of a second that the hypervisor gave to others since boot; None where nobody counts them."""
    ticks = cpu_ticks(root)
    return ticks[7] if len(ticks) == 8 else None


def cpu_ticks(root: Path) -> list[int]:
    """Of all cores together: user, nice, system, idle, iowait, irq, softirq, steal."""
    first = (read_text(root / "proc/stat") or "").partition("\n")[0].split()
    return [int(word) for word in first[1:9]]


def container_limits(root: Path) -> Limits:
    """CPUs and bytes this process may use; None where nothing limits them."""
    cpus = [
        quota for folder in group_folders(root, "cpu") for quota in (*cpu_max(folder), *cfs_quota(folder))
    ]
    memory = [size for folder in group_folders(root, "memory") for size in memory_limit(folder)]
    return {"cpus": min(cpus, default=None), "memory_bytes": min(memory, default=None)}


def group_folders(root: Path, controller: str) -> Iterator[Path]:
    """The groups of this process for a controller, up to the top: each of them can set a limit.

    A container often sees itself as the top while its path is the host's, so folders may not exist.
    """
    for line in read_lines(root / "proc/self/cgroup"):
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / (controller if controllers else "")
        group = mount / path.lstrip("/")
        yield group
        yield from (parent for parent in group.parents if parent.is_relative_to(mount))


def cpu_max(folder: Path) -> Iterator[float]:
    """Version 2: `quota period`, or `max period`."""
    for line in read_lines(folder / "cpu.max"):
        quota, period = line.split()
        if quota != "max":
            yield int(quota) / int(period)


def cfs_quota(folder: Path) -> Iterator[float]:
    """Version 1: quota and period in files of their own, -1 for no limit."""
    quotas, periods = read_lines(folder / "cpu.cfs_quota_us"), read_lines(folder / "cpu.cfs_period_us")
    for quota, period in zip(quotas, periods, strict=False):
        if int(quota) > 0:
            yield int(quota) / int(period)


def memory_limit(folder: Path) -> Iterator[int]:
    """Version 2 says `max` for no limit, version 1 a very large number."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        for line in read_lines(folder / name):
            if line != "max" and int(line) < UNLIMITED_BYTES:
                yield int(line)


def read_lines(path: Path) -> list[str]:
    """The lines of a file; none where it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []


def gpu() -> Gpu | None:
    """Name, count, memory and driver of the first GPU and its likes; None where there is none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, *GPU_QUERY], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_gpus(done.stdout) if done.returncode == 0 else None


def parse_gpus(answer: str) -> Gpu | None:
    """Read lines of `name, MiB, driver`, one a GPU."""
    rows = [line.split(", ") for line in answer.splitlines() if line.strip()]
    if not rows:
        return None
    name, mebibytes, driver = rows[0]
    memory_bytes = int(mebibytes) << 20 if mebibytes.isdigit() else None  # some boards answer [N/A]
    return {"name": name, "count": len(rows), "memory_bytes": memory_bytes, "driver": driver}
