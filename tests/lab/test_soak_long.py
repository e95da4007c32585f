"""Soaks of minutes, of what leaks or slows down for real; each in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import leaky_target

LEAKY = f"{Path(leaky_target.__file__)}:make"
CODE = "import sys; from hotloop.cli.main import main; sys.exit(main())"

pytestmark = pytest.mark.long


def soaked(folder: Path, *words: str) -> tuple[int, Any]:
    """The exit code and the record of a soak."""
    environment = {name: value for name, value in os.environ.items() if name != "HOTLOOP_IN_PROCESS"}
    done = subprocess.run(
        [sys.executable, "-c", CODE, "soak", *words, "--json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)["soak"]


@pytest.mark.parametrize(
    ("kind", "every", "name"),
    [
        ("python", 1, "rss_bytes"),
        ("native", 1, "heap_bytes"),
        ("files", 2_000, "open_files"),
        ("threads", 20_000, "threads"),
    ],
)
def test_a_leak_is_found_in_three_minutes(tmp_path: Path, kind: str, every: int, name: str) -> None:
    code, found = soaked(tmp_path, LEAKY, f"kind={kind}", f"every={every}", "--minutes", "3")
    assert code == 3
    assert name in [each["name"] for each in found["trends"] if each["alarm"]]


def test_a_slow_down_of_3_percent_a_minute_is_found_in_five(tmp_path: Path) -> None:
    code, found = soaked(tmp_path, LEAKY, "kind=slow", "--minutes", "5")
    [slower] = [each for each in found["trends"] if each["name"] == "slower"]
    assert code == 3
    assert slower["alarm"]
    assert slower["low"] < 0.03 < slower["high"]


@pytest.mark.parametrize("target", ["grid/arena", "prospector", "cards", "farm", "gym:CartPole-v1"])
def test_a_clean_world_passes_ten_minutes(tmp_path: Path, target: str) -> None:
    assert soaked(tmp_path, target, "--minutes", "10")[0] == 0


@pytest.mark.parametrize("seed", range(20))
def test_a_clean_soak_of_a_minute_raises_no_alarm(tmp_path: Path, seed: int) -> None:
    assert soaked(tmp_path, "grid/toy", f"seed={seed}", "--minutes", "1")[0] == 0
