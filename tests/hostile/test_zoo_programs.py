"""The programs of tests/zoo through the command line: every row whose answer does not depend on time."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import zoo  # noqa: E402

sys.path.remove(str(BENCHMARKS))

STEADY = [row for row in zoo.ROWS if not row.is_timed]

pytestmark = pytest.mark.slow

pytest.importorskip("gymnasium")


@pytest.fixture(scope="module")
def built() -> Iterator[Path]:
    with zoo.built_zoo() as folder:
        yield folder


@pytest.mark.parametrize("row", STEADY, ids=[row.name for row in STEADY])
def test_a_program_gets_the_answer_of_the_table(row: zoo.Row, built: Path) -> None:
    if zoo.missing(row):
        pytest.skip(f"needs {', '.join(zoo.missing(row))}")
    result = zoo.run_row(row, built)
    assert not result.problems, f"{result.problems}\n{result.screen}"


def test_every_row_has_a_name_of_its_own() -> None:
    names = [row.name for row in zoo.ROWS]
    assert len(names) == len(set(names))


def test_every_program_of_the_table_is_described() -> None:
    page = (zoo.ZOO / "README.md").read_text("utf-8")
    files = {path.name for path in zoo.ZOO.iterdir() if path.suffix == ".py"}
    assert {name for name in files if f"`{name}" not in page} == set()
