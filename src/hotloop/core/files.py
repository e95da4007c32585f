"""Writing of files that are complete or absent, and that never replace another."""

import errno
import os
import stat
from itertools import count
from pathlib import Path
from uuid import uuid4

from hotloop.core.confine import check_path
from hotloop.core.errors import InputError, WriteError

LARGEST = 64 << 20  # Bytes of a text that is read: no record comes near it
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)  # What the system calls a disk that is full


def small_text(path: Path) -> str:
    """The text of a file; InputError where it is none, as a pipe or a device, or larger than any of ours.

    Either would be read for ever, or until memory ran out.
    """
    check_path(path)
    size = path.stat().st_size
    if size > LARGEST:
        raise InputError(f"{path}: {size >> 20} MiB are too many: at most {LARGEST >> 20} are read")
    return whole_bytes(path).decode()


def whole_bytes(path: Path) -> bytes:
    """What a file holds, however much; InputError where it is none."""
    check_path(path)
    if not stat.S_ISREG(path.stat().st_mode):
        raise InputError(f"{path} is no file: give one that was written whole")
    return path.read_bytes()


def write_new(path: Path, content: str | bytes, *, to_disk: bool = True) -> None:
    """Write a file that must not exist yet; whoever looks sees all of it or none.

    The content goes to a temporary file in the same folder, onto the disk, and only then gets its name.
    Where it need not outlive the machine, the disk is not waited for.
    """
    check_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        with temporary.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            if to_disk:
                os.fsync(file.fileno())
        give_name(temporary, path)
    except FileExistsError:
        raise InputError(f"{path} exists and is never overwritten: give another name") from None
    finally:
        temporary.unlink(missing_ok=True)


def give_name(temporary: Path, path: Path) -> None:
    """Link the finished file to its name, which fails where the name is taken; a rename would replace."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        if path.exists():
            raise FileExistsError(path) from None
        temporary.rename(path)


def free_path(path: Path, *, beside: tuple[str, ...] = ()) -> Path:
    """The path itself if nothing is there, else the first free one of name-2, name-3, ...

    `beside` lists further suffixes that have to be free too, for files that share one stem.
    """
    candidates = (path if number == 1 else path.with_stem(f"{path.stem}-{number}") for number in count(1))
    suffixes = (path.suffix, *beside)
    return next(c for c in candidates if not any(c.with_suffix(suffix).exists() for suffix in suffixes))


def save(path: Path, text: str, *beside: tuple[str, str | bytes]) -> Path:
    """Write a file under the first free name; `beside` are (suffix, content) of files that share its stem."""
    free = free_path(path, beside=tuple(suffix for suffix, _ in beside))
    try:
        free = claim(free, text, tuple(suffix for suffix, _ in beside))
        for suffix, more in beside:
            write_new(free.with_suffix(suffix), more)
    except OSError as error:
        raise WriteError(f"cannot write {free}: {error.strerror}") from error
    return free


def claim(path: Path, text: str, beside: tuple[str, ...]) -> Path:
    """Write a file under the first name that is still free when it is written, and say which."""
    while True:
        try:
            write_new(path, text)
        except InputError:  # another process took the name since
            path = free_path(path, beside=beside)
        else:
            return path


ROOM = 256 << 20  # Bytes that any archive may unpack to

# Times its own size that a larger one may: actions of a game shrink to a twentieth, zeros to nothing.
SHARE = 100


def check_room(content: bytes) -> None:
    """Refuse an archive that is small and unpacks to more than a machine may have; ValueError says how much.

    What a part is said to hold is all that is ever read of it, so it need not be unpacked to be believed.
    """
    from io import BytesIO
    from zipfile import ZipFile

    with ZipFile(BytesIO(content)) as archive:
        size = sum(part.file_size for part in archive.infolist())
    if size > max(ROOM, SHARE * len(content)):
        raise ValueError(
            f"{len(content):,} bytes would unpack to {size >> 20:,} MiB, which none of ours does"
        )
