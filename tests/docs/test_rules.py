"""The rules of measuring, as the documentation lists them, and the tests that hold them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d+)\. .* \| `(tests/\S+\.py)`: `(test_\w+)` \|$", re.MULTILINE)
RULES = ROW.findall((ROOT / "docs" / "measuring.md").read_text())


def test_every_rule_is_listed_once() -> None:
    assert [int(number) for number, _, _ in RULES] == list(range(1, 18))


@pytest.mark.parametrize(("number", "file", "name"), RULES)
def test_the_test_of_a_rule_is_there(number: str, file: str, name: str) -> None:
    assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"rule {number} is not held"
