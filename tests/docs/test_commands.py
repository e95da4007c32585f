"""Every command and every Python block of README and docs is run as it stands, in an empty folder.

A block's first word is its language. ```bash is run, line by line; ```python is executed, the blocks of a
page one after another; ```toml NAME and ```text NAME are first written to a file of that name. ```bash notest
is not run, and UNTESTED says why. What is for Hotloop alone does not wait for a shell and an interpreter.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.boxes import shorten
from support.forked import Commands
from support.pages import PAGES, ROOT, Block, blocks, name_of

from hotloop.core.errors import ExitCode
from hotloop.envs import native

UNTESTED = {
    "git clone": "needs a network, and the address of the repository",
    "pip install": "needs a network; tests/tooling/test_packaging.py installs the package",
    "hotloop bench my_env.py:make  ": "the file is the reader's; tests/docs/test_readme.py has one",
    "hotloop profile my_env.py:make  ": "the file is the reader's; tests/docs/test_readme.py has one",
    "hotloop validate my_env.py:fast": "the file is the reader's; tests/docs/test_readme.py has one",
    "hotloop profile grid/toy": "stands beside one that is run",
    "./hotloop worlds": "sets up a fresh clone there; tests/tooling/test_setup.py does",
    "./hotloop bench orchard": "builds a world first; tests/cli/test_new.py does, and tests it",
    "./hotloop bench grid/toy --instructions": "needs valgrind; tests/lab/test_instructions.py counts",
    "./hotloop compare grid/toy --a-ref": "builds this repository twice; tests/cli has its own project",
    "./hotloop profile --pid": "needs a process to look at; tests/probes/test_pyspy.py starts one",
    "./hotloop top --pid": "needs a process and a terminal; tests/cli/test_probes.py says what it does",
    "./check": "runs this test",
    "hotloop gate": "needs a repository of its own; tests/cli/commands/test_gate.py and tests/lab/gate have",
    "pip install --no-build-isolation": "builds for a GPU",
    "hotloop validate grid/toy 200 --seeds 4 --on ray": "needs Ray; tests/lab/test_on_ray.py starts one",
    "hotloop train my_env.py:make num_envs=8 train.collect=ray": "needs Ray; see test_actors.py",
    "./.venv/bin/python benchmarks/plan.py": "reads results that other benchmarks left",
    "hotloop train prospector run=wide train.ranks=4 --on": "needs a cluster; lab/training/test_others.py",
    "torchrun --nnodes 4": "needs four machines; tests/lab/training/test_ranks.py has two ranks",
    "hotloop doctor": "stands beside what needs a GPU",
    "hotloop bench prospector device=cuda": "needs a GPU; tests/envs/test_cuda.py runs it where one is",
    "hotloop validate prospector --against cuda": "needs a GPU",
    "hotloop train prospector device=cuda": "needs a GPU; tests/train/test_device.py trains where one is",
    "hotloop sim duel.py:make": "the game is of tests/zoo; test_two_players.py plays it",
    "hotloop profile duel.py:make": "the game is of tests/zoo; test_two_players.py profiles it",
    "hotloop validate mining.py:many": "the core is of tests/zoo; test_sb3.py builds it and goes that way",
    "hotloop bench --mode env_only": "needs Stable-Baselines3; test_sb3.py runs it",
    "hotloop tune --metric": "takes minutes; test_sb3.py runs it",
    "hotloop train mining.py:many": "the core is of tests/zoo; test_sb3.py trains on it",
    "hotloop scale ecology.py:": "minutes; test_ecology.py goes that way",
    'hotloop compare "ecology.py:make': "the model is of tests/zoo; test_ecology.py goes that way",
    "hotloop profile ecology.py:make": "the model is of tests/zoo; test_ecology.py goes that way",
    'hotloop compare "duel.py:make': "needs a commit of the game; test_two_players.py makes one",
    "python ppo.py": "the script is of tests/zoo; test_teacher_and_ppo.py runs it",
    "hotloop diagnose": "needs the record of that script; test_teacher_and_ppo.py diagnoses it",
    "mv .design before": "keeps that record",
    "hotloop bench my_env.py:make --baseline": "the file is the reader's; see test_grid_engines.py",
    "hotloop bench my_env.py:make --since": "needs a repository; tests/cli/commands/test_bench.py has one",
    "hotloop compare my_env.py:make": "the file is the reader's; tests/docs/test_tutorial.py goes that way",
    "hotloop profile grid.py:Grid": "the engine is of tests/zoo; test_grid_engines.py profiles it",
    'hotloop compare "grid.py:Grid': "the engine is of tests/zoo; test_grid_engines.py compares it",
    'hotloop compare -- "python train.py --encoder': "its training is; test_grid_engines.py compares it",
    "python train.py --shadow": "its training is; test_grid_engines.py shadows it",
    "hotloop bench grid.py:Grid": "needs a commit of the engine; test_grid_engines.py makes one",
    "hotloop report --accept": "names a run of an example; tests/cli/commands/test_report.py has its own",
    "hotloop report --serve": "does not end by itself; tests/report/page/test_serve.py serves",
    "./.venv/bin/python benchmarks/": "takes minutes, and a quiet machine",
    "./.venv/bin/python tools/figures.py": "changes the docs; test_figures.py runs it elsewhere",
    "./.venv/bin/python tests/worlds/record_golden.py": "the world it names is an example",
}
"""Beginnings of commands that no test here runs, and why."""

VERDICTS = {ExitCode.FINE, ExitCode.UNSTABLE, ExitCode.CANNOT_TELL}
"""What a command may say on a machine that is busy with tests."""

SHELL = re.compile(r"[$`|&;<>*?~(){}!]")
"""What takes a shell to run."""

every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@pytest.fixture
def folder(tmp_path: Path, page: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with our script, what `hotloop new` takes for a checkout, and the files a page writes out."""
    for made in ("src/hotloop/worlds", "native/engine"):
        (tmp_path / made).mkdir(parents=True)
    (tmp_path / "CMakeLists.txt").touch()
    for there in ("hotloop", "examples"):
        (tmp_path / there).symlink_to(ROOT / there)
    for block in blocks(page):
        if block.language in ("toml", "text") and block.word:
            (tmp_path / block.word).write_text(block.text)
    for variable in [name for name in os.environ if name.startswith("HOTLOOP_OBS")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    shorten(monkeypatch)
    return tmp_path


def untested(page: Path) -> Iterator[str]:
    for block in blocks(page):
        if block.word == "notest":
            yield from block.commands


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    with Commands(tmp_path_factory.mktemp("said")) as commands:
        yield commands


def run_command(command: str, commands: Commands) -> None:
    program, *words = shlex.split(command, comments=True)
    if program in ("./hotloop", "hotloop") and not SHELL.search(command):
        done = commands.run(words)
    else:
        here = command.replace("./.venv/bin/python", sys.executable)
        done = subprocess.run(["bash", "-c", here], capture_output=True, text=True, check=False)
    assert done.returncode in VERDICTS, f"{command}\n{done.stdout}{done.stderr}"
    assert "Traceback" not in done.stderr


def test_a_commands_words_and_exit_code_come_back(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = commands.run(["bench", "grid/toy", "--nope"])
    assert (refused.returncode, refused.stdout) == (ExitCode.USAGE, "")
    assert "--nope" in refused.stderr
    assert "grid/toy" in commands.run(["worlds"]).stdout


def run_python(block: Block, namespace: dict[str, object]) -> None:
    exec(compile(block.text, block.text.strip().partition("\n")[0], "exec"), namespace)


@pytest.mark.slow
@every_page
@pytest.mark.usefixtures("folder")
def test_every_command_does_what_it_should_and_python_finds_what_it_left(
    page: Path, commands: Commands
) -> None:
    namespace: dict[str, object] = {}
    for block in blocks(page):
        if block.language == "python":
            run_python(block, namespace)
        for command in block.commands if block.language == "bash" and not block.word else ():
            run_command(command, commands)


@pytest.mark.skipif(native.why_not("grid") is not None, reason="the native module is not built")
@every_page
def test_every_python_block_runs_by_itself(page: Path, folder: Path) -> None:
    namespace: dict[str, object] = {}
    for block in blocks(page):
        if block.language == "python":
            run_python(block, namespace)


@every_page
def test_a_command_that_is_not_run_has_its_reason(page: Path) -> None:
    for command in untested(page):
        assert command.startswith(tuple(UNTESTED)), command


def test_every_reason_is_still_needed() -> None:
    left_out = [command for page in PAGES for command in untested(page)]
    for beginning in UNTESTED:
        assert any(command.startswith(beginning) for command in left_out), beginning


@every_page
def test_every_block_is_of_a_kind_that_is_looked_at(page: Path) -> None:
    for block in blocks(page):
        assert block.language in ("bash", "python", "toml", "text"), block
        assert block.language != "bash" or block.word in ("", "notest")
