"""What must agree is found from both sides: a header, and the file of the twin that has or says its name."""

import ast
import re
from pathlib import Path

import pytest

from hotloop.core import registry

ROOT = Path(__file__).parents[2]

NATIVE_ALONE = {
    "grid/quick_look.h",
    "prospector/kernels.h",
    "prospector/kernel_sets.h",
    "prospector/vector.h",
}
"""Faster ways of what other headers say; twins have one way of everything."""

HOSTS = "flaw.h"
"""What a state is held against that was handed in: of a twin, Python watches over the memory."""


@pytest.fixture(params=sorted(registry.worlds()))
def folder(request: pytest.FixtureRequest) -> Path:
    return ROOT / "src/hotloop/worlds" / str(request.param)


def twin_of(header: Path) -> str | None:
    """Return the file of the twin that has a header's name, or else the one that says it."""
    own = "twin.py" if header.stem == header.parent.name else f"{header.stem}.py"
    if (header.parent / own).is_file():
        return own
    said = {
        file.name: ast.get_docstring(ast.parse(file.read_text())) or "" for file in header.parent.glob("*.py")
    }
    named = [name for name, text in said.items() if re.search(rf"\b{header.name}\b", text)]
    return named[0] if len(named) == 1 else None


def test_every_header_has_a_twin_of_its_name_or_is_named_by_the_twin_that_has_it(folder: Path) -> None:
    for header in folder.glob("*.h"):
        if header.name != HOSTS and f"{folder.name}/{header.name}" not in NATIVE_ALONE:
            assert twin_of(header), header.name


def test_a_header_that_names_a_twin_names_its_own(folder: Path) -> None:
    for header in folder.glob("*.h"):
        for named in re.findall(r"Must agree with (\w+\.py)", header.read_text()):
            assert named == twin_of(header), header.name
