"""Places: the working tree and commits of it, each built once, with what measures a target there."""

import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from hotloop.core.errors import InputError
from hotloop.core.machine import git
from hotloop.core.process.worker import Worker
from hotloop.core.record import Record
from hotloop.core.record.metadata import own_commit
from hotloop.core.target import Target
from hotloop.lab.compare.commits import (
    Checkout,
    Commit,
    CommitContender,
    Say,
    apart,
    asked_of,
    prepare,
    python_of,
    resolve,
    root_of,
)
from hotloop.lab.compare.present import TREE
from hotloop.lab.measure.sides import Garbage
from hotloop.stats.summary import with_metrics

BRANCHES = ("main", "master", "trunk", "develop")

GAUGE = Path(__file__).parents[1] / "workers" / "gauge.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where code lies that is measured, and what runs it."""

    commit: Commit
    folder: Path
    python: Path
    environment: Mapping[str, str]  # For what measures it with Hotloop
    bare: Mapping[str, str]  # For what knows nothing of Hotloop
    is_tree: bool = False

    @property
    def name(self) -> str:
        return self.commit.name

    def contender(self, target: Target, root: Path) -> CommitContender:
        """The target here, to take turns with another place's."""
        return CommitContender(self.checkout(target, root))

    def checkout(self, target: Target, root: Path, garbage: Garbage = "between") -> Checkout:
        """Return what opens the target here, in a process of its own."""
        settings: dict[str, object] = asked_of(root, target, garbage)
        if self.is_tree:
            del settings["tree"]
        return Checkout(
            commit=self.commit,
            place=self.folder,
            target=target,
            asked=settings,
            environment=self.bare,
            python=self.python if self.is_tree else None,
        )


class Checkouts:
    """The working tree of a project and commits of it; each commit is built once, and gone at the end."""

    def __init__(self, project: Path, *, build: str | None = None, say: Say) -> None:
        self.project, self._build, self._say = project.resolve(), build, say
        self._room = tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True)
        self._built: dict[str, Place] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._room.cleanup()

    @property
    def root(self) -> Path:
        return root_of(self.project)

    @property
    def builds(self) -> int:
        """How many commits were built."""
        return len(self._built)

    def tree(self) -> Place:
        """What lies in the project's folder now, run by the present Python."""
        sha = git(self.project, "rev-parse", "HEAD") or "unknown"
        dirty = sha != "unknown" and bool(git(self.project, "status", "--porcelain", "--untracked-files=no"))
        return Place(
            commit=Commit(ref=TREE, sha=sha, dirty=dirty),
            folder=self.project,
            python=Path(sys.executable),
            environment=dict(os.environ),
            bare=dict(os.environ),
            is_tree=True,
        )

    def at(self, ref: str) -> Place:
        """A commit, built in a folder of its own; InputError where it does not build."""
        commit = resolve(self.root, ref)
        if commit.sha not in self._built:
            room = Path(self._room.name) / commit.sha[:12]
            room.mkdir()
            folder = prepare(self.root, commit, room / "code", self.project, self._build, self._say)
            self._built[commit.sha] = built(commit, folder, apart(folder, room))
        return self._built[commit.sha]


def branch_of(folder: Path) -> str | None:
    """The branch that others are merged into, by the remote's word or by its usual names."""
    remote = git(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if remote:
        return remote.removeprefix("origin/")
    known = (git(folder, "branch", "--format=%(refname:short)") or "").split()
    current = git(folder, "branch", "--show-current") or None
    return next((name for name in BRANCHES if name in known), current)


def built(commit: Commit, folder: Path, bare: Mapping[str, str]) -> Place:
    """A checkout with the Python that measures it: its own where it has Hotloop, else the present one."""
    own = python_of(folder)
    packages = folder / ".venv" / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    if own.exists() and (packages / "hotloop").exists():
        return Place(commit=commit, folder=folder, python=own, environment=bare, bare=bare)
    first = [*([str(packages)] if own.exists() else []), str(folder), str(folder / "src")]
    path = os.pathsep.join([*first, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**bare, "PYTHONPATH": path}
    return Place(
        commit=commit, folder=folder, python=Path(sys.executable), environment=environment, bare=bare
    )


class RemoteMeasurer(Worker):
    """A process that measures a target at a place; workers/gauge.py is what it runs."""

    def __init__(self, place: Place, target: Target, policy: str = "random") -> None:
        self._place = place
        settings = json.dumps({"target": target.plain(), "policy": policy})
        super().__init__(
            target.words if place.is_tree else f"{target.words} at {place.name}",
            [str(place.python), "-P", str(GAUGE), settings],
            place.environment,
            place.folder,
        )
        try:
            self.answer()
        except BaseException:
            self.close()
            raise

    def measure(self, do: str, **order: object) -> Record:
        """Have it measure once; InputError if what it measured was not this place's code."""
        record = with_metrics(Record.from_json(self.ask(do=do, **order)["record"]))
        ran = own_commit(record.code)[0]
        if not self._place.is_tree and ran not in (self._place.commit.sha, "unknown"):
            raise InputError(
                f"{self._place.name}: code of {ran[:12]} was loaded, which is not the commit's: "
                "the build must install the project into .venv of the checkout"
            )
        return record


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What one measurement left, which budgets read."""

    ours: Sequence[Record]
    # Of the other place, where it was not measured in turns with ours in one record
    theirs: Sequence[Record] = ()


class Measurers:
    """What measures one target for all its budgets, and what it measured; open from one run to the next."""

    def __init__(self, target: Target) -> None:
        self._target, self._stack = target, ExitStack()
        self._open: dict[tuple[Path, str], RemoteMeasurer] = {}
        # By what was measured, where, in turns with what, and how often before
        self.taken: dict[tuple[object, ...], Taken] = {}
        # By what was measured: the commit that took turns with the present code
        self.turns: dict[str, Place] = {}

    def at(self, place: Place, kind: str) -> RemoteMeasurer:
        """The process that measures one kind of thing at a place."""
        key = place.folder, kind
        if key not in self._open:
            self._open[key] = self._stack.enter_context(RemoteMeasurer(place, self._target))
        return self._open[key]

    def restart(self) -> None:
        """Begin with new processes: one of these may have ended."""
        self._open.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
