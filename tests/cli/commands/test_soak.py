import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import leaky_target

from hotloop.lab.measure.sides import Side
from hotloop.lab.soak import SoakRun, SoakState

Command = Callable[..., Any]

LEAKY = f"{Path(leaky_target.__file__)}:make"


def test_a_short_soak_cannot_tell_and_leaves_its_curves(hotloop: Command) -> None:
    said = hotloop("soak", "grid/toy", "agents=2", "num_envs=2", "--steps", "1")
    assert said.code == 4
    assert "cannot tell" in said.out
    assert len(list(Path("artifacts/throughput").glob("*.json"))) == 1


def test_what_leaks_is_exit_code_3(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def leaking(_: SoakRun, side: Side, found: SoakState) -> None:
        side.turn(side.grain)
        for k in range(60):
            found.note(float(k), {"rss_bytes": 1e8 + 1e6 * k, "slower": 0.01 * (k % 2)})
        found.seconds, found.partial = 60.0, False

    monkeypatch.setattr(SoakRun, "run", leaking)
    said = hotloop("soak", LEAKY, "--minutes", "1")
    assert said.code == 3
    assert "it does not stay as it was: resident memory +57.2 MiB a minute" in " ".join(said.out.split())
    [record] = Path("artifacts/throughput").glob("*.json")
    assert record.with_suffix(".svg").exists()


def test_a_program_is_watched_from_outside(hotloop: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.lab.soak.SHORTEST_S", 0.02)
    idle = "import time; print('sps=5', flush=True); time.sleep(60)"
    words = ("--minutes", "0.01", "--metric", "sps=sps=(\\d+)", "--json")
    said = hotloop("soak", *words, "--", sys.executable, "-c", idle)
    assert said.code in (0, 3, 4)  # a program that still starts takes memory
    assert {"rss_bytes", "open_files", "threads"} <= {each["name"] for each in said.json["soak"]["trends"]}


def test_a_program_that_cannot_be_started_is_a_usage_error(hotloop: Command) -> None:
    said = hotloop("soak", "--minutes", "0.01", "--", "no-such-program")
    assert said.code == 64
    assert "cannot be started" in said.err


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--minutes", "1", "--steps", "5"), "exclude each other"),
        (("--minutes", "0"), "expected more than 0"),
    ],
)
def test_bad_lengths_are_usage_errors(hotloop: Command, words: tuple[str, ...], line: str) -> None:
    said = hotloop("soak", "grid/toy", *words)
    assert (said.code, said.out) == (64, "")
    assert line in said.err
