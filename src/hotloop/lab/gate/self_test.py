"""The gate's self-test: a project is made in which it is known what the gate must say, and it is asked.

The cases go the whole way: commits are built, measured in turns, judged. A gate whose verdict is never
consulted, whose threshold has the wrong sign, or that compares a baseline with itself fails one of them.
"""

from collections.abc import Sequence
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from hotloop.core.clock import utc_now
from hotloop.core.code import git
from hotloop.core.errors import ExitCode, SetupError
from hotloop.core.progress import Progress, silent
from hotloop.core.project import Budget
from hotloop.lab.gate.gate import run
from hotloop.lab.gate.measure import COUNTED, SPEEDS, How
from hotloop.lab.gate.places import Places

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
"""An env of {turns} turns of work a step, whose answers change with {twist}."""

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
class Case:
    """What the gate said of it."""

    name: str
    expected: str
    found: str
    why: str
    change: float | None = None
    """Of the metric, as it was measured."""

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
) -> list[Case]:
    """Plant each case as a commit of its own, and have the gate judge it against the one before."""
    plan = planted() if cases is None else list(cases)
    with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as room:
        project = Path(room) / "project"
        base = made(project)
        found = []
        for done, case in enumerate(plan):
            progress(done, len(plan))
            found.append(judged(project, base, case, seconds))
        return found


def made(project: Path) -> str:
    """A repository with the env in it; returns its first commit."""
    project.mkdir()
    in_git(project, "init", "--quiet")
    write(project, Planted(name="", metric="", expected=ExitCode.FINE), "the env")
    return in_git(project, "rev-parse", "HEAD")


def write(project: Path, case: Planted, message: str) -> None:
    text = f"# {message}\n" + ENV.format(turns=case.turns, twist=case.twist)
    (project / "env.py").write_text(text, encoding="utf-8")
    in_git(project, "add", "--all")
    in_git(project, "commit", "--quiet", "--allow-empty", "--message", message)


def judged(project: Path, base: str, case: Planted, seconds: float) -> Case:
    """What the gate says of one case; what it says is its exit code."""
    in_git(project, "checkout", "--quiet", base)
    write(project, case, case.name)
    budget = Budget(
        name="planted",
        target=TARGET,
        metric=case.metric,
        max_change=case.max_change,
        against=base,
        owner="nobody",
    )
    with Places(project, say=lambda words: None) as places, chdir(project):
        how = How(places=places, today=utc_now().date(), seconds=seconds)
        result = run([budget], how)
    row = result.rows[0]
    held = row.record.held if row.record else None
    return Case(
        name=case.name,
        expected=case.expected.name.lower(),
        found=result.code.name.lower(),
        why=held.why if held else row.error or "",
        change=held.change.value if held and held.change else None,
    )


def in_git(folder: Path, *words: str) -> str:
    """What git answers in a repository that is nobody's; SetupError where it refuses."""
    who = ("-c", "user.name=hotloop", "-c", "user.email=hotloop@localhost", "-c", "commit.gpgsign=false")
    answer = git(folder, *who, *words)
    if answer is None:
        raise SetupError(f"git {words[0]} failed: the self-test needs git")
    return answer
