import subprocess
import sys

import pytest

import hotloop

SCRIPT = """
import importlib, pkgutil, sys
import {package} as package
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(module.name)
sys.exit(", ".join(name for name in ("numpy", "psutil", "torch", "typer", "rich") if name in sys.modules))
"""


@pytest.mark.parametrize("package", ["hotloop.core", "hotloop.stats"])
def test_importing_all_of_it_brings_in_no_other_library(package):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(package=package)], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ""


@pytest.mark.parametrize(
    "first", ["import hotloop; hotloop.spans.enable()", "from hotloop import spans; spans.enable()"]
)
def test_spans_are_there_when_they_are_touched_first(first):
    subprocess.run([sys.executable, "-c", first], check=True)


@pytest.mark.parametrize("name", hotloop.__all__)
def test_a_name_is_imported_once_and_then_costs_a_look(name):
    first = getattr(hotloop, name)
    assert vars(hotloop)[name] is first
