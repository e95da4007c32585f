"""The C header for engines of anybody's: it compiles, it measures, and its marks are cheap."""

import ctypes
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.profiles import profile

import hotloop
from hotloop.core.record.profile import WALL
from hotloop.core.settings import Target

SOURCE = Path(__file__).parents[2] / "support" / "engine.c"

EXAMPLES = Path(__file__).parents[3] / "examples"

COMPILER = shutil.which("gcc") or shutil.which("cc") or shutil.which("clang")

MARKS = 20_000

MOST_NS = 25.0
"""Of a mark."""

pytestmark = pytest.mark.skipif(COMPILER is None, reason="THE C HEADER IS NOT TESTED HERE: no C compiler")

Build = Callable[..., Any]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    folder = tmp_path_factory.mktemp("engine")

    def built(*flags: str) -> Any:
        library = folder / f"engine{len(list(folder.iterdir()))}.so"
        strict = ("-std=c99", "-D_POSIX_C_SOURCE=199309L", "-Wall", "-Wextra", "-Werror", "-pedantic")
        command = [str(COMPILER), "-O2", "-shared", "-fPIC", *strict, f"-I{hotloop.include_dir()}", *flags]
        subprocess.run([*command, str(SOURCE), "-o", str(library)], check=True)
        engine = ctypes.CDLL(str(library))
        engine.engine_step.restype = ctypes.c_double
        engine.engine_ns.restype = engine.engine_marks.restype = ctypes.c_uint64
        return engine

    return built


class Env:
    """What a stranger writes around an engine."""

    num_actions = 2

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        engine.engine_init(1)

    def reset(self) -> float:
        return 0.0

    def step(self, action: Any) -> Any:
        return self.engine.engine_step(2_000), 0.0, False, {}

    def phase_totals(self) -> dict[str, int]:
        return {name: self.engine.engine_ns(at) for at, name in enumerate(("count", "sum", "step"))}


def test_the_tree_of_an_engine_adds_up(build: Build) -> None:
    record = hotloop.profile(lambda: Env(build()), steps=100)
    told = {phase.path: phase.total_ns for phase in record.phases}
    whole = told[f"{WALL}/env.step/its own step"]
    parts = [told[f"{WALL}/env.step/its own step/{name}"] for name in ("count", "sum")]
    assert 0.5 * whole < sum(parts) <= whole * 1.01
    assert whole <= told[f"{WALL}/env.step"] * 1.05
    usual = {phase.path: phase.p50_ns or 0 for phase in record.phases}
    counting, adding = (usual[f"{WALL}/env.step/its own step/{name}"] for name in ("count", "sum"))
    assert adding > counting


def test_a_mark_costs_little_and_nothing_where_it_is_off(build: Build) -> None:
    engine, without = build(), build("-DHOTLOOP_PHASES_OFF")

    def cheapest_ns(of: Any, *, on: int) -> float:
        of.engine_init(on)
        return float(min(of.engine_marks(MARKS) for _ in range(40))) / MARKS

    assert cheapest_ns(engine, on=1) <= MOST_NS
    assert cheapest_ns(engine, on=0) <= 2.0
    assert cheapest_ns(without, on=1) <= 2.0
    without.engine_step(10)
    assert without.engine_ns(0) == 0


def test_it_is_cpp_too(tmp_path: Path) -> None:
    source = tmp_path / "engine.cpp"
    source.write_text(f'extern "C" {{\n#include "{SOURCE}"\n}}\n')
    command = [str(COMPILER), "-x", "c++", "-std=c++11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    subprocess.run([*command, f"-I{hotloop.include_dir()}", str(source)], check=True)


@pytest.mark.long
def test_the_tree_of_the_pybind11_engine_of_the_examples_adds_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pybind11 = pytest.importorskip(
        "pybind11", reason="THE PYBIND11 EXAMPLE IS NOT TESTED HERE: pip install pybind11"
    )
    includes = [f"-I{each}" for each in (pybind11.get_include(), sysconfig.get_path("include"))]
    command = [str(COMPILER), "-x", "c++", "-O2", "-shared", "-fPIC", "-std=c++17", *includes]
    built = tmp_path / "engine.so"
    subprocess.run(
        [*command, f"-I{hotloop.include_dir()}", str(EXAMPLES / "engine.cpp"), "-lstdc++", "-o", str(built)],
        check=True,
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    record = profile(Target(f"{EXAMPLES}/engine_env.py:make", {"bodies": 20_000}), steps=200)
    told = {phase.path.rpartition("/")[2]: phase.total_ns for phase in record.phases}
    parts = [told[name] for name in ("move", "observe", "reward")]
    assert 0.9 * told["its own step"] < sum(parts) <= 1.01 * told["its own step"]
    assert record.path.ran == {"native": 1.0}
    sys.modules.pop("engine", None)
