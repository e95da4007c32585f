"""The doors that import-linter cannot watch, which sees no compiled modules; and that it watches the rest."""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"

DOORS = {
    "hotloop._native": "hotloop/envs/",
    "hotloop._cuda": "hotloop/envs/",
    "hotloop.core._spans": "hotloop/core/",
    "hotloop.train._kernels": "hotloop/train/",
    "hotloop.train._device_kernels": "hotloop/train/",
}
"""Each compiled module, and the folder that alone may import it."""

LAYERS = "A module imports only from the layers below its own"
READERS = "Judge and report read records and run nothing"
TORCH = "Torch is imported only in train and in probes.torch"
WORKERS = "Workers are programs: nothing imports them"

LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"


def imported(text: str) -> Iterator[str]:
    """Yield the full name of everything a module imports, wherever it does so."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (str(given.value) for given in node.args if isinstance(given, ast.Constant))


def test_imports_are_seen_in_every_form() -> None:
    forms = [
        "import hotloop._native as n",
        "from hotloop import _native",
        "def f():\n  from hotloop._native import x",
        "importlib.import_module('hotloop._native')",
    ]
    assert all("hotloop._native" in imported(form) for form in forms)


@pytest.mark.parametrize("module", DOORS)
def test_a_compiled_module_is_imported_only_by_its_door(module: str) -> None:
    importers = (path for path in SOURCE.rglob("*.py") if module in imported(path.read_text("utf-8")))
    names = [path.relative_to(SOURCE).as_posix() for path in importers]
    assert [name for name in names if not name.startswith(DOORS[module])] == []


def broken_contracts(source: Path) -> set[str]:
    """What import-linter finds broken in a copy; without `site`, which would lead it to what is installed."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", LINT],
        cwd=source.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(source), *sys.path])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Contracts:" in done.stdout, done.stdout + done.stderr
    return set(re.findall(r"^(.*) BROKEN", done.stdout, re.MULTILINE))


@pytest.mark.parametrize(
    ("place", "planted", "broken"),
    [
        ("report/section.py", "import hotloop.lab.bench", {READERS}),
        ("judge/judge.py", "import hotloop.envs.batch", {READERS, LAYERS}),
        ("lab/bench.py", "import torch", {TORCH}),
        ("lab/bench.py", "import hotloop.lab.workers.worker", {WORKERS}),
    ],
)
def test_a_planted_import_breaks_its_contract(
    tmp_path: Path, place: str, planted: str, broken: set[str]
) -> None:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(SOURCE, tmp_path / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    with (tmp_path / "src/hotloop" / place).open("a", encoding="utf-8") as module:
        module.write(f"\n{planted}\n")
    assert broken_contracts(tmp_path / "src") == broken
