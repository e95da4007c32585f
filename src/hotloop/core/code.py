"""Which code ran: Hotloop's, its native part, and the target's project with a hash of each loaded file."""

import hashlib
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hotloop.core.process.lifeline import anchored, here
from hotloop.core.target import names_callable

if TYPE_CHECKING:
    from hotloop.core.record.metadata import Code, Project

HASH_BYTES = 6

MOST_BYTES = 32 << 20  # Of a file that is hashed; a larger one is no source

INSTALLED = frozenset({"site-packages", "dist-packages"})

Sources = Mapping[str, str]  # The path of a file to the hash of what it holds

UNKNOWN = "unknown"

HERE = Path(__file__).parent


def code(
    build: Mapping[str, Any] | None,
    folder: Path = HERE,
    *,
    target: str | None = None,
    sources: Sources | None = None,
) -> "Code":
    """The `code` part of a record; `build` is a batch's own account of its compiler.

    The commit is that of the repository around the folder, by default Hotloop's own; "unknown" outside a
    repository. A `target` of somebody else's has a project of its own beside it, with its `sources`.
    """
    build = build or {}
    commit, dirty = state(folder)
    ran: Code = {
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


def project(folder: Path) -> "Project":
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
    from importlib import metadata

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
