"""Where results go: checked before anything is measured, and never over another file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.core.errors import InputError, SetupError
from hotloop.core.files import free_path, write_new

if TYPE_CHECKING:
    from hotloop.core.record import Record


def record_path(output: Path, record: "Record") -> Path:
    """Where a record goes: a name that ends in .json is its file, any other a folder."""
    return output if names_file(output) else output / f"{record.run_id}.json"


def names_file(output: Path) -> bool:
    return output.suffix == ".json"


def make_room(output: Path) -> None:
    """Make the folder of an output before anything is measured; refuse one that cannot be written to."""
    folder = output.parent if names_file(output) else output
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder}: {error.strerror}; choose another output"
        ) from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {folder}: no permission; choose another output")


def save(path: Path, text: str, *beside: tuple[str, str]) -> Path:
    """Write a file under the first free name; `beside` are (suffix, text) of files that share its stem."""
    free = free_path(path, beside=tuple(suffix for suffix, _ in beside))
    try:
        write_new(free, text)
        for suffix, more in beside:
            write_new(free.with_suffix(suffix), more)
    except OSError as error:
        raise SetupError(f"cannot write {free}: {error.strerror}") from error
    return free
