"""Folders of many files have a map in their first docstring, in which every file is named."""

import re
from pathlib import Path

import pytest

HOTLOOP = Path(__file__).parents[2] / "src" / "hotloop"


@pytest.mark.parametrize("folder", ["envs/foreign", "report/kinds", "train"])
def test_every_part_of_a_large_folder_is_on_its_map(folder: str) -> None:
    files = {path.stem for path in (HOTLOOP / folder).glob("*.py")} - {"__init__"}
    folders = {path.parent.name for path in (HOTLOOP / folder).glob("*/__init__.py")}
    named = re.findall(r"`(\w+)`", (HOTLOOP / folder / "__init__.py").read_text())
    assert sorted(named) == sorted(files | folders)
