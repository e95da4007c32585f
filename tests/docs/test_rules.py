"""The rules of measuring, as the documentation lists them, and the tests that hold them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOLD = Path("tests/lab/test_rules.py")
ROW = re.compile(r"^\| (\d+)\. (.*) \| `(test_\w+)` \|$", re.MULTILINE)
RULES = ROW.findall((ROOT / "docs" / "method.md").read_text())


@pytest.fixture(scope="module")
def collected() -> list[str]:
    """The tests that pytest finds where the rules are held."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, str(HOLD)], cwd=ROOT, capture_output=True, text=True, check=False)
    return re.findall(rf"^{HOLD}::(\w+)", done.stdout, re.MULTILINE)


def test_every_rule_is_listed_once() -> None:
    assert [int(number) for number, _, _ in RULES] == list(range(1, 18))


@pytest.mark.parametrize(("number", "title", "name"), RULES)
def test_the_test_of_a_rule_is_named_after_it(number: str, title: str, name: str) -> None:
    words = re.sub(r"\W+", "_", title).lower()
    assert name == f"test_rule_{number}_{words}"


def test_the_tests_of_the_rules_are_collected_and_all_are_listed(collected: list[str]) -> None:
    assert collected == [name for _, _, name in RULES]
