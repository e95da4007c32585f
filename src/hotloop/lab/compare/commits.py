"""Two commits of a project as the sides of a comparison: each checked out, built and opened apart."""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from hotloop.core.errors import InputError
from hotloop.core.machine import UNKNOWN, Sources, git
from hotloop.core.notices import Notice
from hotloop.core.process.worker import end_group, start
from hotloop.core.progress import Progress, silent
from hotloop.core.record.metadata import Code, Described, Instructions
from hotloop.core.target import Target
from hotloop.envs.spec import Spec
from hotloop.lab.compare.contenders import Contender
from hotloop.lab.compare.process import ProcessSide, replay_both
from hotloop.lab.measure.policy import LEARNING, RANDOM
from hotloop.lab.measure.resources import Where, count
from hotloop.lab.measure.sides import Garbage, Side
from hotloop.lab.validate.equal import USUAL, Agreement, Reach

Say = Callable[[str], None]

LAST_LINES = 15  # Of what a build printed that are worth showing
SEED = 42  # Where no seed is given

# Environment variables that would lead a side's Python back to the present code.
OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


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
    asked: Mapping[str, Any]  # The worker's settings: target, seed, tree
    environment: Mapping[str, str]
    # What runs it; None is that of the checkout, or the present one where it has none.
    python: Path | None = None

    def open(self, seed: int | None = None) -> ProcessSide:
        """A new process with the target in it, and with another seed if one is given."""
        asked = self.asked if seed is None else {**self.asked, "seed": seed, "reseed": True}
        python, environment = self.runner
        return open_side(self.commit, self.place, asked, environment, python)

    @property
    def runner(self) -> tuple[Path, Mapping[str, str]]:
        """The Python of the checkout, or the present one with the checkout before all else on its path."""
        python = self.python or python_of(self.place)
        if python.exists():
            return python, self.environment
        before = [str(self.place), str(self.place / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return Path(sys.executable), {**self.environment, "PYTHONPATH": os.pathsep.join(before)}

    @property
    def can_count(self) -> bool:
        """Whether instructions can be counted: this Hotloop has to open the target."""
        return self.runner[0] == Path(sys.executable)


@contextmanager
def check_out(
    project: Path,
    a_ref: str,
    b_ref: str,
    target: Target,
    *,
    build: str | None = None,
    garbage: Garbage = "between",
    say: Say,
) -> Iterator[tuple[Checkout, Checkout]]:
    """Build a target at two commits of the repository around a folder; nothing is left behind at the end.

    Each commit is cloned into a temporary folder, where its objects stay those of the project, and built:
    by `build`, a shell command run there, or by pip into a `.venv` of its own.
    """
    root = root_of(project)
    commits = [resolve(root, ref) for ref in (a_ref, b_ref)]
    if git(root, "status", "--porcelain", "--untracked-files=no"):
        say("uncommitted changes are in neither commit and are not measured")
    asked = asked_of(root, target, garbage)
    with tempfile.TemporaryDirectory(prefix="hotloop-") as name:
        folder = Path(name)
        places = [
            prepare(root, commit, folder / side, project.resolve(), build, say)
            for side, commit in zip("ab", commits, strict=True)
        ]
        a, b = (
            Checkout(commit=commit, place=place, target=target, asked=asked, environment=apart(place, folder))
            for commit, place in zip(commits, places, strict=True)
        )
        yield a, b


def root_of(project: Path) -> Path:
    """The top of the repository around a folder."""
    top = git(project, "rev-parse", "--show-toplevel")
    if top is None:
        raise InputError(f"{project} is in no git repository: commits can only be compared in one")
    return Path(top)


def asked_of(root: Path, target: Target, garbage: Garbage) -> dict[str, object]:
    """The worker's settings; nothing may be loaded from below the tree."""
    return {
        "target": target.plain(),
        "seed": seed_of(target),
        "gc": garbage,
        "tree": str(root.resolve()),
    }


def resolve(root: Path, ref: str) -> Commit:
    """The commit that a ref names; InputError where there is none."""
    sha = git(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    if not sha:
        raise InputError(f"there is no commit {ref!r} in {root}: give a branch, a tag or a hash")
    return Commit(ref=ref, sha=sha)


def seed_of(target: Target) -> int:
    word = str(target.keys.get("seed", SEED))
    if not word.isdecimal():
        raise InputError(f"seed={word} does not fit: expected a whole number")
    return int(word)


def prepare(root: Path, commit: Commit, checkout: Path, project: Path, build: str | None, say: Say) -> Path:
    """Check a commit out and build it; returns the project's folder in it."""
    say(f"building {commit.name}")
    temporary = checkout.parent
    with (temporary / f"{checkout.name}.log").open("w+b") as log:
        clone = ["git", "clone", "--quiet", "--shared", "--no-checkout", str(root), str(checkout)]
        run(commit, clone, root, apart(root, temporary), log)
        detach = ["git", "checkout", "--quiet", "--detach", commit.sha]
        run(commit, detach, checkout, apart(checkout, temporary), log)
        place = checkout / project.relative_to(root.resolve())
        if not place.is_dir():
            raise InputError(f"{commit.name} has no folder {place.relative_to(checkout)}")
        for command in commands(place, build):
            run(commit, command, place, apart(place, temporary), log)
    return place


def commands(place: Path, build: str | None) -> list[list[str]]:
    """What builds a checkout: what was asked for, or pip where there is something to install."""
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
    """Run one step of a build; InputError with its last lines where it fails, nothing running afterwards."""
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
        said = "".join(f"\n  {line}" for line in lines)
        raise InputError(f"{commit.name} does not build: {words} ended with {status}{said}")


def apart(folder: Path, temporary: Path) -> dict[str, str]:
    """The environment of a side: nothing leads back to the present code, and what it leaves is removed."""
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


def open_side(
    commit: Commit,
    place: Path,
    asked: Mapping[str, Any],
    environment: Mapping[str, str],
    python: Path,
) -> ProcessSide:
    """Open a target of a checkout by a Python."""
    side = ProcessSide(commit.name, python, place, asked, environment)
    if strays := side.facts.pop("strays"):
        side.close()
        raise InputError(
            f"{commit.name}: {strays[0]} was loaded, which is not the commit's: "
            "the build must install the project into .venv of the checkout"
        )
    side.facts |= {"ref": commit.ref, "commit": commit.sha}
    return side


# Because a commit may be older than the instrument, and than its players.
WHOLE = "commits and environments are compared whole, under random play: give no --policy and no --profile"

NOT_COUNTED = (
    "instructions of {name} are not counted: a build may give it a Python without this Hotloop; "
    "leave out --instructions"
)


def check_asked(policy: str, *, beyond_speed: bool) -> None:
    """Refuse what a commit cannot be asked."""
    if policy not in (RANDOM, LEARNING) or beyond_speed:
        raise InputError(WHOLE)


class CommitContender:
    """A target at a commit; who compares two of them says that the code differs, so nothing else may."""

    def __init__(self, checkout: Checkout, facts: Mapping[str, Any] | None = None) -> None:
        """`facts` are those of a side that is open already."""
        self.checkout = checkout
        if facts is None:
            with closing(checkout.open()) as side:
                facts = side.facts
        self._facts = facts
        self.name = f"{checkout.target.name} at {checkout.commit.name}"

    @property
    def spec(self) -> Spec:
        facts, asked = self._facts, self.checkout.asked
        return Spec(
            name=self.checkout.target.name,
            impl=facts["impl"],
            requested="auto",
            num_envs=facts["num_envs"],
            agents=facts["agents"],
            threads=int((facts["target"] or {}).get("variant", {}).get("threads", 1)),
            seed=asked["seed"],
            described=self._target(),
            same_work=self.checkout.target,
        )

    @property
    def code(self) -> Code:
        build = self._facts["build"] or {}
        return {
            "version": self._facts["versions"].get("hotloop", "unknown"),
            "commit": self.checkout.commit.sha or UNKNOWN,
            "dirty": self.checkout.commit.dirty,
            "compiler": build.get("compiler"),
            "flags": build.get("flags"),
        }

    @property
    def packages(self) -> dict[str, str]:
        """Versions of Python and of the packages that its process has loaded."""
        packages: dict[str, str] = self._facts["packages"]
        return packages

    sources: Sources = MappingProxyType({})

    @property
    def takes_seed(self) -> bool:
        keys = self.checkout.target.keys
        return "seed" not in keys and not any(key.startswith("train.") for key in keys)

    def side(self, policy: str, *, profile: bool = False, seed: int | None = None) -> Side:
        check_asked(policy, beyond_speed=profile)
        return self.checkout.open(seed)

    def agreement(
        self, other: Contender, reach: Reach = USUAL, policy: str = RANDOM, progress: Progress = silent
    ) -> Agreement:
        """Both replay the same steps, each in its own process, and tell hashes of every answer."""
        assert isinstance(other, CommitContender)
        with closing(self.checkout.open()) as a, closing(other.checkout.open()) as b:
            found = replay_both(a, b, reach)
        spec = self.spec
        return Agreement(
            steps=found.steps,
            envs=spec.num_envs,
            comparisons=(found.steps + 1) * spec.num_envs * spec.agents,
            fields=found.fields,
            difference=found.difference,
            all_envs=spec.num_envs,
            too_few=found.too_few,
        )

    def instructions(self, policy: str, env_steps: int | None = None) -> Instructions:
        checkout = self.checkout
        if not checkout.can_count:
            raise InputError(NOT_COUNTED.format(name=self.name))
        _, environment = checkout.runner
        where = Where(folder=checkout.place, environment=environment)
        return count(checkout.target, policy=policy, env_steps=env_steps, where=where)

    def faults(self, policy: str = RANDOM) -> tuple[Notice, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held: its sides are closed by who asked for them."""

    def _target(self) -> Described:
        """As the commit's own Hotloop describes it; what it cannot say is what was asked for."""
        told = self._facts["target"]
        if told is not None:
            return Described(**told)
        asked = self.checkout.asked
        return Described(
            name=self.checkout.target.name,
            world=None,
            impl=self._facts["impl"],
            device="cpu",
            params=self.checkout.target.keys | {"seed": asked["seed"]},
            workload_hash="",
            variant={"num_envs": self._facts["num_envs"]},
        )
