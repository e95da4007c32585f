import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.projects import ENV, Project
from support.sides import first_difference

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.settings import Target
from hotloop.lab.compare.commits import check_out, commands
from hotloop.lab.compare.process import ProcessSide


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where all temporary folders go, so that one can see what is left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    made.commit(env=ENV)
    made.commit(env=ENV.replace("float(action)", "float(action) if self.steps < 4 else -1.0"))
    return made


def nothing_is_left(project: Project, temporary: Path) -> bool:
    return not list(temporary.iterdir()) and len(project.git("worktree", "list").splitlines()) == 1


@contextmanager
def open_refs(*words: Any, **more: Any) -> Iterator[tuple[ProcessSide, ProcessSide]]:
    """A side of each of two commits."""
    with check_out(*words, **more) as (a, b), closing(a.open()) as one, closing(b.open()) as other:
        yield one, other


def opened(project: Project, a: str = "HEAD~1", b: str = "HEAD", **more: Any) -> Any:
    usual = {"target": Target("env.py:make"), "build": "true", "say": lambda text: None}
    return open_refs(project.root, a, b, **usual | more)


def test_each_side_runs_its_own_commit_and_says_which(project: Project, temporary: Path) -> None:
    with opened(project) as (a, b):
        assert a.name == f"HEAD~1 ({project.git('rev-parse', 'HEAD~1')[:12]})"
        assert b.facts["commit"] == project.git("rev-parse", "HEAD")
        assert first_difference(a, b, 20) == "step 4: rewards differ"
    assert nothing_is_left(project, temporary)


def test_the_same_commit_does_the_same_work_and_answers_the_same(project: Project) -> None:
    with opened(project, "HEAD", "HEAD", target=Target("env.py:make", {"size": "7"})) as (a, b):
        assert [a.turn(100).env_steps, b.turn(100).env_steps] == [100, 100]
        assert a.turn(100).ns > 0
        b.turn(100)
        assert a.counters() == b.counters()
        assert a.counters()["moves"] == a.counters()["env_steps"] == 2 * (100 + 10)
        assert a.counters()["resets"] == 1 + 220 // 10
        assert first_difference(a, b, 50) is None


REGISTERED = """
import gymnasium
from gymnasium.spaces import Box, Discrete
import env

class Mine(env.Env, gymnasium.Env):
    observation_space, action_space = Box(0, 9, ()), Discrete(3)

    def reset(self, *, seed=None, options=None):
        return super().reset(seed)

gymnasium.register("Mine-v0", lambda: Mine(5), disable_env_checker=True)
"""


def test_a_gym_id_that_the_project_registers_is_that_of_each_commit(project: Project) -> None:
    project.commit(mine=REGISTERED, env=ENV)
    project.commit(env=ENV.replace("float(action)", "float(action) if self.steps < 3 else -1.0"))
    with opened(project, target=Target("gym:mine:Mine-v0")) as (a, b):
        assert a.turn(10).env_steps == 10
        assert first_difference(a, b, 20) == "step 3: rewards differ"


STRICT = ENV.replace(
    '{"steps": self.steps}', '{"action_mask": [action == self.steps % 3 for action in range(3)]}'
).replace("return self.at, {}", 'return self.at, {"action_mask": [True, False, False]}')


def test_random_play_is_legal_at_a_commit_too(project: Project) -> None:
    refuses = "        if action != self.steps % 3: raise ValueError('illegal')\n        self.at = (self.at +"
    project.commit(env=STRICT.replace("        self.at = (self.at +", refuses))
    with opened(project, "HEAD", "HEAD") as (a, b):
        assert a.turn(50).env_steps == 50
        assert first_difference(a, b, 25) is None


ECOLOGY = (Path(__file__).parents[2] / "support" / "ecology.py").read_text()


def test_a_model_that_plays_itself_is_compared_at_two_commits(project: Project) -> None:
    project.commit(ecology=ECOLOGY)
    project.commit(ecology=ECOLOGY.replace("animal.energy > 0]", "animal.energy > -0.3]"))
    with opened(project, target=Target("ecology.py:World", {"seed": "3"})) as (a, b):
        assert a.turn(50).env_steps == 50
        assert a.counters()["resets"] > 1
        assert first_difference(a, a, 40) is None
        assert "infos.animals.energy" in str(first_difference(a, b, 40))


def test_an_answer_that_only_one_side_gives_is_a_difference(project: Project) -> None:
    project.commit(env=ENV.replace('{"steps": self.steps}', '{"steps": self.steps, "at": self.at}'))
    with opened(project, "HEAD~2") as (a, b):
        assert first_difference(a, b, 3) == "step 1: only B answers infos.at"
        assert first_difference(b, a, 3) == "step 1: only A answers infos.at"


def test_uncommitted_changes_are_in_no_side_and_that_is_said(project: Project) -> None:
    (project.root / "env.py").write_text("raise RuntimeError")
    said: list[str] = []
    with opened(project, say=said.append) as (a, _):
        assert a.turn(1).env_steps == 1
    assert said[0] == "uncommitted changes are in neither commit and are not measured"
    assert [line.split(" (")[0] for line in said[1:]] == ["building HEAD~1", "building HEAD"]


def test_a_clean_tree_is_not_called_changed(project: Project) -> None:
    said: list[str] = []
    with opened(project, say=said.append):
        pass
    assert len(said) == 2


@pytest.mark.parametrize("ref", ["nowhere", "--all", "HEAD~9", ""])
def test_a_ref_that_does_not_exist_is_named(project: Project, temporary: Path, ref: str) -> None:
    with pytest.raises(InputError, match=f"there is no commit '{ref}'") as caught, opened(project, b=ref):
        pass
    assert caught.value.exit_code == ExitCode.USAGE
    assert nothing_is_left(project, temporary)


def test_outside_a_repository_it_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match="is in no git repository"),
        open_refs(tmp_path, "a", "b", Target("env.py:make"), say=print),
    ):
        pass


def test_a_build_that_fails_shows_its_last_lines_and_leaves_nothing(
    project: Project, temporary: Path
) -> None:
    build = "for i in $(seq 20); do echo line $i; done; exit 3"
    with pytest.raises(InputError, match=r"HEAD~1 \(\w+\) does not build: .* ended with 3\n") as caught:
        opened(project, build=build).__enter__()
    lines = str(caught.value).splitlines()[1:]
    assert lines == [f"  line {i}" for i in range(6, 21)]
    assert caught.value.exit_code == ExitCode.USAGE
    assert nothing_is_left(project, temporary)


def test_a_module_of_the_project_is_found_before_one_of_ours_with_its_name(project: Project) -> None:
    project.commit(sides="SIZE = 2", env="import sides\n" + ENV.replace("% self.size", "% sides.SIZE"))
    with opened(project, "HEAD~2") as (a, b):
        assert "observations differ" in str(first_difference(a, b, 20))


def test_what_a_build_leaves_in_temporary_folders_goes_too(project: Project, temporary: Path) -> None:
    noted = temporary.parent / "noted"
    with opened(project, build=f"mktemp -d > {noted}"):
        assert Path(noted.read_text().strip()).is_relative_to(temporary)
    assert nothing_is_left(project, temporary)


def test_the_python_that_a_build_makes_is_the_one_that_runs(project: Project) -> None:
    wrapper = f'#!/bin/sh\\nMARKED=1 exec {sys.executable} "$@"\\n'
    build = f"mkdir -p .venv/bin && printf '{wrapper}' > .venv/bin/python && chmod +x .venv/bin/python"
    with opened(project, build=build) as (a, _):
        assert a.counters()["marked"] == 1
    with opened(project) as (a, _):
        assert a.counters()["marked"] == 0


def test_what_can_be_installed_is_installed_and_what_cannot_is_not(tmp_path: Path) -> None:
    assert commands(tmp_path, "make") == [["sh", "-c", "make"]]
    assert commands(tmp_path, None) == []
    (tmp_path / "pyproject.toml").touch()
    venv, pip = commands(tmp_path, None)
    assert venv[1:] == ["-m", "venv", ".venv"]
    assert pip[0] == str(tmp_path / ".venv/bin/python")
    assert pip[-1] == "."


def test_a_project_may_be_a_folder_of_its_repository(project: Project) -> None:
    for text in (ENV, ENV.replace("% self.size", "% 2")):
        project.commit(deep__env=text)
    usual = {"target": Target("env:make"), "build": "true", "say": lambda text: None}
    with open_refs(project.root / "deep", "HEAD~1", "HEAD", **usual) as (a, b):
        assert "observations differ" in str(first_difference(a, b, 20))
    with pytest.raises(InputError, match="has no folder deep"):
        open_refs(project.root / "deep", "HEAD~3", "HEAD", **usual).__enter__()


def test_a_module_of_the_working_tree_in_a_side_is_an_error(project: Project, temporary: Path) -> None:
    (project.root / "extra.py").touch()
    project.git("tag", "before")
    project.commit(env=f"import sys\nsys.path.insert(0, {str(project.root)!r})\nimport extra\n" + ENV)
    with pytest.raises(InputError, match=r"extra\.py was loaded, which is not the commit's"):
        opened(project, "before").__enter__()
    assert nothing_is_left(project, temporary)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """A test run in the background ignores SIGINT, and so would its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt(opening: Any, workers: list[subprocess.Popen[bytes]]) -> None:
    with opening as (a, b):
        workers += [a.worker.process, b.worker.process]
        raise KeyboardInterrupt


def test_ctrl_c_between_turns_leaves_nothing(project: Project, temporary: Path) -> None:
    workers: list[subprocess.Popen[bytes]] = []
    with pytest.raises(KeyboardInterrupt):
        interrupt(opened(project), workers)
    assert [worker.poll() is not None for worker in workers] == [True, True]
    assert nothing_is_left(project, temporary)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_in_a_build_ends_all_that_the_build_began(project: Project, temporary: Path) -> None:
    held = temporary.parent / "held"  # open for writing as long as anything of the build lives
    os.mkfifo(held)
    reader = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    build = f"exec 9> {held}; sleep 600 & kill -INT {os.getpid()}; wait"
    with pytest.raises(KeyboardInterrupt):
        opened(project, build=build).__enter__()
    assert nothing_is_left(project, temporary)
    assert select.select([reader], [], [], 60)[0] == [reader]
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_side_that_cannot_be_opened_is_named_with_what_it_said(project: Project, temporary: Path) -> None:
    project.commit(env=ENV.replace("return Env(size)", "raise ValueError('too small')"))
    with pytest.raises(InputError, match=r"^HEAD \(\w+\): ValueError: too small \(env.py:\d+\)$"):
        opened(project).__enter__()
    assert nothing_is_left(project, temporary)


def test_a_seed_must_be_a_number(project: Project) -> None:
    with pytest.raises(InputError, match="seed=many does not fit"):
        opened(project, target=Target("env.py:make", {"seed": "many"})).__enter__()


@pytest.mark.slow
def test_a_project_is_installed_with_pip_into_an_environment_of_its_own(project: Project) -> None:
    plain = "from setuptools import setup\nsetup(name='mine', version='{}', py_modules=['mine'])\n"
    for version in "12":
        project.commit(setup=plain.format(version), mine=ENV.replace("% self.size", f"% {version}"))
    with opened(project, target=Target("mine:make"), build=None) as (a, b):
        assert "observations differ" in str(first_difference(a, b, 20))
