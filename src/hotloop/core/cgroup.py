"""The CPU and memory limits of the container this process runs in, from control groups 1 and 2."""

from collections.abc import Iterator
from pathlib import Path

UNLIMITED_BYTES = 1 << 60
"""Version 1 writes no limit as a number near 2**63."""


def limits(root: Path) -> dict[str, float | None]:
    """CPUs and bytes this process may use; None where nothing limits them."""
    cpus = [quota for folder in folders(root, "cpu") for quota in (*cpu_max(folder), *cfs_quota(folder))]
    memory = [size for folder in folders(root, "memory") for size in memory_limit(folder)]
    return {"cpus": min(cpus, default=None), "memory_bytes": min(memory, default=None)}


def folders(root: Path, controller: str) -> Iterator[Path]:
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
