"""Which code ran: version, commit, and how the native part was compiled."""

import os
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from hotloop.core.record.described import Code

UNKNOWN = "unknown"

HERE = Path(__file__).parent


def code(build: Mapping[str, Any] | None, folder: Path = HERE) -> Code:
    """The `code` part of a record; `build` is a batch's own account of its compiler.

    The commit is that of the repository around the folder, by default Hotloop's own, because that is
    where the measured code changes; "unknown" outside a repository.
    """
    build = build or {}
    commit = git(folder, "rev-parse", "HEAD")
    return {
        "version": version(),
        "commit": commit or UNKNOWN,
        "dirty": bool(commit and git(folder, "status", "--porcelain", "--untracked-files=no")),
        "compiler": build.get("compiler"),
        "flags": build.get("flags"),
    }


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
