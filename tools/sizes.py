"""Refuses functions over 60 lines and files over 600, in Python and in C++, and a src over its budget.

`--write` takes over into tools/budget.toml what is better than there, with `--raise` also what is worse.
"""

import ast
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from cpp_functions import cpp_functions
from ratchet import measure, overruns, read_budget, tighten, write_budget

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "native", "tools", "tests", "benchmarks")
PYTHON_SUFFIXES = (".py",)
CPP_SUFFIXES = (".h", ".cpp", ".cu", ".cuh")

SKIPPED = re.compile(r"(^|/)(\.|_template/|vendor/|zoo/)")

FLAGS = ("--write", "--raise")

MAX_FUNCTION_LINES = 60
MAX_FILE_LINES = 600


class Excess(NamedTuple):
    """Something longer than it may be."""

    path: Path
    line: int
    what: str
    lines: int
    limit: int

    def __str__(self) -> str:
        return (
            f"{self.path}:{self.line}: {self.what} has {self.lines} lines, at most {self.limit} are allowed"
        )


def python_functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name, first and last line of every function, docstring included and decorators not."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno, node.end_lineno or node.lineno


def excesses(path: Path, text: str) -> Iterator[Excess]:
    """Yield what is too long in a file: the file itself and its functions."""
    lines = len(text.splitlines())
    if lines > MAX_FILE_LINES:
        yield Excess(path, 1, "file", lines, MAX_FILE_LINES)
    functions = python_functions if path.suffix in PYTHON_SUFFIXES else cpp_functions
    for name, first, last in functions(text):
        if last - first + 1 > MAX_FUNCTION_LINES:
            yield Excess(path, first, name, last - first + 1, MAX_FUNCTION_LINES)


def sources(root: Path) -> Iterator[Path]:
    """Yield the checked files, relative to `root`; hidden folders hold nothing of ours."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root)
            if name.suffix in PYTHON_SUFFIXES + CPP_SUFFIXES and not SKIPPED.search(name.as_posix()):
                yield name


def main(root: Path, flags: Sequence[str] = ()) -> int:
    """Check a tree, or write its budget; return 1 if something is too long or over the budget."""
    strange = [flag for flag in flags if flag not in FLAGS]
    if strange or ("--raise" in flags and "--write" not in flags):
        print("expected nothing, --write, or --write --raise", file=sys.stderr)
        return 64
    budget = read_budget(root)
    if "--write" in flags:
        budget = tighten(measure(root), budget or {}, loosen="--raise" in flags)
        write_budget(root, budget)
    files = ((path, (root / path).read_text("utf-8")) for path in sources(root))
    problems = [str(excess) for path, text in files for excess in excesses(path, text)]
    if budget is not None:
        problems += overruns(measure(root), budget)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(ROOT, sys.argv[1:]))
