"""Where results go: checked before anything is measured, and never over another file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.core.errors import InputError, SetupError
from hotloop.core.files import free_path, write_new

if TYPE_CHECKING:
    from hotloop.core.record import Record


FOLDER = Path("artifacts/throughput")
"""Where records go unless somebody says otherwise."""


def record_path(output: Path, record: "Record") -> Path:
    """Where a record goes: a name that ends in .json is its file, any other a folder."""
    return output if names_file(output) else output / f"{record.run_id}.json"


def names_file(output: Path) -> bool:
    return output.suffix == ".json"


def make_room(output: Path) -> None:
    """Make the folder of an output before anything is measured; refuse one that cannot be written to."""
    make_folder(output.parent if names_file(output) else output)


def make_room_for(path: Path) -> None:
    """Refuse, before anything is played, a file that exists or whose folder cannot be written to."""
    if path.exists():
        raise InputError(f"{path} exists and is never overwritten: give another name")
    make_folder(path.parent)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder}: {error.strerror}; choose another output"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {folder}: no permission; choose another output")


def keep_new(path: Path, content: bytes) -> None:
    """Write a file under the name that somebody gave it."""
    try:
        write_new(path, content)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}") from error


def save(path: Path, text: str, *beside: tuple[str, str | bytes]) -> Path:
    """Write a file under the first free name; `beside` are (suffix, content) of files that share its stem."""
    free = free_path(path, beside=tuple(suffix for suffix, _ in beside))
    try:
        write_new(free, text)
        for suffix, more in beside:
            write_new(free.with_suffix(suffix), more)
    except OSError as error:
        raise SetupError(f"cannot write {free}: {error.strerror}") from error
    return free
