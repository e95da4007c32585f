"""Functions of the user's, by name, in spans for as long as they are looked at."""

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.files import confinement
from hotloop.core.spans import span
from hotloop.envs.callables import load_file, load_module, module_name

KEPT = (staticmethod, classmethod)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function and where it is kept."""

    name: str  # As it was asked for; its row in the tree
    owner: Any
    attribute: str
    kept: Any  # What the owner itself holds under that name

    @property
    def rows(self) -> tuple[str, str]:
        """The rows it may be in: its own, or the one that a loop has for an env's own methods."""
        return self.name, ".".join(self.name.split(".")[-2:])

    def watch(self) -> None:
        """Put every call into a span."""
        region = span(self.name.replace("/", "."))
        if isinstance(self.kept, KEPT):
            setattr(self.owner, self.attribute, type(self.kept)(region(self.kept.__func__)))
        else:
            setattr(self.owner, self.attribute, region(self.kept))

    def leave(self) -> None:
        setattr(self.owner, self.attribute, self.kept)


def home_of(target: str) -> str | None:
    """The module of a callable, in which the names of its functions need no prefix."""
    place = target.rpartition(":")[0]
    return module_name(Path(place)) if place.endswith(".py") else place or None


def find(name: str, home: str | None = None) -> Function:
    """Return the function of a name; `home` is the module a name without one is looked for in.

    A name may have its module before a colon, as targets have: `my_env.py:Env.observe`.
    """
    place, _, name = name.rpartition(":")
    if place:
        home = (load_file(Path(place)) if place.endswith(".py") else load_module(place)).__name__
    *path, attribute = name.split(".")
    owner: Any = None
    if path:
        owner = (None if place else walk(path)) or (walk([home, *path]) if home else None)
    elif home:
        owner = walk([home])
    if owner is None and len(path) == 1:
        owner = loaded_class(name, path[0])
    if owner is None:
        raise InputError(f"--time {name}: there is no {'.'.join(path) or name}: write module.Class.method")
    if attribute not in vars(owner):
        owner = next((base for base in getattr(owner, "__mro__", ()) if attribute in vars(base)), owner)
    kept = vars(owner).get(attribute)
    function = kept.__func__ if isinstance(kept, KEPT) else kept
    if not callable(function):
        known = ", ".join(each for each, value in vars(owner).items() if callable(value) and each[:2] != "__")
        raise InputError(
            f"--time {name}: {'.'.join(path)} has no function {attribute}; it has {known or 'none'}"
        )
    refuse_unwatchable(name, owner, function)
    return Function(name=name, owner=owner, attribute=attribute, kept=kept)


def loaded_class(asked: str, name: str) -> type | None:
    """The class of that name in whatever is imported, as a profile's rows name it; refuses one of several."""
    held = (getattr(module, "__dict__", {}).get(name) for module in list(sys.modules.values()))
    named = [each for each in held if isinstance(each, type) and each.__name__ == name]
    found = {file_of(each): each for each in reversed(named)}  # a file may be imported by two names
    found = {each.__module__: each for each in found.values()}
    if len(found) > 1:
        several = ", ".join(f"{module}.{asked}" for module in sorted(found))
        raise InputError(f"--time {asked}: there are several {name}; write one of {several}")
    return next(iter(found.values()), None)


def file_of(kind: type) -> str:
    """Where a class is written."""
    return str(getattr(sys.modules.get(kind.__module__), "__file__", kind.__module__))


def refuse_unwatchable(name: str, owner: Any, function: Callable[..., Any]) -> None:
    try:
        span("probe")(function)
        setattr(owner, name.rpartition(".")[2], vars(owner)[name.rpartition(".")[2]])
    except (TypeError, AttributeError) as error:
        raise InputError(f"--time {name} cannot be timed: {error}") from None


def walk(path: Sequence[str]) -> Any:
    """The object of a dotted path: the longest part of it that is a module, then its attributes."""
    for cut in range(len(path), 0, -1):
        module = imported(".".join(path[:cut]))
        if module is None:
            continue
        found: Any = module
        for attribute in path[cut:]:
            found = getattr(found, attribute, None)
        return found
    return None


def imported(name: str) -> ModuleType | None:
    if (folder := confinement()) is not None:
        folder.module(name)
    if name in sys.modules:
        return sys.modules[name]
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@contextmanager
def watching(functions: Sequence[Function]) -> Iterator[None]:
    """Watch functions, and leave them as they were."""
    for function in functions:
        function.watch()
    try:
        yield
    finally:
        for function in reversed(functions):
            function.leave()
