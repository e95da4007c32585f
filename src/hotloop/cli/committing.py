"""Committing results: exactly the files of a run, whatever else is staged."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from hotloop.core.code import git
from hotloop.core.errors import InputError, SetupError


def check_repository() -> None:
    """Refuse to commit where there is nothing to commit to, before anything is measured."""
    if git(Path.cwd(), "rev-parse", "--is-inside-work-tree") != "true":
        raise InputError("--commit needs a git repository around this folder: git init, or leave it out")


def commit(paths: Sequence[Path], message: str) -> None:
    """Commit these files and no other; SetupError with git's last words where it refuses."""
    names = [str(path) for path in paths]
    for words in (["add", "--force", "--", *names], ["commit", "--quiet", "-m", message, "--", *names]):
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[-300:]
            raise SetupError(f"{', '.join(names)} saved, but git {words[0]} failed: {said}")
