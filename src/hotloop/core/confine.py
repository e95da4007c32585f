"""The folder that a command may not leave: code that it loads by name, and files that it reads and writes.

`hotloop mcp` confines itself and the commands that it starts. Any other command may go anywhere.
"""

import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from hotloop.core.errors import InputError

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
