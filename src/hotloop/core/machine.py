"""The machine and the code that a number was measured on, and the optional packages that are installed.

The code is Hotloop's with its native part, and the target's project with a hash of each loaded file.
"""

import hashlib
import importlib
import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlparse

from hotloop.core.errors import MissingError
from hotloop.core.files import INSTALLED
from hotloop.core.process.lifeline import anchored, here
from hotloop.core.settings import names_callable

if TYPE_CHECKING:
    from hotloop.core.record.metadata import CodeInfo, ContainerLimits, Gpu, Machine, ProjectCode

ROOT = Path("/")  # The file system facts are read from; tests give a folder of their own

# The instruction sets worth telling machines apart by, as /proc/cpuinfo spells them.
ISA = (
    *("sse4_2", "avx", "avx2", "fma", "bmi2"),
    *("avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vbmi", "avx512_vbmi2", "avx512_vnni"),
    *("amx_tile", "asimd", "sve", "sve2"),
)

UNLIMITED_BYTES = 1 << 60  # Version 1 writes no limit as a number near 2**63

GPU_QUERY = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader,nounits"]

PATIENCE_S = 20


def machine(root: Path = ROOT) -> "Machine":
    """The `machine` part of a record; what cannot be found out here is None or empty."""
    hardware = describe_hardware(root)
    cpu, ticks = root / "sys/devices/system", cpu_ticks(root)
    all_ticks = sum(ticks)
    moment: dict[str, Any] = {
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "usable_cores": usable_cores(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "governor": read_text(cpu / "cpu/cpu0/cpufreq/scaling_governor"),
        "steal_share": ticks[7] / all_ticks if len(ticks) == 8 and all_ticks else None,
        "clocksource": read_text(cpu / "clocksource/clocksource0/current_clocksource"),
    }
    return cast("Machine", {"fingerprint": fingerprint(hardware), **hardware, **moment})


def describe_hardware(root: Path) -> dict[str, Any]:
    """What the machine is: the same under any load, at any time and after a reboot."""
    import psutil

    processor, _, _ = (read_text(root / "proc/cpuinfo") or "").partition("\n\n")
    pairs = (line.partition(":") for line in processor.splitlines())
    cpuinfo = {key.strip(): value.strip() for key, _, value in pairs}
    features = (cpuinfo.get("flags") or cpuinfo.get("Features") or "").split()  # of x86, of ARM
    return {
        "cpu": cpuinfo.get("model name") or platform.processor() or platform.machine(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
        "isa": [name for name in ISA if name in features],
        "gpu": gpu(),
        "limits": container_limits(root),
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


def usable_cores() -> int | None:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def stolen_ticks(root: Path = ROOT) -> int | None:
    """Hundredths of a second that the hypervisor gave to others since boot; None if they are not counted."""
    ticks = cpu_ticks(root)
    return ticks[7] if len(ticks) == 8 else None


def cpu_ticks(root: Path) -> list[int]:
    """Of all cores together: user, nice, system, idle, iowait, irq, softirq, steal."""
    first = (read_text(root / "proc/stat") or "").partition("\n")[0].split()
    return [int(word) for word in first[1:9]]


def container_limits(root: Path) -> "ContainerLimits":
    """CPUs and bytes this process may use; None where nothing limits them."""
    cpus, memory = list[float](), list[int]()
    for folder in group_folders(root, "cpu"):
        for line in read_lines(folder / "cpu.max"):  # version 2 has one file
            quota, period = line.split()
            if quota != "max":
                cpus.append(int(quota) / int(period))
        # Version 1 has two, with a quota of -1 for no limit.
        quotas, periods = read_lines(folder / "cpu.cfs_quota_us"), read_lines(folder / "cpu.cfs_period_us")
        cpus += [int(each) / int(per) for each, per in zip(quotas, periods, strict=False) if int(each) > 0]
    for folder in group_folders(root, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            sizes = [int(line) for line in read_lines(folder / name) if line != "max"]
            memory += [size for size in sizes if size < UNLIMITED_BYTES]
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


def read_lines(path: Path) -> list[str]:
    """The lines of a file; none where it cannot be read."""
    return (read_text(path) or "").splitlines()


def gpu() -> "Gpu | None":
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
    rows = [line.split(", ") for line in done.stdout.splitlines() if line.strip()]
    if done.returncode or not rows:
        return None
    name, mebibytes, driver = rows[0]
    memory_bytes = int(mebibytes) << 20 if mebibytes.isdigit() else None  # some boards answer [N/A]
    return {"name": name, "count": len(rows), "memory_bytes": memory_bytes, "driver": driver}


# Package to the extra of Hotloop that brings it.
EXTRAS = {
    "PIL": "pictures",
    "gymnasium": "envs",
    "mcp": "mcp",
    "pettingzoo": "envs",
    "py-spy": "profile",
    "line_profiler": "profile",
    "memray": "profile",
    "yappi": "profile",
    "pyarrow": "parquet",
    "ray": "ray",
    "tensorboard": "train",
    "torch": "train",
}

# Package to the name that installs it, if it has another one.
DISTRIBUTIONS = {"PIL": "pillow", "stable_baselines3": "stable-baselines3"}

# Package to what works without it.
INSTEAD = {
    "mlflow": ", or leave out the sink",
    "tensorboard": ", or leave it out with train.tensorboard=false",
    "wandb": ", or leave out the sink",
}


def need(package: str) -> ModuleType:
    """Import a package; MissingError with the line that installs it if it is missing."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        missing = (error.name or package).partition(".")[0]
        line = f"{missing} is not installed: {install_line(missing)}{INSTEAD.get(missing, '')}"
        raise MissingError(line) from None


def install_line(package: str) -> str:
    """Return the command that installs a package beside this copy of Hotloop, as that was installed."""
    prefix, extra = Path(sys.prefix), EXTRAS.get(package)
    name = DISTRIBUTIONS.get(package, package)
    if (prefix / "uv-receipt.toml").exists():
        return f"uv tool install {source(extra)}" if extra else f"uv tool install --with {name} {source()}"
    if (prefix / "pipx_metadata.json").exists():
        return f"pipx install --force {source(extra)}" if extra else f"pipx inject hotloop {name}"
    installer, here = read_metadata("INSTALLER").strip(), Path(sys.executable).parent
    if installer == "conda":
        return f"conda install -c conda-forge {name}"
    python, what = shlex.quote(sys.executable), source(extra) if extra else name
    if installer == "uv":
        is_usual, usual, exact = is_first("python", here), "uv pip", f"uv pip install --python {python}"
    else:
        is_usual, usual, exact = is_first("pip", here), "pip", f"{python} -m pip install"
    return f"{f'{usual} install' if is_usual else exact} {what}"


def is_first(program: str, folder: Path) -> bool:
    """Return whether a shell that is asked for a program finds the one in a folder."""
    found = shutil.which(program)
    return found is not None and Path(found).parent == folder


def source(extra: str | None = None) -> str:
    """Return what this copy was installed from, with an extra, as words of a shell."""
    extras = f"[{extra}]" if extra else ""
    direct = json.loads(read_metadata("direct_url.json") or "{}")
    url = str(direct.get("url", ""))
    if "dir_info" in direct:
        folder = shlex.quote(unquote(urlparse(url).path) + extras)
        return f"-e {folder}" if direct["dir_info"].get("editable") else folder
    if "vcs_info" in direct:
        url = f"{direct['vcs_info']['vcs']}+{url}@{direct['vcs_info']['commit_id']}"
    return shlex.quote(f"hotloop{extras} @ {url}" if url else f"hotloop{extras}")


def read_metadata(file: str) -> str:
    """Return a file that the installer wrote beside Hotloop; nothing if there is none."""
    try:
        return metadata.distribution("hotloop").read_text(file) or ""
    except metadata.PackageNotFoundError:
        return ""


HASH_BYTES = 6

MOST_BYTES = 32 << 20  # Of a file that is hashed; a larger one is no source

Sources = Mapping[str, str]  # The path of a file to the hash of what it holds

UNKNOWN = "unknown"

HERE = Path(__file__).parent


def code(
    build: Mapping[str, Any] | None,
    folder: Path = HERE,
    *,
    target: str | None = None,
    sources: Sources | None = None,
) -> "CodeInfo":
    """The `code` part of a record; `build` is a batch's own account of its compiler.

    The commit is that of the repository around the folder, by default Hotloop's own; "unknown" outside a
    repository. A user's `target` has a project of its own beside it, with its `sources`.
    """
    build = build or {}
    commit, dirty = state(folder)
    ran: CodeInfo = {
        "version": version(),
        "commit": commit,
        "dirty": dirty,
        "compiler": build.get("compiler"),
        "flags": build.get("flags"),
    }
    if target is not None and names_callable(target):
        ran["project"] = project(home(target))
        if sources:
            ran["project"]["sources"] = named_sources(sources, target)
    return ran


def state(folder: Path) -> tuple[str, bool]:
    """The commit of the repository around a folder, and whether files of it were changed since."""
    commit = git(folder, "rev-parse", "HEAD")
    return commit or UNKNOWN, bool(commit and git(folder, "status", "--porcelain", "--untracked-files=no"))


def project(folder: Path) -> "ProjectCode":
    """The repository around a folder, or the folder itself where there is none."""
    commit, dirty = state(folder)
    return {
        "commit": commit,
        "dirty": dirty,
        "root": Path(git(folder, "rev-parse", "--show-toplevel") or folder).name,
    }


def home(target: str) -> Path:
    """The folder of a target's file, if that belongs to a repository; else the current one."""
    place = target.rpartition(":")[0]
    loaded = sys.modules.get(place)
    named = place if place.endswith(".py") else getattr(loaded, "__file__", None)
    file = anchored(Path(named or "")).resolve()
    return file.parent if file.is_file() and belongs(file) else here()


def belongs(file: Path) -> bool:
    """Whether a file is part of the repository around it, and not of what is installed there and ignored."""
    is_inside = git(file.parent, "rev-parse", "HEAD") is not None
    return is_inside and git(file.parent, "check-ignore", "--quiet", str(file)) is None


def version() -> str:
    """The installed version of Hotloop."""
    try:
        return metadata.version("hotloop")
    except metadata.PackageNotFoundError:
        return UNKNOWN


def git(folder: Path, *words: str) -> str | None:
    """What git answers, or None where there is no git or no repository."""
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0"}  # a measurement must not lock the index
    try:
        done = subprocess.run(
            ["git", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def read_sources(target: str) -> dict[str, str]:
    """Return the hashes of the loaded Python files and extension modules beside or below a target's own."""
    folder = folder_of(target)
    if folder is None:
        return {}
    files = sorted({path for module in list(sys.modules.values()) if (path := file_of(module)) is not None})
    own = [path for path in files if path.is_relative_to(folder) and is_project(path)]
    return {str(path): told for path in own if (told := hash_of_file(path)) is not None}


def folder_of(target: str) -> Path | None:
    """Return the folder of a target's file or package; None of a preset and of what is installed."""
    if not names_callable(target):
        return None
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        return Path(os.path.abspath(anchored(Path(place)))).parent  # noqa: PTH100 - as modules say it
    file = file_of(sys.modules.get(place))
    return None if file is None or not is_project(file) else file.parents[place.count(".")]


def is_project(path: Path) -> bool:
    """Return whether a file belongs to a project, and not to what pip or Python installed."""
    return INSTALLED.isdisjoint(path.parts) and not path.is_relative_to(sysconfig.get_path("stdlib"))


def file_of(module: ModuleType | None) -> Path | None:
    """Return the file that a module was loaded from, if there is one; its links are not followed."""
    file = getattr(module, "__file__", None)
    return Path(os.path.abspath(file)) if isinstance(file, str) else None  # noqa: PTH100 - reading links is slow


def hash_of_file(path: Path) -> str | None:
    """Return the hash of a file; None if it cannot be read or is no source by its size."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        return hashlib.blake2b(path.read_bytes(), digest_size=HASH_BYTES).hexdigest()
    except OSError:
        return None


def changed_sources(before: Sources) -> list[str]:
    """Return the names of files that do not hold any more what they held."""
    return [Path(path).name for path, told in before.items() if hash_of_file(Path(path)) != told]


def named_sources(sources: Sources, target: str) -> dict[str, str]:
    """Return the same by names within the target's folder, which another machine knows too."""
    folder = folder_of(target)
    return {str(Path(path).relative_to(folder)): told for path, told in sources.items()} if folder else {}


def unlike_sources(a: Sources, b: Sources) -> list[str]:
    """Return the names of files that two records both have and that differ."""
    return [name for name, told in a.items() if b.get(name, told) != told]
