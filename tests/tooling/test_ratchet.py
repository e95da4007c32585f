"""The budget of src: figures may fall and never rise."""

import tomllib
from pathlib import Path

import pytest

from ratchet import (
    BUDGET,
    PACKAGE,
    measure,
    modules_with_one_importer,
    pairs_alike,
    read_modules,
    short_helpers,
)
from sizes import main

ROOT = Path(__file__).parents[2]

SMALL = '''\
"""A module."""

import hotloop.core.b


def helper(x):
    return x + 1


def work(x):
    y = helper(x)
    z = y + 1
    z += 1
    z += 2
    z += 3
    return z
'''

PAIR = """\
from dataclasses import dataclass


@dataclass
class Asked:
    a: int
    b: int
    c: int


@dataclass
class Extras:
    a: int
    b: int
    c: int
    d: int
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a small tree with a budget of what it is."""
    (tmp_path / PACKAGE / "core").mkdir(parents=True)
    (tmp_path / "tools").mkdir()
    (tmp_path / PACKAGE / "core" / "a.py").write_text(SMALL)
    (tmp_path / PACKAGE / "core" / "b.py").write_text(PAIR)
    assert main(tmp_path, ["--write"]) == 0
    return tmp_path


def add(tree: Path, name: str, text: str) -> None:
    path = tree / PACKAGE / name
    path.write_text((path.read_text() if path.exists() else "") + text)


def test_every_figure_of_a_small_tree_is_as_counted_by_hand(tree: Path) -> None:
    assert measure(tree) == {
        "src": {
            "lines": 32,
            "modules": 2,
            "functions_per_1000_lines": 62.5,
            "mean_function_length": 4.5,
            "class_names_defined_twice": 0,
            "dataclass_pairs_alike": 1,
            "short_helpers_used_once": 1,
            "modules_with_one_importer": 1,
        },
        "core": {"lines": 32, "modules": 2},
    }
    modules = read_modules(tree)
    assert list(pairs_alike(modules)) == [("hotloop.core.b.Asked", "hotloop.core.b.Extras")]
    assert list(short_helpers(modules)) == ["hotloop.core.a.helper"]
    assert list(modules_with_one_importer(modules)) == ["hotloop.core.b"]


def test_a_tree_on_its_budget_passes(tree: Path) -> None:
    assert main(tree) == 0


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("core/a.py", "\n", "core: lines: 33, at most 32 allowed"),
        ("core/c.py", "", "core: modules: 3, at most 2 allowed"),
        ("core/a.py", "class Asked:\n    pass\n", "class names defined twice: 1, at most 0 allowed"),
        ("core/a.py", "def f(): ...\n", "functions per 1000 lines: 90.9, at most 62.5 allowed"),
        ("core/a.py", "def f(): ...\n", "mean function length: 3.33, at least 4.5 allowed"),
        ("core/a.py", "def f(): ...\nf()\n", "short helpers used once: 2, at most 1 allowed"),
        ("core/b.py", "import hotloop.core.a\n", "modules with one importer: 2, at most 1 allowed"),
        ("core/c.py", PAIR.replace("Extras", "More"), "dataclass pairs alike: 6, at most 1 allowed"),
        ("judge.py", "", "mcp, loops, top has no budget for its lines (0)"),
    ],
)
def test_a_figure_that_rises_is_refused_by_name(
    tree: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, words: str
) -> None:
    add(tree, name, text)
    assert main(tree) == 1
    assert words in capsys.readouterr().out


def test_writing_lowers_the_budget_and_raises_it_only_with_the_flag(tree: Path) -> None:
    add(tree, "core/a.py", "\n")
    assert main(tree, ["--write"]) == 1
    assert tomllib.loads((tree / BUDGET).read_text())["core"]["lines"] == 32
    assert main(tree, ["--write", "--raise"]) == 0
    assert tomllib.loads((tree / BUDGET).read_text())["core"]["lines"] == 33
    without_helper = SMALL.replace("def helper(x):\n    return x + 1\n\n\n", "")
    (tree / PACKAGE / "core" / "a.py").write_text(without_helper)
    assert main(tree, ["--write"]) == 0
    lowered = tomllib.loads((tree / BUDGET).read_text())
    assert lowered["core"]["lines"] == 28
    assert lowered["src"]["mean_function_length"] == 7


def test_raising_without_writing_is_refused(tree: Path) -> None:
    assert main(tree, ["--raise"]) == 64


def test_the_budget_holds_every_layer_and_figure_of_src() -> None:
    budget, now = tomllib.loads((ROOT / BUDGET).read_text()), measure(ROOT)
    assert {name: set(figures) for name, figures in budget.items()} == {
        name: set(figures) for name, figures in now.items()
    }
