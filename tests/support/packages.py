"""The package as others get it: built, and installed in environments that have nothing of ours."""

import os
import sys
import venv
from pathlib import Path
from subprocess import PIPE, STDOUT, run

ROOT = Path(__file__).parents[2]

STEP = """
import numpy, hotloop
batch = hotloop.make("grid/toy", num_envs=2, impl="{impl}")
batch.reset()
batch.step(numpy.zeros((2, batch.spec.agents), numpy.int32))
print(batch.spec.impl, batch.counters["native_steps"], batch.counters["reference_steps"])
print(*(notice.text for notice in batch.spec.notices))
"""
"""A program that steps a world and says what ran."""


def build(dist: Path, *options: str, **env: str) -> str:
    """Build into `dist`, by default the source archive and from it the wheel; return what was printed."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", dist, *options, ROOT]
    done = run(command, env=os.environ | env, stdout=PIPE, stderr=STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def build_wheel(dist: Path, **env: str) -> str:
    """Build the wheel from the checkout, without touching the checkout's own build folder."""
    return build(dist, "--wheel", f"-Cbuild-dir={dist}/build", **env)


class Place:
    """An environment with the package's dependencies and, at first, not the package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        venv.create(folder, with_pip=True)

    def install(self, wheel: Path | str, *options: str) -> None:
        constraints = ROOT / "constraints.txt"
        self.run("python", "-m", "pip", "install", "--force-reinstall", "-c", constraints, *options, wheel)

    def run(self, name: str, *words: str | Path, fine: tuple[int, ...] = (0,), **env: str) -> str:
        """Run a program of the environment in its folder; `fine` are the exit codes that will do."""
        command = [self.folder / "bin" / name, *words]
        given = {"cwd": self.folder, "env": os.environ | env}
        done = run(command, capture_output=True, text=True, check=False, **given)
        assert done.returncode in fine, done.stdout + done.stderr
        return done.stdout
