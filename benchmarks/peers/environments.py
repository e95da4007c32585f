"""An environment of its own for each peer, made once under `.envs/` from the registry pip is set up for."""

import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

PEERS = Path(__file__).resolve().parent
ENVIRONMENTS = PEERS / ".envs"
METTAGRID = "0.26.22"
PUFFERLIB = "3.0.0"

# The package's own release flags. Warnings are its authors' concern, not this benchmark's.
SNAKE_FLAGS = [
    "-O2",
    "-flto",
    "-fwrapv",
    "-w",
    "-DNPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION",
    "-DPLATFORM_DESKTOP",
]


class SetupFailure(Exception):
    """A peer's environment could not be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A place with a Python of its own, complete once its marker file exists."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    def run(self, *words: str, **variables: str) -> str:
        """Run this environment's Python and give what it printed."""
        return _run([str(self.python), *words], variables)


def mettagrid() -> Environment:
    """Make, or find, the environment with MettaGrid's wheel in it."""
    return _made_once(f"mettagrid-{METTAGRID}", _install_mettagrid)


def snake() -> Environment:
    """Make, or find, the environment with PufferLib's snake compiled in it as the module `binding`."""
    return _made_once(f"snake-{PUFFERLIB}", _build_snake)


def _made_once(name: str, fill: Callable[[Environment], None]) -> Environment:
    environment = Environment(folder=ENVIRONMENTS / name)
    marker = environment.folder / "complete"
    if marker.exists():
        return environment
    print(f"making {environment.folder} (once)", file=sys.stderr, flush=True)
    shutil.rmtree(environment.folder, ignore_errors=True)
    _run([sys.executable, "-m", "venv", str(environment.folder / "venv")], {})
    fill(environment)
    marker.touch()
    return environment


def _install_mettagrid(environment: Environment) -> None:
    environment.run("-m", "pip", "install", f"mettagrid=={METTAGRID}")


def _build_snake(environment: Environment) -> None:
    environment.run("-m", "pip", "install", "numpy")
    source = _snake_source(environment)
    raylib = next(source.glob("raylib-*_linux_*"))
    query = "import sysconfig, numpy; print(sysconfig.get_paths()['include'], numpy.get_include())"
    includes = [f"-I{path}" for path in [*environment.run("-c", query).split(), raylib / "include"]]
    purelib = environment.run("-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip()
    binding = source / "pufferlib" / "ocean" / "snake" / "binding.c"
    compiler = os.environ.get("CC", "gcc")
    command = [
        compiler,
        "-shared",
        "-fPIC",
        *SNAKE_FLAGS,
        *includes,
        str(binding),
        "-o",
        f"{purelib}/binding.so",
    ]
    _run([*command, str(raylib / "lib" / "libraylib.a")], {})


def _snake_source(environment: Environment) -> Path:
    """Download and unpack PufferLib's source distribution without running any of it."""
    backend = environment.folder / "backend" / "setuptools"
    backend.mkdir(parents=True)
    (backend / "__init__.py").touch()
    shutil.copy(PEERS / "metadata_only.py", backend / "build_meta.py")
    words = ["-m", "pip", "download", "--no-deps", "--no-build-isolation", "--no-binary", "pufferlib"]
    folder = environment.folder / "source"
    environment.run(
        *[*words, "-d", str(folder), f"pufferlib=={PUFFERLIB}"],
        PYTHONPATH=str(backend.parent),
        NAME="pufferlib",
        VERSION=PUFFERLIB,
    )
    with tarfile.open(folder / f"pufferlib-{PUFFERLIB}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / f"pufferlib-{PUFFERLIB}"


def _run(command: list[str], variables: Mapping[str, str]) -> str:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            command, env=clean | dict(variables), capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise SetupFailure(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        last_line = done.stderr.strip().rpartition("\n")[2]
        raise SetupFailure(f"{Path(command[0]).name} ended with {done.returncode}: {last_line}")
    return done.stdout
