"""Which code ran: Hotloop's, how its native part was compiled, and the project of the target."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.process.lifeline import anchored, here
from hotloop.core.sources import Sources, named_sources
from hotloop.core.target import names_callable

if TYPE_CHECKING:
    from hotloop.core.record.metadata import Code, Project

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
