"""Runs the checks of `./check`: one line a stage, the whole output of a stage only when it fails."""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, run

ROOT = Path(__file__).parent.parent
USAGE = "usage: ./check [fast | fix | cuda | hostile | boundary | long | gate | package | aarch64 | STAGE...]"
USAGE_ERROR = 64
INTERRUPTED = 130

CPP_FOLDERS = ("native", "src/hotloop/worlds")
CPP_SUFFIXES = (".h", ".cpp", ".cu", ".cuh")
NATIVE_STAGES = ("native", "asan", "tsan", "device")
NATIVE_FOLDERS = ("native", "src/hotloop/worlds", "src/hotloop/include")
NATIVE_FILES = ("CMakeLists.txt", "CMakePresets.json", "tools/device.py", "tools/check.py")
PASSED = ROOT / "build" / "passed"  # Of each native stage: the fingerprint of what it last succeeded with

SHELL_SCRIPTS = ("hotloop", "check", ".ci/run", "tools/setup.sh")

Command = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A named group of commands that must all succeed."""

    name: str
    commands: tuple[Command, ...]
    slow: bool = False
    """Left out by `./check fast`."""
    show_last_line: bool = False
    """Repeat the last line of the output, which sums it up."""
    show_all: bool = False
    """Repeat all of it."""


def cpp_files() -> tuple[str, ...]:
    files = (path for folder in CPP_FOLDERS for path in (ROOT / folder).rglob("*"))
    return tuple(sorted(str(path.relative_to(ROOT)) for path in files if path.suffix in CPP_SUFFIXES))


def native_fingerprint() -> str:
    """Return a hash of everything that the native stages compile, and of what compiles it."""
    found = hashlib.sha256()
    paths = [path for folder in NATIVE_FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths += [ROOT / name for name in NATIVE_FILES]
    for path in sorted(path for path in paths if path.suffix != ".pyc"):
        found.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    for name in ("CXX", "CXXFLAGS", "LDFLAGS"):
        found.update(f"{name}={os.environ.get(name, '')}\n".encode())
    for compiler in (os.environ.get("CXX", "c++"), "nvcc"):
        if shutil.which(compiler):
            found.update(run([compiler, "--version"], stdout=PIPE, stderr=STDOUT, check=False).stdout)
    return found.hexdigest()


def environment() -> dict[str, str]:
    """Return the environment of a command, in which the tools of .venv come first."""
    tools = Path(sys.executable).parent
    return {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}


def python(*words: str) -> Command:
    return (sys.executable, *words)


BYTECODE = python("-m", "compileall", "-q", "src")
"""Tests start Python hundreds of times; where the environment keeps no bytecode, each compiles all of us."""


def native_tests(preset: str) -> tuple[Command, ...]:
    return (
        ("cmake", "--preset", preset),
        ("cmake", "--build", "--preset", preset),
        ("ctest", "--preset", preset),
    )


def all_stages(*, fast: bool) -> tuple[Stage, ...]:
    # Files are the unit: what a file sets up once is then set up once.
    tests = (
        "-m",
        "pytest",
        "-n",
        "auto",
        "--dist",
        "loadfile",
        *(("-m", "not slow and not hostile and not long") if fast else ()),
    )
    return (
        Stage(
            name="format",
            commands=(("ruff", "format", "--check"), ("clang-format", "--dry-run", "-Werror", *cpp_files())),
        ),
        Stage(
            name="lint",
            commands=(("ruff", "check", "--output-format", "concise"), ("shellcheck", "-x", *SHELL_SCRIPTS)),
        ),
        Stage(name="types", commands=(python("-m", "mypy"),)),
        Stage(name="layers", commands=(("lint-imports",),)),
        Stage(name="sizes", commands=(python("tools/sizes.py"),)),
        Stage(name="prose", commands=(python("tools/prose.py"),)),
        Stage(name="native", commands=native_tests("release")),
        Stage(name="asan", commands=native_tests("asan"), slow=True),
        Stage(name="tsan", commands=native_tests("tsan"), slow=True),
        Stage(name="device", commands=(python("tools/device.py"),), show_last_line=True),
        Stage(name="docs", commands=(python("tools/website.py"),), show_last_line=True),
        Stage(name="browser", commands=(python("tools/browser.py"),), show_last_line=True),
        Stage(name="tests", commands=(BYTECODE, python(*tests)), show_last_line=True),
    )


def fix_stages() -> tuple[Stage, ...]:
    commands = (("ruff", "check", "--fix"), ("ruff", "format"), ("clang-format", "-i", *cpp_files()))
    return (Stage(name="fix", commands=commands),)


def boundary_stages() -> tuple[Stage, ...]:
    """The tests of the native module, with one that stops at the first access out of bounds."""
    tests = (f"tests/hostile/test_{name}.py" for name in ("boundary", "kernels", "native", "forged"))
    commands = (
        ("cmake", "--preset", "boundary", f"-DPython_EXECUTABLE={sys.executable}"),
        ("cmake", "--build", "--preset", "boundary"),
        python("tools/boundary.py", "build/boundary", *tests),
    )
    return (Stage(name="boundary", commands=commands, show_last_line=True),)


def hostile_stages() -> tuple[Stage, ...]:
    """All of the attacks that the tests draw a sample of."""
    tests = ("-m", "pytest", "-n", "auto", "--dist", "load", "-m", "hostile", "tests/hostile")
    return (*boundary_stages(), Stage(name="hostile", commands=(python(*tests),), show_last_line=True))


def long_stages() -> tuple[Stage, ...]:
    """Proofs that take minutes: the same claims as in the tests, over much more."""
    tests = ("-m", "pytest", "-n", "auto", "--dist", "load", "-m", "long")
    return (Stage(name="long", commands=(python(*tests),), show_last_line=True),)


def gate_stages() -> tuple[Stage, ...]:
    """The budgets of hotloop.toml, against the branch that others are merged into; the gate itself first."""
    gate = python("-c", "import sys; from hotloop.cli.main import main; sys.exit(main())", "gate")
    return (
        Stage(name="itself", commands=((*gate, "--self-test"),), show_all=True),
        Stage(name="gate", commands=(gate,), show_all=True),
    )


def package_stages() -> tuple[Stage, ...]:
    """The package as others get it: built, repaired, installed by itself, used."""
    tests = (
        "-m",
        "pytest",
        "-m",
        "slow or long",
        "tests/tooling/test_packaging.py",
        "tests/tooling/test_wheel.py",
    )
    return (Stage(name="package", commands=(python(*tests),), show_last_line=True),)


def aarch64_stages() -> tuple[Stage, ...]:
    """The native tests for ARM: needs Debian's g++-aarch64-linux-gnu and qemu-user, or their like."""
    return (Stage(name="aarch64", commands=native_tests("aarch64"), show_last_line=True),)


ALONE = {
    "fix": fix_stages,
    "hostile": hostile_stages,
    "boundary": boundary_stages,
    "long": long_stages,
    "gate": gate_stages,
    "package": package_stages,
    "aarch64": aarch64_stages,
}
"""What is run only when it is asked for, and by itself."""


def choose(words: Sequence[str]) -> tuple[Stage, ...]:
    """Return the stages that the command line asks for."""
    match words:
        case []:
            return all_stages(fast=False)
        case ["fast"]:
            return tuple(stage for stage in all_stages(fast=True) if not stage.slow)
        case [word] if word in ALONE:
            return ALONE[word]()
    stages = {stage.name: stage for stage in all_stages(fast=False)}
    unknown = [word for word in words if word not in stages]
    if unknown:
        print(f"check: no stage {unknown[0]!r}; there are {', '.join(stages)}\n{USAGE}", file=sys.stderr)
        raise SystemExit(USAGE_ERROR)
    return tuple(stages[word] for word in words)


def run_commands(stage: Stage) -> tuple[bool, str]:
    """Run a stage up to its first failing command; return whether all succeeded, and what they printed."""
    env, output = environment(), ""
    for command in stage.commands:
        done = run(
            command, cwd=ROOT, env=env, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, text=True, check=False
        )
        output += done.stdout
        if done.returncode != 0:
            return False, f"{output}[exit {done.returncode}] {' '.join(command[:6])}\n"
    return True, output


def run_stage(stage: Stage) -> bool:
    """Run one stage and print its line, and its output where it failed."""
    print(f"{stage.name:<8}", end="", flush=True)
    began = time.perf_counter()
    succeeded, output = run_commands(stage)
    print(f" {'ok' if succeeded else 'FAILED':<8}{time.perf_counter() - began:6.1f} s", flush=True)
    if stage.show_all or not succeeded:
        print(output, flush=True)
    elif stage.show_last_line:
        print(output.rstrip().rpartition("\n")[2], flush=True)
    return succeeded


def run_stages(stages: Sequence[Stage], *, skip: bool) -> list[str]:
    """Run the stages and return the names of those that failed.

    With `skip`, a native stage is left out if it succeeded here with the same sources, flags and compiler.
    """
    now, failed = native_fingerprint(), []
    for stage in stages:
        passed = PASSED / stage.name
        if skip and stage.name in NATIVE_STAGES and passed.exists() and passed.read_text("utf-8") == now:
            print(f"{stage.name:<8} ok      as in an earlier run of the same code", flush=True)
        elif not run_stage(stage):
            failed.append(stage.name)
            passed.unlink(missing_ok=True)
        elif stage.name in NATIVE_STAGES:
            PASSED.mkdir(parents=True, exist_ok=True)
            passed.write_text(now, "utf-8")
    return failed


def main(words: Sequence[str]) -> int:
    stages = choose(words)
    try:
        failed = run_stages(stages, skip=words in ([], ["fast"]))
    except KeyboardInterrupt:
        print("\ncheck: interrupted", file=sys.stderr)
        return INTERRUPTED
    if failed:
        print(f"check: {', '.join(failed)} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
