"""What a file may have called: nothing but our worlds, registered ids, and code of the current project."""

import importlib.util
import re
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.files import INSTALLED
from hotloop.core.machine import git
from hotloop.core.target import Target, names_callable
from hotloop.envs import callables

# Ids of installed packages; a `gym:` id with another colon names a module to import.
REGISTERED = re.compile(r"(?:gym:[\w./-]+|pettingzoo:\w+(?:\.\w+)*)")

# The end of a key's value that names a callable: a network, a teacher, a player.
FILE = re.compile(r"\.py:\w+$")


def check_calls(source: Path, targets: Sequence[Target]) -> None:
    """Refuse a file that would call something outside this project."""
    for target in targets:
        for name in called_by(target):
            if not may_call(name):
                what = target.words if name == target.name else name
                raise InputError(
                    f"{source} would call {what!a}, which is not code of this project: look at it first, "
                    f"then give --trust {source} to run it all the same"
                )


def called_by(target: Target) -> Iterator[str]:
    """Names of callables in a target: its own, what finds its phases, and files that its keys name."""
    yield target.name
    if target.phases is not None:
        yield target.phases
    yield from (name for name in target.time if names_callable(name))
    texts = {key: value for key, value in target.keys.items() if isinstance(value, str)}
    yield from (value for key, value in texts.items() if FILE.search(value) or is_player(key, value))


def is_player(key: str, value: str) -> bool:
    """Whether a key puts a callable into a seat."""
    return key in ("hero", "villain") and names_callable(value) and not value.startswith(("run:", "tape:"))


def may_call(name: str) -> bool:
    """Whether a name that stands in a file is one of ours, a registered id, or in the current project."""
    if ":" not in name or REGISTERED.fullmatch(name):
        return True
    place, _, attribute = name.rpartition(":")
    file = file_of(place)
    if file is None or not in_project(file):
        return False
    module = callables.load_file(file) if place.endswith(".py") else callables.load_module(place)
    return attribute not in vars(module) or is_own(vars(module)[attribute])


def file_of(place: str) -> Path | None:
    """The file before the colon of a callable's name, or that of the module it names."""
    return Path(place) if place.endswith(".py") else module_file(place)


def newer(source: Path, targets: Sequence[Target]) -> Iterator[str]:
    """What is to be said of code that was changed after a file that names it was written."""
    for name in dict.fromkeys(target.name for target in targets):
        if ":" not in name or REGISTERED.fullmatch(name):
            continue
        file = file_of(name.rpartition(":")[0])
        if file is not None and changed_at(file) > changed_at(source):
            yield f"{file} was changed after {source} was written: what runs now may not be what ran then"


def changed_at(file: Path) -> int:
    """In nanoseconds; 0 where there is no such file."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def is_own(found: object) -> bool:
    """Whether a callable was written in this project, rather than imported into it."""
    home = sys.modules.get(str(getattr(found, "__module__", "")))
    file = getattr(home, "__file__", None)
    return file is not None and in_project(Path(file))


def module_file(name: str) -> Path | None:
    """Where the outermost package of a module lies, found without importing anything."""
    top = name.partition(".")[0]
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.util.find_spec(top) if top else None
    except (ImportError, ValueError):
        return None
    if found is None:
        return None
    places = list(found.submodule_search_locations or ()) or [found.origin or ""]
    return Path(places[0]) if found.has_location or found.submodule_search_locations else None


def in_project(path: Path) -> bool:
    """Whether a file lies in the repository around the current folder, or in that folder without one.

    What is installed in it is not of it; and neither the whole disk nor a home is a project.
    """
    here = Path.cwd().resolve()
    root = Path(git(here, "rev-parse", "--show-toplevel") or here).resolve()
    if root in (Path(root.anchor), Path.home().resolve()):
        return False
    file = path.resolve()
    library = Path(sysconfig.get_path("stdlib")).resolve()
    return file.is_relative_to(root) and not file.is_relative_to(library) and not INSTALLED & set(file.parts)


def announced(source: Path, targets: Sequence[Target], trusted: Path | None) -> list[str]:
    """What is to be said before a file's targets run; refuses what it may not call, and trust in another.

    That is what a trusted file calls, and which code was changed since.
    """
    if trusted is None:
        check_calls(source, targets)
        return list(newer(source, targets))
    if trusted.resolve() != source.resolve():
        raise InputError(f"--trust {trusted} is not what is replayed: give --trust {source}, or leave it out")
    calls = [
        f"{source} calls {target.words if name == target.name else name!a}"
        for target in targets
        for name in called_by(target)
        if ":" in name
    ]
    return [*calls, *newer(source, targets)]
