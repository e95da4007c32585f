"""The rules of every world are device code too; these need nvcc, and no GPU."""

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from hotloop.core import registry

ROOT = Path(__file__).parents[2]
NVCC = shutil.which("nvcc")

needs_nvcc = pytest.mark.skipif(NVCC is None, reason="no nvcc")


@pytest.fixture
def device() -> ModuleType:
    """The program of the stage."""
    spec = importlib.util.spec_from_file_location("device", ROOT / "tools/device.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiles(device: ModuleType, folder: Path) -> tuple[bool, str]:
    fine, said = device.compiled(NVCC, device.TEMPLATE, folder)
    return bool(fine), str(said)


def test_every_world_is_compiled(device: ModuleType) -> None:
    assert sorted(device.worlds()) == sorted(registry.worlds())


@needs_nvcc
def test_a_new_world_is_device_code(device: ModuleType, tmp_path: Path) -> None:
    device.fill_template(tmp_path)
    assert compiles(device, tmp_path) == (True, "")


@needs_nvcc
@pytest.mark.parametrize(
    "planted", ["std::vector<int> planted(3); (void)planted;", "(void)host_ticks();", "(void)std::rand();"]
)
def test_a_rule_that_calls_the_host_is_refused(device: ModuleType, tmp_path: Path, planted: str) -> None:
    device.fill_template(tmp_path)
    header = tmp_path / device.TEMPLATE / f"{device.TEMPLATE}.h"
    rule = "HL_FN void rewards(const Slot& slot) {\n"
    text = header.read_text()
    assert rule in text
    header.write_text(text.replace(rule, rule + planted))
    fine, said = compiles(device, tmp_path)
    assert not fine
    assert "__host__" in said


def test_without_nvcc_it_is_said_that_nothing_was_compiled(
    device: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device.shutil, "which", lambda name: None)
    assert device.main() == 0
    assert "SKIPPED: no nvcc" in capsys.readouterr().out


def included(header: Path) -> list[str]:
    lines = header.read_text().splitlines()
    return [line.split('"')[1] for line in lines if line.startswith('#include "')]


def test_rules_include_nothing_of_the_engine_but_its_rules() -> None:
    for_the_host = {"vector.h"}
    headers = [
        header
        for name in registry.worlds()
        for header in (ROOT / "src/hotloop/worlds" / name).glob("*.h")
        if header.name not in for_the_host
    ]
    found = {file for header in headers for file in included(header) if file.startswith("engine/")}
    assert found == {"engine/rules.h"}


def test_no_scheduler_thread_or_clock_comes_with_the_rules() -> None:
    reached, left = set(), ["engine/rules.h"]
    while left:
        file = left.pop()
        if file not in reached:
            reached.add(file)
            left += included(ROOT / "native" / file)
    text = "".join((ROOT / "native" / file).read_text() for file in reached)
    for header in ("thread", "atomic", "mutex", "chrono", "functional", "immintrin.h"):
        assert f"#include <{header}>" not in text
    assert reached.isdisjoint({f"engine/{name}.h" for name in ("pool", "batch", "clock", "processor")})
