"""Soaks of minutes, of what leaks or slows down for real; each in a process of its own.

What is judged by what a process holds is soaked side by side. What is clean is, too: neighbours make a soak
noisier and never calmer, and whoever is held against an instance of its own must not be alarmed by them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from math import log
from pathlib import Path
from typing import Any

import pytest
from support import leaky_target

LEAKY = f"{Path(leaky_target.__file__)}:make"
CODE = "import sys; from hotloop.cli.main import main; sys.exit(main())"
LEAKS = {
    "python": (1, "rss_bytes"),
    "native": (1, "heap_bytes"),
    "files": (2_000, "open_files"),
    "threads": (2_000, "threads"),
}
"""Kind, how many steps between two leaks, and the curve that shows it."""
WORLDS = ("grid/arena", "prospector", "cards", "farm", "gym:CartPole-v1")
AT_ONCE = 4
SEEDS = 20

Soaked = tuple[int, Any]
"""The exit code and the record of a soak."""

pytestmark = pytest.mark.long


def soaked(folder: Path, runs: Mapping[str, tuple[str, ...]]) -> dict[str, Soaked]:
    """Soaks that run side by side."""
    environment = {name: value for name, value in os.environ.items() if name != "HOTLOOP_IN_PROCESS"}
    started = {
        name: subprocess.Popen(
            [sys.executable, "-c", CODE, "soak", *words, "--json"],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for name, words in runs.items()
    }
    told = {name: process.communicate()[0] for name, process in started.items()}
    return {name: (process.returncode, json.loads(told[name])["soak"]) for name, process in started.items()}


def test_leaks_are_found_in_three_minutes(tmp_path: Path) -> None:
    runs = {
        kind: (LEAKY, f"kind={kind}", f"every={every}", "--minutes", "3")
        for kind, (every, _) in LEAKS.items()
    }
    found = soaked(tmp_path, runs)
    assert {kind: code for kind, (code, _) in found.items()} == dict.fromkeys(LEAKS, 3)
    for kind, (_, name) in LEAKS.items():
        assert name in [each["name"] for each in found[kind][1]["trends"] if each["alarm"]]


def test_a_slow_down_of_3_percent_a_minute_is_found_in_five(tmp_path: Path) -> None:
    code, found = soaked(tmp_path, {"slow": (LEAKY, "kind=slow", "--minutes", "5")})["slow"]
    [slower] = [each for each in found["trends"] if each["name"] == "slower"]
    assert code == 3
    assert slower["alarm"]
    planted = log(leaky_target.SLOWER)
    assert slower["low"] < planted
    assert slower["high"] > 0.85 * planted  # what a step takes besides does not slow down


def test_clean_worlds_pass_ten_minutes(tmp_path: Path) -> None:
    found = soaked(tmp_path, {target: (target, "--minutes", "10") for target in WORLDS})
    assert {target: code for target, (code, _) in found.items()} == dict.fromkeys(WORLDS, 0)


def test_twenty_clean_soaks_of_a_minute_raise_no_alarm(tmp_path: Path) -> None:
    codes = dict[str, int]()
    for first in range(0, SEEDS, AT_ONCE):
        seeds = map(str, range(first, first + AT_ONCE))
        some = soaked(tmp_path, {seed: ("grid/toy", f"seed={seed}", "--minutes", "1") for seed in seeds})
        codes |= {seed: code for seed, (code, _) in some.items()}
    assert codes == {str(seed): 0 for seed in range(SEEDS)}
