"""The tutorial's last orchard is a hundred times its first, and the same one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def result(folder: Path, *words: str) -> dict[str, dict[str, dict[str, float]]]:
    script = ROOT / "benchmarks/tutorial.py"
    subprocess.run([sys.executable, script, "--output", folder, *words], check=True)
    (kept,) = folder.glob("*.json")
    facts: dict[str, dict[str, dict[str, float]]] = json.loads(kept.read_text("utf-8"))
    return facts


@pytest.mark.long
def test_the_last_orchard_is_a_hundred_times_as_fast_and_the_same(tmp_path: Path) -> None:
    facts = result(tmp_path, "--quick")
    assert facts["ratios"]["native"]["estimate"] >= 100
    assert [each["different"] for each in facts["validated"].values()] == [0, 0]


def test_the_figures_of_the_page_say_so_too() -> None:
    measured = sorted((ROOT / "benchmarks/results").glob("tutorial-*.json"))
    if not measured:
        pytest.skip("no figure has been measured yet, and the page says so")
    facts = json.loads(measured[-1].read_text("utf-8"))
    assert facts["ratios"]["native"]["low"] >= facts["at_least"] == 100
    assert all(each["compared"] > 10_000 for each in facts["validated"].values())
    assert not any(each["different"] for each in facts["validated"].values())
