"""The folder of a run: what it was told, its logs, its checkpoints, its trace.

    train_dir/<run>/settings.json    the target and its words, as they were typed
    train_dir/<run>/logs/            metrics.jsonl and script.log
    train_dir/<run>/tensorboard/
    train_dir/<run>/checkpoints/
    train_dir/<run>/trace.json       where train.profiler.enabled=true

A run is never overwritten: its name is free, or the run is resumed.
"""

import fcntl
import io
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError, WriteError
from hotloop.core.files import check_room, free_path, whole_bytes, write_new
from hotloop.core.process.lifeline import anchored
from hotloop.core.record import file_name
from hotloop.core.record.codec import from_plain, parse
from hotloop.core.target import Target
from hotloop.envs.tapes import DAMAGES

ROOT = Path("train_dir")

SETTINGS = "settings.json"

CHECKPOINTS = "checkpoints"

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

WINDOWS = ".windows.npz"  # Beside a checkpoint: the episodes under way, for their returns to go on counting


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedCommand:
    """What `settings.json` says."""

    target: str
    words: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run's folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def place(self) -> Path:
        """The same, wherever somebody's env has gone meanwhile."""
        return anchored(self.folder)

    @property
    def checkpoints(self) -> Path:
        return self.place / CHECKPOINTS

    @property
    def trace(self) -> Path:
        """Where the next trace goes."""
        return free_path(self.place / "trace.json")

    def told(self) -> Target:
        """What the run was begun with."""
        path = self.folder / SETTINGS
        try:
            told = from_plain(TypedCommand, parse(path.read_text(encoding="utf-8")))
            return Target(told.target, told.words)
        except FileNotFoundError:
            raise InputError(
                f"there is no run {self.name} in {self.folder.parent}: leave out --resume to begin it"
            ) from None
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}; begin a new run") from None

    def claim(self, target: Target) -> None:
        """Make the folder of a new run, and keep what it was told."""
        text = json.dumps({"target": target.name, "words": target.keys}, indent=1, default=str) + "\n"
        try:
            write_new(self.folder / SETTINGS, text)
        except OSError as error:
            with suppress(OSError):  # what is left of it would take the name
                self.folder.rmdir()
            raise WriteError(f"cannot write to {self.folder}: {error.strerror}") from error

    def lock(self) -> Any:
        """Keep others from training into the folder for as long as the file that this gives is open."""
        file = (self.folder / ".lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise InputError(
                f"run {self.name} is being trained by another process: wait, or give another run="
            ) from None
        return file


def begin(root: Path, name: str | None, target: str) -> Run:
    """The folder of a new run, which is not made yet; refuses a name that is taken."""
    chosen = name or f"{file_name(target).lstrip('-.')}-{utc_now():%Y%m%d-%H%M%S}"
    folder = folder_of(root, chosen) if name else free_path(folder_of(root, chosen))
    if folder.exists():
        raise InputError(
            f"run {chosen} exists in {root} and is never overwritten: --resume goes on with it, "
            "or give another run="
        )
    return Run(folder=folder)


def find(root: Path, name: str | None) -> Run:
    """The folder of a run that is to go on."""
    if name is None:
        raise InputError("--resume needs the run's name: give run=NAME")
    run = Run(folder=folder_of(root, name))
    run.told()
    return run


def last_checkpoint(run: Run) -> tuple[Path, list[str]]:
    """What a run goes on from, and what is wrong with the checkpoints after it."""
    from hotloop.train.checkpoint import newest_whole

    whole, damaged = newest_whole(run.checkpoints)
    if whole is None and damaged:
        raise InputError(f"run {run.name} has no whole checkpoint: {damaged[0]}; begin a new run")
    if whole is None:
        raise InputError(f"run {run.name} has no checkpoint: it ended before its first; begin a new run")
    return whole, damaged


def folder_of(root: Path, name: str) -> Path:
    if not NAME.fullmatch(name):
        raise InputError(f"run={name} does not fit: expected letters, digits, and . _ - in between")
    return root / name


def keep_windows(checkpoint: Path, state: Mapping[str, NDArray[Any]]) -> None:
    """Keep the episodes under way beside a checkpoint, and drop those of checkpoints that are gone."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = dict(state)
    np.savez(buffer, **arrays)
    write_new(windows_path(checkpoint), buffer.getvalue())
    for path in checkpoint.parent.glob(f"*{WINDOWS}"):
        if not path.with_name(path.name.removesuffix(WINDOWS) + ".pt").exists():
            path.unlink(missing_ok=True)


def read_windows(checkpoint: Path) -> dict[str, NDArray[Any]] | None:
    """The episodes that were under way; None where a kill came before they were written, or they are damaged.

    Nothing is trained on them; without them those episodes do not count.
    """
    try:
        content = whole_bytes(windows_path(checkpoint))
        check_room(content)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except DAMAGES:
        return None


def windows_path(checkpoint: Path) -> Path:
    return checkpoint.with_name(checkpoint.stem + WINDOWS)
