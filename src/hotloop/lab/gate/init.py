"""A first hotloop.toml from what was measured, and the CI jobs that hold it: for GitHub and for GitLab."""

import re
from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from hotloop.core.clock import utc_now
from hotloop.core.errors import ExitCode, HotloopError, InputError, SetupError
from hotloop.core.files import write_new
from hotloop.core.machine import git
from hotloop.core.progress import Progress, silent
from hotloop.core.project import NAME, Budget, put_budget, read
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.judge.checks import estimate, rounded
from hotloop.lab.compare.commits import Say
from hotloop.lab.gate.gate import run
from hotloop.lab.gate.measure import COUNTED, SPEEDS, Checkouts, GateContext, RemoteMeasurer, branch_of
from hotloop.options.gate import GateOptions

GITHUB = Path(".github/workflows/hotloop-gate.yml")
GITLAB = Path(".gitlab/hotloop-gate.yml")

# That a first budget allows: a shared machine tells 5% of speed, and 2% of instructions anywhere
SPEED_CHANGE, COUNT_CHANGE = 0.05, 0.02

FLOOR, GOAL = 0.5, 1.25  # Of the speed measured: what no machine should be below, and what to aim at

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
    speed, counted = measure(folder, target, progress, say)
    if not place.exists():
        write_new(place, COMMENT)
    for budget in budgets_of(stem, target, speed, counted, branch):
        put_budget(place, budget)
    written = [(place, ", ".join(f"budget {name}" for name in read(place).budgets if name.startswith(stem)))]
    return written + jobs(folder, branch or "main", say)


def measure(folder: Path, target: Target, progress: Progress, say: Say) -> tuple[Record, Record | None]:
    """Measure the speed, and the instructions if they can be counted."""
    with Checkouts(folder, say=say) as places, RemoteMeasurer(places.tree(), target) as gauge:
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
        return speed, counted


def stem_of(target: Target) -> str:
    """What its budgets are called: the last words of its name."""
    return re.sub(r"\W+", "-", Path(target.name).name.replace(".py:", "-")).strip("-").lower() or "target"


def names_of(stem: str) -> tuple[str, ...]:
    return f"{stem}-instructions", f"{stem}-speed", f"{stem}-floor", f"{stem}-goal"


def budgets_of(
    stem: str, target: Target, measured: Record, counted: Record | None, branch: str | None
) -> list[Budget]:
    """Return budgets relative to the branch if there is one, then a floor and a goal, in three digits."""
    by_count, by_speed, floor, goal = names_of(stem)
    speed = estimate(measured.values[SPEEDS[0]])
    first = partial(Budget, target=target.name, keys=dict(target.keys))
    budgets = []
    if branch and counted:
        why = "counted, so that a busy machine cannot move it"
        budgets += [first(name=by_count, metric=COUNTED, max_change=COUNT_CHANGE, against=branch, reason=why)]
    if branch:
        why = "nobody slows it down without saying so"
        budgets += [
            first(name=by_speed, metric=SPEEDS[0], max_change=SPEED_CHANGE, against=branch, reason=why)
        ]
    least, wanted = (float(rounded(value)) for value in (FLOOR * speed.low, GOAL * speed.value))
    why = "half of what was measured"
    return [
        *budgets,
        first(name=floor, metric=SPEEDS[0], limit=least, reason=why),
        first(name=goal, metric=SPEEDS[0], limit=wanted, reason="to reach", enforce=False),
    ]


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


# An env of {turns} turns of work a step, whose answers change with {twist}
ENV = """class Env:
    num_actions = 3

    def reset(self, seed=None):
        self.at = self.steps = 0
        return self.at, {{}}

    def step(self, action):
        work = 0
        for turn in range({turns}):
            work += turn & action
        self.at = (self.at + action + {twist}) % 97
        self.steps += 1
        return self.at, float(action), self.steps >= 50, False, {{}}
"""

TARGET = "env.py:Env"
TURNS = 400
SLOWER, FASTER = 480, 320

MAX_CHANGE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Something that the gate must see, and what it must say."""

    name: str
    turns: int = TURNS
    twist: int = 0
    metric: str
    max_change: float = MAX_CHANGE
    expected: ExitCode


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTestCase:
    """What the gate said of it."""

    name: str
    expected: str
    found: str
    why: str
    change: float | None = None  # Of the metric, as it was measured

    @property
    def passed(self) -> bool:
        return self.expected == self.found


def planted() -> list[Planted]:
    """Nothing, a slow-down, a gain, another answer: by speed, and by instructions where there is valgrind."""
    speed, counted = SPEEDS[0], COUNTED
    by_speed = [
        Planted(name="nothing, by speed", metric=speed, expected=ExitCode.FINE),
        Planted(name="a slow-down, by speed", turns=SLOWER, metric=speed, expected=ExitCode.REGRESSION),
        Planted(name="a gain, by speed", turns=FASTER, metric=speed, expected=ExitCode.FINE),
        Planted(name="another answer", twist=1, metric=speed, expected=ExitCode.MISMATCH),
    ]
    by_count = [
        Planted(name="nothing, by instructions", metric=counted, expected=ExitCode.FINE),
        Planted(
            name="a slow-down, by instructions", turns=SLOWER, metric=counted, expected=ExitCode.REGRESSION
        ),
        Planted(name="a gain, by instructions", turns=FASTER, metric=counted, expected=ExitCode.FINE),
    ]
    return by_speed + (by_count if which("valgrind") else [])


def self_test(
    progress: Progress = silent, cases: Sequence[Planted] | None = None, *, seconds: float = 6.0
) -> list[SelfTestCase]:
    """Plant each case as a commit of its own, and have the gate judge it against the one before."""
    plan = planted() if cases is None else list(cases)
    with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as room:
        project = Path(room) / "project"
        project.mkdir()
        in_git(project, "init", "--quiet")
        commit_env(project, Planted(name="", metric="", expected=ExitCode.FINE), "the env")
        base = in_git(project, "rev-parse", "HEAD")
        found = []
        for done, case in enumerate(plan):
            progress(done, len(plan))
            found.append(judge_case(project, base, case, seconds))
        return found


def commit_env(project: Path, case: Planted, message: str) -> None:
    """Commit the env of a case."""
    text = f"# {message}\n" + ENV.format(turns=case.turns, twist=case.twist)
    (project / "env.py").write_text(text, encoding="utf-8")
    in_git(project, "add", "--all")
    in_git(project, "commit", "--quiet", "--allow-empty", "--message", message)


def judge_case(project: Path, base: str, case: Planted, seconds: float) -> SelfTestCase:
    """Return what the gate says of one case, by its exit code."""
    in_git(project, "checkout", "--quiet", base)
    commit_env(project, case, case.name)
    budget = Budget(
        name="planted",
        target=TARGET,
        metric=case.metric,
        max_change=case.max_change,
        against=base,
        owner="nobody",
    )
    with Checkouts(project, say=lambda words: None) as places, chdir(project):
        how = GateContext(places=places, today=utc_now().date(), options=GateOptions(budget=seconds))
        result = run([budget], how)
    row = result.rows[0]
    held = row.record.held if row.record else None
    return SelfTestCase(
        name=case.name,
        expected=case.expected.name.lower(),
        found=result.code.name.lower(),
        why=held.why if held else row.error or "",
        change=held.change.value if held and held.change else None,
    )


def in_git(folder: Path, *words: str) -> str:
    """Run git in a temporary repository; SetupError if it fails."""
    who = ("-c", "user.name=hotloop", "-c", "user.email=hotloop@localhost", "-c", "commit.gpgsign=false")
    answer = git(folder, *who, *words)
    if answer is None:
        raise SetupError(f"git {words[0]} failed: the self-test needs git")
    return answer
