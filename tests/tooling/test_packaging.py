"""The package as others get it: built from its source archive, installed where there is nothing of ours."""

import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from support.packages import STEP, Place, build_wheel

TOOLS = Path(sys.executable).parent

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def place(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("place"))
    place.install(*dist.glob("*.whl"))
    return place


def test_the_source_archive_holds_what_a_build_needs_and_nothing_made(dist: Path) -> None:
    with tarfile.open(*dist.glob("*.tar.gz")) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CMakeLists.txt", "LICENSE", "native/engine/batch.h", "src/hotloop/worlds/grid/grid.h"} <= names
    assert not [
        name for name in names if name.startswith((".", "build/", "artifacts/")) or name.endswith(".so")
    ]


def test_the_wheel_holds_the_modules_and_no_source_of_theirs(dist: Path) -> None:
    with zipfile.ZipFile(*dist.glob("*.whl")) as wheel:
        names = [name for name in wheel.namelist() if "_template/" not in name]
    modules = [name for name in names if name.startswith(("hotloop/_native.", "hotloop/core/_spans."))]
    assert sorted(name.rpartition(".")[2] for name in modules) == ["pyi", "pyi", "so", "so"]
    sources = [name for name in names if name.endswith((".h", ".cpp", ".cu"))]
    assert sources == ["hotloop/include/hotloop/phases.h"]  # what others' engines include
    stubs = {"hotloop/_native.pyi", "hotloop/core/_spans.pyi", "hotloop/train/_kernels.pyi"}
    assert {"hotloop/py.typed", *stubs} <= {*names}


def test_the_wheel_works_in_an_empty_environment(place: Place) -> None:
    assert place.run("python", "-I", "-c", STEP.format(impl="native")).startswith("native 2 0\n")
    assert "bench" in place.run("hotloop", "--help")


def test_without_native_modules_the_twin_works_and_says_so(place: Place, tmp_path: Path) -> None:
    build_wheel(tmp_path, HOTLOOP_NO_NATIVE="1")
    (wheel,) = tmp_path.glob("*-py3-none-any.whl")
    place.install(wheel, "--no-deps")
    ran, notice = place.run("python", "-I", "-c", STEP.format(impl="auto")).splitlines()
    assert ran == "reference 0 2"
    assert "reference" in notice


def test_without_a_compiler_the_package_builds_and_says_so(tmp_path: Path) -> None:
    assert "No C++ compiler found" in build_wheel(tmp_path, PATH=str(TOOLS))
