"""Files that are complete or absent and never replace another, and the folder that a command may not leave.

`hotloop mcp` confines itself and the commands that it starts. Any other command may go anywhere.
"""

import errno
import importlib.util
import os
import stat
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from itertools import count
from pathlib import Path
from types import ModuleType
from uuid import uuid4

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
    """Write a file that must not exist yet; a reader sees all of it or none.

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


VARIABLE = "HOTLOOP_FOLDER"  # The environment variable that confines a process to a folder
INSTALLED = frozenset({"site-packages", "dist-packages"})  # Folders of installed packages


@dataclass(frozen=True, slots=True)
class Confinement:
    """A folder that is not left."""

    root: Path

    def path(self, path: str | Path) -> Path:
        """Return where a path leads, links followed; refuse one that leads outside."""
        try:
            place = (self.root / Path(path).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f"{str(path)!a} is no path: {error}") from None
        if not place.is_relative_to(self.root):
            raise InputError(
                f"{path} is outside {self.root}, the folder that this server was started in: "
                "name something inside it"
            )
        return place

    def code(self, path: str | Path) -> Path:
        """Return where a file of code lies; refuse one of an installed package or of Python, too."""
        place = self.path(path)
        library = Path(sysconfig.get_path("stdlib")).resolve()
        of_python = place.is_relative_to(library) and not self.root.is_relative_to(library)
        if of_python or INSTALLED.intersection(place.relative_to(self.root).parts):
            raise InputError(f"{path} is installed and not code of {self.root}: name a file of that folder")
        return place

    def module(self, name: str) -> bool:
        """Return whether there is a module of this name; refuse one that importing would find outside."""
        if name.partition(".")[0] in sys.stdlib_module_names:
            raise InputError(f"{name} is part of Python: name code of {self.root}")
        places = [place for spec in specs(name) for place in places_of(spec)]
        for place in places:
            self.code(place)
        return bool(places)

    def package(self, name: str) -> None:
        """Refuse a package that registers envs and is neither installed nor of the folder."""
        for place in (Path(each).resolve() for spec in specs(name) for each in places_of(spec)):
            if not INSTALLED.intersection(place.parts):
                self.code(place)

    def loaded(self, module: ModuleType) -> None:
        """Refuse a module whose file is outside."""
        for place in filter(None, [getattr(module, "__file__", None), *getattr(module, "__path__", ())]):
            self.code(place)

    def function(self, name: str, function: object) -> None:
        """Refuse a function or class that code of the folder only imported from elsewhere."""
        if getattr(function, "__qualname__", None) is None:
            return  # an object that code of the folder made, such as a partial
        home = str(getattr(function, "__module__", None))
        file = getattr(sys.modules.get(home), "__file__", None)
        try:
            self.code(file or "/")
        except InputError:
            raise InputError(
                f"{name} comes from {home}, which is not code of {self.root}: "
                "write a function of your own that calls it"
            ) from None


def specs(name: str) -> Iterator[ModuleSpec]:
    """Yield how importing finds each part of a dotted name, until one is missing; nothing is imported."""
    first, *rest = name.split(".")
    importlib.invalidate_caches()  # code may have been written since
    if "" not in sys.path:
        sys.path.insert(0, "")  # as for every import of a command
    try:
        spec = importlib.util.find_spec(first) if first else None
    except (ImportError, ValueError):
        spec = None
    while spec is not None:
        yield spec
        if not rest:
            return
        first = f"{first}.{rest.pop(0)}"
        spec = PathFinder.find_spec(first, spec.submodule_search_locations or [])


def places_of(spec: ModuleSpec) -> list[str]:
    """Return the files and folders of a module; of a built-in one, the root of the disk."""
    places = list(spec.submodule_search_locations or ())
    if spec.has_location and spec.origin:
        places.append(spec.origin)
    return places or ["/"]


_CONFINEMENT: ContextVar[Confinement | None] = ContextVar("confinement", default=None)


def confinement() -> Confinement | None:
    """Return the folder that this process or this context may not leave; None if it may go anywhere."""
    root = os.environ.get(VARIABLE)
    return Confinement(Path(root)) if root else _CONFINEMENT.get()


@contextmanager
def confined(folder: Confinement) -> Iterator[None]:
    """Confine what is called meanwhile."""
    token = _CONFINEMENT.set(folder)
    try:
        yield
    finally:
        _CONFINEMENT.reset(token)


def check_path(path: Path) -> None:
    """Refuse a path that a confined process may not open."""
    if (folder := confinement()) is not None:
        folder.path(path)
