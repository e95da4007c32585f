"""Two projects at once: each in a process of its own, and no module of one is the other's."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from hotloop.core.errors import TheirError
from hotloop.core.settings import Target
from hotloop.envs.open import open_target
from hotloop.envs.projects import home_of, is_apart, open_separately, parameters
from hotloop.envs.subject import Subject
from hotloop.lab.compare.contenders import RemoteSide, TargetContender, separate_projects
from hotloop.lab.validate.equal import replay

ENV = """
import os, signal
from physics import simulate

class Env:
    num_actions = 9
    def reset(self, seed=None):
        self.place = 0
        return self.place, {}
    def step(self, action):
        if action == 10:
            os.kill(os.getpid(), signal.SIGSEGV)
        self.place = simulate(self.place, action)
        return self.place, 1.0, False, False, {}

def make(size=3):
    return Env()
"""

PHYSICS = "def simulate(place, action): return place + {by} * action\n"


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> tuple[Target, Target]:
    """Two folders with files of the same names, which do different things."""
    folder = tmp_path_factory.mktemp("projects")
    for name, by in (("old", 1), ("new", 2)):
        (folder / name).mkdir()
        (folder / name / "env.py").write_text(ENV)
        (folder / name / "physics.py").write_text(PHYSICS.format(by=by))
    return Target(f"{folder}/old/env.py:make"), Target(f"{folder}/new/env.py:make")


@pytest.fixture(scope="module")
def subjects(targets: tuple[Target, Target]) -> Iterator[tuple[Subject, Subject]]:
    with open_separately(*targets):
        yield open_target(targets[0]), open_target(targets[1])


def test_targets_of_one_home_stay_here(targets: tuple[Target, Target]) -> None:
    old, _ = targets
    with open_separately(old, Target("grid/toy"), old):
        assert not is_apart(old)
    with open_separately(old, Target("gym:CartPole-v1")):
        assert is_apart(old)
        assert is_apart(Target("gym:CartPole-v1"))
        assert not is_apart(Target("grid/toy"))
    assert home_of(Target("module:make")) == str(Path.cwd())


def test_each_side_runs_its_own_modules(subjects: tuple[Subject, Subject]) -> None:
    old, new = subjects
    found = replay(old, new)
    assert found.difference is not None
    assert found.difference.field == "observations"
    assert "physics" not in sys.modules


def test_what_is_drawn_there_moves_the_generator_here(subjects: tuple[Subject, Subject]) -> None:
    generator = np.random.default_rng(1)
    first, second = subjects[0].draw(generator, 20), subjects[0].draw(generator, 20)
    assert list(first) != list(second)
    again = np.random.default_rng(1)
    assert list(subjects[1].draw(again, 20)) == list(first)


def test_a_callable_is_looked_at_where_it_is_opened(
    targets: tuple[Target, Target], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "env", raising=False)
    with open_separately(*targets):
        assert parameters(targets[0]) == ("size",)
    assert "env" not in sys.modules


def test_a_side_is_timed_in_its_own_process_and_its_crash_is_one_error(
    targets: tuple[Target, Target],
) -> None:
    a, b = map(TargetContender, targets)
    with separate_projects(a, b), closing(a.side("random")) as side:
        assert isinstance(side, RemoteSide)
        assert side.grain == 1
        assert side.turn(50, 0).env_steps == 50
        assert side.counters()["env_steps"] == 50
        assert "observations" in side.seen()
        side._process.close()
        with pytest.raises(TheirError, match="its process was ended by SIGKILL"):
            side.turn(50)


@pytest.mark.hostile
@pytest.mark.parametrize(
    "words", [("validate", "{new}", "200", "--against", "{old}"), ("compare", "{old}", "{new}")]
)
def test_commands_find_the_difference(
    words: tuple[str, ...], targets: tuple[Target, Target], tmp_path: Path
) -> None:
    old, new = (each.name for each in targets)
    spelled = [word.format(old=old, new=new) for word in words]
    code = "import sys; from hotloop.cli.main import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *spelled], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr


def test_a_step_that_hangs_in_one_of_two_projects_is_shown_where_it_hangs(tmp_path: Path) -> None:
    hanging = "import time\ndef simulate(place, action):\n    time.sleep(1000)\n"
    for name, physics in (("old", PHYSICS.format(by=1)), ("new", hanging)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "env.py").write_text(ENV)
        (tmp_path / name / "physics.py").write_text(physics)
    words = ["compare", "old/env.py:make", "new/env.py:make", "--step-timeout", "0.2"]
    code = "import sys; from hotloop.cli.main import main; sys.exit(main())"
    supervised = {name: value for name, value in os.environ.items() if name != "HOTLOOP_IN_PROCESS"}
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=tmp_path,
        env=supervised,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 64
    assert "(physics.py:3 in simulate < env.py:13 in step" in done.stderr.splitlines()[-1]
