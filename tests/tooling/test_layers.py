"""The doors that import-linter cannot watch: it sees no compiled modules."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"

DOORS = {
    "hotloop._native": "hotloop/envs/",
    "hotloop._cuda": "hotloop/envs/",
    "hotloop.core._spans": "hotloop/core/",
}
"""Each compiled module, and the folder that alone may import it."""


def imported(text: str) -> Iterator[str]:
    """Yield the full name of everything a module imports, wherever it does so."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_are_seen_in_every_form() -> None:
    forms = [
        "import hotloop._native as n",
        "from hotloop import _native",
        "def f():\n  from hotloop._native import x",
    ]
    assert all("hotloop._native" in imported(form) for form in forms)


@pytest.mark.parametrize("module", DOORS)
def test_a_compiled_module_is_imported_only_by_its_door(module: str) -> None:
    importers = (path for path in SOURCE.rglob("*.py") if module in imported(path.read_text("utf-8")))
    names = [path.relative_to(SOURCE).as_posix() for path in importers]
    assert [name for name in names if not name.startswith(DOORS[module])] == []
