"""A first hotloop.toml from what was measured, and the CI jobs that hold it: for GitHub and for GitLab."""

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import which

from hotloop.core.code import git
from hotloop.core.errors import HotloopError, InputError
from hotloop.core.files import write_new
from hotloop.core.progress import Progress, silent
from hotloop.core.project import NAME, Budget, put_budget, read
from hotloop.core.record.record import Record
from hotloop.core.target import Target
from hotloop.judge.gate import estimate, rounded
from hotloop.lab.compare.commits import Say
from hotloop.lab.gate.measure import COUNTED, SPEEDS
from hotloop.lab.gate.places import Gauge, Places

GITHUB = Path(".github/workflows/hotloop-gate.yml")
GITLAB = Path(".gitlab/hotloop-gate.yml")

SPEED_CHANGE, COUNT_CHANGE = 0.05, 0.02
"""That a first budget allows: a shared machine tells 5% of speed, and 2% of instructions anywhere."""

FLOOR, GOAL = 0.5, 1.25
"""Of the speed measured: what no machine should be below, and what to aim at."""

BRANCHES = ("main", "master", "trunk", "develop")

COMMENT = """\
# Budgets: what the speed of this project may be, and who is asked when it is not. `hotloop gate` holds them,
# `hotloop gate --list` shows them. max_change is measured in turns with the commit that `against` names; of a
# branch it is where it was left.
"""

GITHUB_TEXT = """\
# Holds the budgets of hotloop.toml on every push and pull request. Written by `hotloop gate --init`.
name: hotloop gate
on:
  push:
    branches: [{branch}]
  pull_request:
permissions:
  contents: read
env:
  HOTLOOP_PACKAGE: hotloop
jobs:
  gate:
    runs-on: ubuntu-latest
    timeout-minutes: 60
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0 # budgets are held against other commits
      - uses: actions/setup-python@v5
        with:
          python-version: "3.11"
      - name: Valgrind, which counts instructions
        run: command -v valgrind || (sudo apt-get update && sudo apt-get install --yes valgrind)
      - name: Hotloop and this project
        run: |
          python -m pip install "$HOTLOOP_PACKAGE"
          {install}
      - name: The branch that changes are held against
        run: git rev-parse --verify --quiet {branch} || git branch {branch} origin/{branch}
      - name: Gate
        run: hotloop gate
      - name: Keep the records
        if: always()
        uses: actions/upload-artifact@v4
        with:
          name: hotloop-gate
          path: artifacts/gate
          if-no-files-found: ignore
"""

GITLAB_TEXT = """\
# Holds the budgets of hotloop.toml. Written by `hotloop gate --init`; in .gitlab-ci.yml:
#   include: {{local: {path}}}
hotloop-gate:
  image: python:3.11
  variables:
    GIT_DEPTH: "0" # budgets are held against other commits
    HOTLOOP_PACKAGE: hotloop
  script:
    - command -v valgrind || (apt-get update && apt-get install --yes valgrind)
    - python -m pip install "$HOTLOOP_PACKAGE"
    - {install}
    - git rev-parse --verify --quiet {branch} || git branch {branch} origin/{branch}
    - hotloop gate
  artifacts:
    when: always
    paths:
      - artifacts/gate
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class First:
    """What was measured before anything is written."""

    speed: Record
    counted: Record | None


def begin(folder: Path, target: Target, progress: Progress = silent, *, say: Say) -> list[tuple[Path, str]]:
    """Measure a target, and write budgets for it and the jobs that hold them; says what was written.

    Files that are there stay: budgets of other names are added to a hotloop.toml, a job is left as it is.
    """
    place = folder / NAME
    budgets_there = read(place).budgets if place.exists() else {}
    stem = stem_of(target)
    branch = branch_of(folder)
    taken = [name for name in names_of(stem) if name in budgets_there]
    if taken:
        raise InputError(f"{place} has budget {taken[0]} already: change it there, or remove it first")
    found = measured(folder, target, progress, say)
    if not place.exists():
        write_new(place, COMMENT)
    for budget in budgets_of(stem, target, found, branch):
        put_budget(place, budget)
    written = [(place, ", ".join(f"budget {name}" for name in read(place).budgets if name.startswith(stem)))]
    return written + jobs(folder, branch or "main", say)


def measured(folder: Path, target: Target, progress: Progress, say: Say) -> First:
    """The speed, and the instructions where they can be counted."""
    with Places(folder, say=say) as places, Gauge(places.tree(), target) as gauge:
        progress(0, 2)
        speed = gauge.measure("bench")
        progress(1, 2)
        counted = None
        if which("valgrind"):
            try:
                counted = gauge.measure("count")
            except HotloopError as error:
                say(f"no budget of instructions: {error}")
        else:
            say("no budget of instructions: valgrind is not here (apt install valgrind)")
        return First(speed=speed, counted=counted)


def stem_of(target: Target) -> str:
    """What its budgets are called: the last words of its name."""
    return re.sub(r"\W+", "-", Path(target.name).name.replace(".py:", "-")).strip("-").lower() or "target"


def names_of(stem: str) -> tuple[str, ...]:
    return f"{stem}-instructions", f"{stem}-speed", f"{stem}-floor", f"{stem}-goal"


def budgets_of(stem: str, target: Target, found: First, branch: str | None) -> list[Budget]:
    """Relative ones where there is a branch to be relative to; a floor and a goal always."""
    counted, relative, floor, goal = names_of(stem)
    speed = estimate(found.speed.values[SPEEDS[0]])
    first = partial(Budget, target=target.name, keys=dict(target.keys))
    budgets = [
        first(
            name=floor, metric=SPEEDS[0], limit=short(FLOOR * speed.low), reason="half of what was measured"
        ),
        first(name=goal, metric=SPEEDS[0], limit=short(GOAL * speed.value), reason="to reach", enforce=False),
    ]
    if branch:
        why = "nobody slows it down without saying so"
        budgets.insert(
            0, first(name=relative, metric=SPEEDS[0], max_change=SPEED_CHANGE, against=branch, reason=why)
        )
    if branch and found.counted:
        why = "counted, so that a busy machine cannot move it"
        budgets.insert(
            0, first(name=counted, metric=COUNTED, max_change=COUNT_CHANGE, against=branch, reason=why)
        )
    return budgets


def short(value: float) -> float:
    """Three digits of it."""
    return float(rounded(value))


def branch_of(folder: Path) -> str | None:
    """The branch that others are merged into, by the remote's word or by its usual names."""
    remote = git(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if remote:
        return remote.removeprefix("origin/")
    known = (git(folder, "branch", "--format=%(refname:short)") or "").split()
    current = git(folder, "branch", "--show-current") or None
    return next((name for name in BRANCHES if name in known), current)


def jobs(folder: Path, branch: str, say: Say) -> list[tuple[Path, str]]:
    """Write the jobs at the top of the repository, where the hosts look for them."""
    root = Path(git(folder, "rev-parse", "--show-toplevel") or folder)
    install = install_line(folder)
    texts = {
        GITHUB: GITHUB_TEXT.format(branch=branch, install=install),
        GITLAB: GITLAB_TEXT.format(branch=branch, install=install, path=GITLAB),
    }
    written = []
    for name, text in texts.items():
        if (root / name).exists():
            say(f"{root / name} is there and stays as it is")
            continue
        write_new(root / name, text)
        written.append((root / name, "the job that runs hotloop gate"))
    return written


def install_line(folder: Path) -> str:
    """What installs a project's own needs."""
    if any((folder / name).is_file() for name in ("pyproject.toml", "setup.py")):
        return "python -m pip install ."
    if (folder / "requirements.txt").is_file():
        return "python -m pip install --requirement requirements.txt"
    return "python -m pip check"
