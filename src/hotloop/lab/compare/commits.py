"""Checkouts: a target at commits, in the working tree or in environments, each built and opened apart."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from hotloop.core.errors import InputError
from hotloop.core.machine import git, hash_of_file
from hotloop.core.process.worker import end_group, start
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.judge.judge import judge
from hotloop.lab.compare.compare import CompareSettings, measure_comparison
from hotloop.lab.compare.process import NOT_COUNTED, CommitContender, ProcessSide
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.record import both_validations
from hotloop.lab.measure.sides import Garbage
from hotloop.stats.summary import with_metrics

Say = Callable[[str], None]

LAST_LINES = 15  # Of what a build printed that are worth showing
SEED = 42  # Where no seed is given
TREE = "working tree"
PRESENT = "this Python"

PACKAGE = Path(__file__).parents[2]  # This Hotloop, which opens what only it can step

# Environment variables that would lead a side's Python back to the present code.
OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")

# Where Hotloop itself writes: its files change no code, even if the project does not ignore them.
NOT_CODE = (":(exclude,glob)**/.design/**", ":(exclude,glob)**/artifacts/**")


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit as it was asked for and as it is."""

    ref: str
    sha: str  # Empty where it is no commit, but what an environment has installed
    dirty: bool = False  # Whether it is what lies there now, changed since

    @property
    def name(self) -> str:
        short = self.sha[:12]
        if not short:
            return self.ref
        return short if self.ref == self.sha else f"{self.ref} ({short})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A commit that was built in a folder of its own."""

    commit: Commit
    place: Path
    target: Target
    settings: Mapping[str, Any]  # The worker's: target, seed, tree
    environment: Mapping[str, str]
    # What runs it; None is that of the checkout, or the present one where it has none.
    python: Path | None = None

    def open(self, seed: int | None = None) -> ProcessSide:
        """Return a new process with the target in it, and with another seed if one is given."""
        settings = self.settings if seed is None else {**self.settings, "seed": seed, "reseed": True}
        python, environment = self.runner
        side = ProcessSide(self.commit.name, python, self.place, settings, environment)
        if strays := side.facts.pop("strays"):
            side.close()
            raise InputError(
                f"{self.commit.name}: {strays[0]} was loaded, which is not the commit's: "
                "the build must install the project into .venv of the checkout"
            )
        side.facts |= {"ref": self.commit.ref, "commit": self.commit.sha}
        return side

    @property
    def runner(self) -> tuple[Path, Mapping[str, str]]:
        """Return its own Python, or the present one with the checkout before all else on its path."""
        python = self.python or python_of(self.place)
        if python.exists():
            return python, self.environment
        before = [str(self.place), str(self.place / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return Path(sys.executable), {**self.environment, "PYTHONPATH": os.pathsep.join(before)}

    @property
    def can_count(self) -> bool:
        """Return whether instructions can be counted: this Hotloop has to open the target."""
        return self.runner[0] == Path(sys.executable)


@contextmanager
def check_out(
    project: Path,
    a_ref: str | Commit,
    b_ref: str | None,
    target: Target,
    *,
    build: str | None = None,
    garbage: Garbage = "between",
    say: Say,
    target_of_a: Target | None = None,
) -> Iterator[tuple[Checkout, Checkout]]:
    """Build a target at two commits of the repository around a folder; nothing is left behind at the end.

    Each commit is cloned into a temporary folder, where its objects stay those of the project, and built:
    by `build`, a shell command run there, or by pip into a `.venv` of its own. Without a second commit the
    other side is the working tree as it is. `target_of_a` is for the first commit if its keys differ.
    """
    root, project = root_of(project), project.resolve()
    commits = [
        ref if isinstance(ref, Commit) else resolve(root, ref) for ref in (a_ref, b_ref) if ref is not None
    ]
    if b_ref is not None and git(root, "status", "--porcelain", "--untracked-files=no"):
        say("uncommitted changes are in neither commit and are not measured")
    targets = (target_of_a or target, target)
    settings = [worker_settings(each, garbage, tree=str(root.resolve())) for each in targets]
    with tempfile.TemporaryDirectory(prefix="hotloop-") as name:
        folder = Path(name)
        places = [
            prepare(root, commit, folder / side, project, build, say)
            for side, commit in zip("ab", commits, strict=False)
        ]
        checkouts = [
            Checkout(
                commit=commit,
                place=place,
                target=its,
                settings=set_,
                environment=side_environment(place, folder),
            )
            for commit, place, its, set_ in zip(commits, places, targets, settings, strict=False)
        ]
        if b_ref is None:
            changed = bool(git(root, "status", "--porcelain", "--", ".", *NOT_CODE))
            tree = Checkout(
                commit=Commit(ref=TREE, sha=resolve(root, "HEAD").sha, dirty=changed),
                place=project,
                target=target,
                settings=worker_settings(target, garbage),
                environment=dict(os.environ),
                python=Path(sys.executable),
            )
            checkouts.append(tree)
        a, b = checkouts
        yield a, b


def root_of(project: Path) -> Path:
    """Return the top of the repository around a folder."""
    top = git(project, "rev-parse", "--show-toplevel")
    if top is None:
        raise InputError(f"{project} is in no git repository: commits can only be compared in one")
    return Path(top)


def resolve(root: Path, ref: str) -> Commit:
    """Return the commit that a ref names; InputError if there is none."""
    sha = git(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if not sha:
        raise InputError(f"there is no commit {ref!r} in {root}: give a branch, a tag or a hash")
    return Commit(ref=ref, sha=sha)


def worker_settings(target: Target, garbage: Garbage, **more: object) -> dict[str, object]:
    """Return the worker's settings; `tree` is the folder from below which nothing may be loaded."""
    seed = str(target.keys.get("seed", SEED))
    if not seed.isdecimal():
        raise InputError(f"seed={seed} does not fit: expected a whole number")
    return {"target": target.plain(), "seed": int(seed), "gc": garbage, **more}


def prepare(root: Path, commit: Commit, checkout: Path, project: Path, build: str | None, say: Say) -> Path:
    """Check a commit out and build it; returns the project's folder in it."""
    say(f"building {commit.name}")
    temporary = checkout.parent
    with (temporary / f"{checkout.name}.log").open("w+b") as log:
        clone = ["git", "clone", "--quiet", "--shared", "--no-checkout", str(root), str(checkout)]
        run(commit, clone, root, side_environment(root, temporary), log)
        detach = ["git", "checkout", "--quiet", "--detach", commit.sha]
        run(commit, detach, checkout, side_environment(checkout, temporary), log)
        place = checkout / project.relative_to(root.resolve())
        if not place.is_dir():
            raise InputError(f"{commit.name} has no folder {place.relative_to(checkout)}")
        for command in commands(place, build):
            run(commit, command, place, side_environment(place, temporary), log)
    return place


def commands(place: Path, build: str | None) -> list[list[str]]:
    """Return what builds a checkout: what was asked for, or pip if there is something to install."""
    if build is not None:
        return [["sh", "-c", build]]
    if not any((place / name).is_file() for name in ("pyproject.toml", "setup.py")):
        return []
    install = [str(python_of(place)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "."]
    return [[sys.executable, "-m", "venv", ".venv"], install]


def python_of(place: Path) -> Path:
    return place / ".venv" / "bin" / "python"


def run(
    commit: Commit, command: list[str], folder: Path, environment: Mapping[str, str], log: IO[bytes]
) -> None:
    """Run one step of a build; InputError with its last lines if it fails, nothing running afterwards."""
    process = start(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
    )
    try:
        status = process.wait()
    finally:
        end_group(process)
    if status:
        log.seek(0)
        lines = log.read().decode(errors="replace").splitlines()[-LAST_LINES:]
        words = shlex.join([Path(command[0]).name, *command[1:]])
        printed = "".join(f"\n  {line}" for line in lines)
        raise InputError(f"{commit.name} does not build: {words} ended with {status}{printed}")


def side_environment(folder: Path, temporary: Path) -> dict[str, str]:
    """Return the environment of a side: nothing leads back to the present code, all it leaves is removed."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in OURS and not name.startswith(("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX"))
    }
    kept["TMPDIR"] = str(temporary)
    pins = folder / "constraints.txt"
    if pins.is_file():
        kept |= {"PIP_CONSTRAINT": str(pins), "PIP_BUILD_CONSTRAINT": str(pins)}
    return kept


@contextmanager
def open_installed(
    places: tuple[Path | None, Path | None], target: Target, garbage: Garbage, say: Say
) -> Iterator[tuple[CommitContender, CommitContender]]:
    """Open a target in two environments, each named with the versions that differ; None is this Python."""
    with tempfile.TemporaryDirectory(prefix="hotloop-") as name:
        shared = Path(name)
        (shared / "hotloop").symlink_to(PACKAGE)
        environment = side_environment(Path.cwd(), shared) | {"PYTHONPATH": str(shared)}
        a, b = (
            CommitContender(
                Checkout(
                    commit=Commit(ref=PRESENT if place is None else str(place), sha=""),
                    place=Path.cwd(),
                    target=target,
                    settings=worker_settings(target, garbage, packages=True),
                    environment=dict(os.environ) if place is None else environment,
                    python=Path(sys.executable) if place is None else python_in(place),
                )
            )
            for place in places
        )
        different = sorted(
            package
            for package in {**a.packages, **b.packages}
            if a.packages.get(package) != b.packages.get(package)
        )
        if not different:
            say("both environments load the same versions of all packages")
        for side in (a, b):
            commit = side.checkout.commit
            versions = ", ".join(f"{name} {side.packages.get(name, 'absent')}" for name in different)
            commit = replace(commit, ref=f"{commit.ref} ({versions})" if versions else commit.ref)
            side.checkout = replace(side.checkout, commit=commit)
            side.name = f"{target.words} in {commit.name}"
        yield a, b


def python_in(place: Path) -> Path:
    """Return the Python of an environment: a folder that has one, or the program itself."""
    for path in (place / "bin" / "python", place):
        if path.is_file() and os.access(path, os.X_OK):
            return path.absolute()
    raise InputError(f"{place} has no bin/python: give the folder of a virtual environment, or a python")


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A baseline whose code can be built again: a commit, or a record that names one."""

    name: str  # As it was typed
    ref: str
    target: Target  # With the keys it had then
    record: Record | None = None  # What was measured then; None of a commit


def earlier_of(
    target: Target, policy: str, records: Iterable[tuple[str, Record]], refs: Sequence[str]
) -> list[Earlier]:
    """Return the code of baselines that can be measured again; of the other records only numbers are left."""
    earlier = [
        Earlier(
            name=name,
            ref=record.code["project"]["commit"],
            target=Target(record.target.name, dict(record.target.keys)),
            record=record,
        )
        for name, record in records
        if policy == RANDOM and "project" in record.code and record.code["project"].get("sources")
    ]
    return [*earlier, *(Earlier(name=ref, ref=ref, target=target) for ref in refs)]


Pair = tuple[Earlier, CommitContender, CommitContender]  # A baseline, its code of then, and the present code


@contextmanager
def build_all(
    baselines: Sequence[Earlier], target: Target, garbage: Garbage, say: Say
) -> Iterator[list[Pair]]:
    """Build the code of each baseline; a record without code to build is left out, and `say` told why."""
    with ExitStack() as stack:
        pairs: list[Pair] = []
        for each in baselines:
            try:
                then, now = stack.enter_context(build_earlier(each, target, garbage, say))
                pairs.append((each, CommitContender(then), CommitContender(now)))
            except InputError as error:
                if each.record is None:
                    raise
                say(f"{each.name} is read, not measured again in turns: {error}")
        yield pairs


@contextmanager
def build_earlier(
    baseline: Earlier, target: Target, garbage: Garbage, say: Say
) -> Iterator[tuple[Checkout, Checkout]]:
    """Build a baseline's code beside the working tree; refuses other code than was measured."""
    here, record = Path.cwd(), baseline.record
    root = root_of(here)
    if record is not None and git(root, "cat-file", "-e", f"{baseline.ref}^{{commit}}") is None:
        raise InputError(f"its commit {baseline.ref[:12]} is not in {root}")
    commit = replace(resolve(root, baseline.ref), ref=baseline.name)
    with check_out(here, commit, None, target, garbage=garbage, say=say, target_of_a=baseline.target) as (
        then,
        now,
    ):
        if changed := lost_sources(baseline, then.place):
            raise InputError(
                f"{', '.join(changed)} had changes that are in no commit; commit, then measure the baseline"
            )
        yield then, now


def lost_sources(baseline: Earlier, place: Path) -> list[str]:
    """Return the files that were measured and are not so in the checkout of their commit."""
    if baseline.record is None:
        return []
    measured = baseline.record.code["project"].get("sources", {})
    module = baseline.target.name.rpartition(":")[0]
    folders = [place / Path(module).parent] if module.endswith(".py") else [place, place / "src"]
    return [
        name
        for name, hash_then in measured.items()
        if all(hash_of_file(folder / name) != hash_then for folder in folders)
    ]


def against_commits(
    record: Record, pairs: Sequence[Pair], asked: CompareSettings, progress: Progress = silent, *, say: Say
) -> Record:
    """Return a bench with its comparisons with earlier code, which takes turns with the present code."""
    for baseline, then, now in pairs:
        if record.partial:
            return record
        counts = asked.instructions and then.checkout.can_count
        if asked.instructions and not counts:
            say(NOT_COUNTED.format(name=then.name))
        found = measure_comparison(then, now, replace(asked, instructions=counts), progress, say)
        unequal = found.validation if found.validation and found.validation.mismatches else None
        values = {f"{baseline.name}.{key}": raw for key, raw in found.values.items()}
        record = with_metrics(
            replace(
                record,
                comparisons=(*record.comparisons, *found.comparisons),
                values=record.values | values,
                validation=both_validations(record.validation, unequal),  # unequal there is unequal here
                instructions=record.instructions or found.instructions,
                partial=found.partial,
            )
        )
    return judge(record) if pairs else record
