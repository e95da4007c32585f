"""One target in two environments of Python: what two installed versions of a package differ by."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.target import Target
from hotloop.lab.compare.commits import Checkout, Commit, CommitContender, Say, apart, seed_of
from hotloop.lab.compare.compare import Asked

PRESENT = "this Python"

PACKAGE = Path(__file__).parents[2]  # This Hotloop, which opens what only it can step


@contextmanager
def open_installed(
    places: tuple[Path | None, Path | None], target: Target, asked: Asked, say: Say
) -> Iterator[tuple[CommitContender, CommitContender]]:
    """A target in two environments, each named with the versions that differ; None is this Python."""
    with tempfile.TemporaryDirectory(prefix="hotloop-") as name:
        shared = Path(name)
        (shared / "hotloop").symlink_to(PACKAGE)
        a, b = (CommitContender(checkout_of(place, target, asked, shared)) for place in places)
        different = unlike_packages(a, b)
        if not different:
            say("both environments load the same versions of all packages")
        yield named(a, different), named(b, different)


def checkout_of(place: Path | None, target: Target, asked: Asked, shared: Path) -> Checkout:
    """The current folder, run by the Python of an environment, which finds this Hotloop, too."""
    environment = apart(Path.cwd(), shared) | {"PYTHONPATH": str(shared)}
    return Checkout(
        commit=Commit(ref=PRESENT if place is None else str(place), sha=""),
        place=Path.cwd(),
        target=target,
        asked={
            "target": {"name": target.name, "keys": target.keys},
            "seed": seed_of(target),
            "gc": asked.garbage,
            "packages": True,
        },
        environment=dict(os.environ) if place is None else environment,
        python=python_in(place),
    )


def python_in(place: Path | None) -> Path:
    """Return the Python of an environment: a folder that has one, or the program itself."""
    if place is None:
        return Path(sys.executable)
    for path in (place / "bin" / "python", place):
        if path.is_file() and os.access(path, os.X_OK):
            return path.absolute()
    raise InputError(f"{place} has no bin/python: give the folder of a virtual environment, or a python")


def unlike_packages(a: CommitContender, b: CommitContender) -> list[str]:
    """Return the names of loaded packages whose versions differ, Python among them."""
    one, other = a.packages, b.packages
    return sorted(name for name in {**one, **other} if one.get(name) != other.get(name))


def named(contender: CommitContender, packages: list[str]) -> CommitContender:
    """The contender, called by the versions that tell it from the other."""
    versions = ", ".join(f"{name} {contender.packages.get(name, 'absent')}" for name in packages)
    ref = contender.checkout.commit.ref
    commit = replace(contender.checkout.commit, ref=f"{ref} ({versions})" if versions else ref)
    contender.checkout = replace(contender.checkout, commit=commit)
    contender.name = f"{contender.checkout.target.words} in {commit.name}"
    return contender
