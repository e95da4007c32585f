"""Sources: the loaded files of a target's project, each with a hash, so that a change of one is noticed."""

import hashlib
import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from hotloop.core.process.lifeline import anchored
from hotloop.core.target import names_callable

HASH_BYTES = 6

MOST_BYTES = 32 << 20
"""Of a file that is hashed; a larger one is no source."""

INSTALLED = frozenset({"site-packages", "dist-packages"})

Sources = Mapping[str, str]
"""The path of a file to the hash of what it holds."""


def read_sources(target: str) -> dict[str, str]:
    """Return the hashes of the loaded Python files and extension modules beside or below a target's own."""
    folder = folder_of(target)
    if folder is None:
        return {}
    files = sorted({path for module in list(sys.modules.values()) if (path := file_of(module)) is not None})
    own = [path for path in files if path.is_relative_to(folder) and is_project(path)]
    return {str(path): told for path in own if (told := hash_of_file(path)) is not None}


def folder_of(target: str) -> Path | None:
    """Return the folder of a target's file or package; None of a preset and of what is installed."""
    if not names_callable(target):
        return None
    place = target.rpartition(":")[0]
    if place.endswith(".py"):
        return Path(os.path.abspath(anchored(Path(place)))).parent  # noqa: PTH100 - as modules say it
    file = file_of(sys.modules.get(place))
    return None if file is None or not is_project(file) else file.parents[place.count(".")]


def is_project(path: Path) -> bool:
    """Return whether a file belongs to a project, and not to what pip or Python installed."""
    return INSTALLED.isdisjoint(path.parts) and not path.is_relative_to(sysconfig.get_path("stdlib"))


def file_of(module: ModuleType | None) -> Path | None:
    """Return the file that a module was loaded from, if there is one; its links are not followed."""
    file = getattr(module, "__file__", None)
    return Path(os.path.abspath(file)) if isinstance(file, str) else None  # noqa: PTH100 - reading links is slow


def hash_of_file(path: Path) -> str | None:
    """Return the hash of a file; None if it cannot be read or is no source by its size."""
    try:
        if path.stat().st_size > MOST_BYTES:
            return None
        return hashlib.blake2b(path.read_bytes(), digest_size=HASH_BYTES).hexdigest()
    except OSError:
        return None


def changed_sources(before: Sources) -> list[str]:
    """Return the names of files that do not hold any more what they held."""
    return [Path(path).name for path, told in before.items() if hash_of_file(Path(path)) != told]


def named_sources(sources: Sources, target: str) -> dict[str, str]:
    """Return the same by names within the target's folder, which another machine knows too."""
    folder = folder_of(target)
    return {str(Path(path).relative_to(folder)): told for path, told in sources.items()} if folder else {}


def unlike_sources(a: Sources, b: Sources) -> list[str]:
    """Return the names of files that two records both have and that differ."""
    return [name for name, told in a.items() if b.get(name, told) != told]
