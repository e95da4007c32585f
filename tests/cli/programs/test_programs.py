"""Programs on the command line: small ones, really run."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from hotloop.core.errors import ExitCode
from hotloop.lab.programs import measure as programs

SAYS = 'import random; [print("SPS:", 1000 + n % 3) for n in range(20)]'
PYTHON = (sys.executable, "-S", "-c")
QUICK = ("--rounds", "2", "--warmup", "0")


def test_a_bench_of_a_program_shows_and_keeps_its_runs(hotloop: Callable[..., Any]) -> None:
    said = hotloop("bench", *QUICK, "--metric", r"sps=SPS: (\d+)", "--", *PYTHON, SAYS)
    assert said.code in (ExitCode.FINE, ExitCode.UNSTABLE)
    shown = [line.split()[0] for line in said.out.splitlines() if line.strip()]
    assert {"program", "sps", "wall", "CPU", "peak", "machine", "commit", "method", "printed"} <= set(shown)
    assert "40 values in 2 runs, 0 of them cut as warm-up" in said.out
    (kept,) = Path("artifacts/throughput").glob("*.json")
    assert shlex.join([*PYTHON, SAYS])[:20] in kept.read_text()


def test_json_is_the_record_alone(hotloop: Callable[..., Any]) -> None:
    said = hotloop("bench", *QUICK, "--json", "--", *PYTHON, "print('hello')")
    assert (said.json["kind"], said.json["work"]["runs"], said.json["target"]["impl"]) == (
        "bench",
        2,
        "program",
    )


def test_two_programs_are_compared_by_what_they_print(
    hotloop: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "WARMUP", 0)
    sides = [shlex.join([*PYTHON, f"print('SPS:', {speed})"]) for speed in (1000, 900, 1000)]
    said = hotloop("compare", "--rounds", "6", "--metric", r"sps=SPS: (\d+)", "--", *sides)
    assert said.code == ExitCode.REGRESSION
    assert "B is slower: 0.900 [0.900, 0.900] times as fast as A" in said.out
    assert "C is the same: 1.000 [1.000, 1.000] times as fast as A" in said.out
    assert "6 rounds, and as much again" in said.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["bench", "--"], "nothing stands after --"),
        (["scale", "n=1,2", "--", "true"], "scale takes no program after --: bench, compare, diagnose, prof"),
        (["bench", "grid/toy", "--", "true"], "unexpected extra argument"),
        (
            ["bench", "--policy", "random", "--", "true"],
            "o such option: --policy.* hotloop bench --help -- says",
        ),
        (["bench", "--", "/nowhere"], "/nowhere: it cannot be started"),
        (["bench", "--less-is-better", "--", "true"], "give --metric"),
        (["bench", *QUICK, "--", *PYTHON, "raise OSError('full')"], "ended with exit code 1: OSError: full"),
        (["bench", *QUICK, "--metric", r"x=(\d+)", "--", "true"], "printed nothing that --metric x finds"),
        (["compare", "--", "true"], "1 programs are given"),
        (["compare", "--rounds", "6", "--budget", "9", "--", "true", "true"], "exclude each other"),
    ],
)
def test_what_cannot_be_run_is_64_with_what_to_do(
    hotloop: Callable[..., Any], words: list[str], said: str
) -> None:
    import re

    found = hotloop(*words)
    assert found.code == ExitCode.USAGE
    assert re.search(said, " ".join(found.err.split()))
    assert not list(Path().rglob("*.json"))


@pytest.mark.parametrize("name", ["bench", "compare", "profile"])
def test_help_is_that_of_programs_where_dashes_follow(hotloop: Callable[..., Any], name: str) -> None:
    said = hotloop(name, "--help", "--")
    assert said.code == ExitCode.FINE
    assert ("--probe" if name == "profile" else "--metric") in said.out
    assert "--policy" not in said.out
    assert "hotloop bench -- " in hotloop("bench", "--help").out
    assert "bench --" not in hotloop("--help").out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_ends_the_program_too_and_leaves_a_partial_record(tmp_path: Path, number: int) -> None:
    os.mkfifo(tmp_path / "begun")
    code = "import sys; from hotloop.cli.main import main; sys.exit(main())"
    program = ["sh", "-c", "echo $$ > begun; sleep 600"]
    words = [sys.executable, "-c", code, "bench", "--warmup", "0", "--", *program]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as bench:
        pid = int((tmp_path / "begun").read_text())
        family = psutil.Process(bench.pid).children(recursive=True)
        assert pid in [each.pid for each in family]
        bench.send_signal(number)
        bench.communicate(timeout=60)
    assert bench.returncode == ExitCode.INTERRUPTED
    gone = (psutil.NoSuchProcess, psutil.TimeoutExpired)
    for each in family:
        with suppress(*gone):
            each.wait(0 if each.status() == psutil.STATUS_ZOMBIE else 30)
    assert not [each for each in family if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
    assert '"partial": true' in next((tmp_path / "artifacts/throughput").glob("*.json")).read_text()


def test_a_profile_of_a_program_shows_its_functions_and_keeps_a_page(hotloop: Callable[..., Any]) -> None:
    Path("busy.py").write_text(
        "def busy():\n    return sum(range(10**6))\n\n\nfor _ in range(5):\n    busy()\n"
    )
    said = hotloop("profile", "--probe", "line", "--", sys.executable, "busy.py")
    assert said.code == ExitCode.FINE
    shown = said.out.splitlines()
    for part in ("Hot functions", "busy (here/busy.py:2)", "clean run", "watched", "Lines of"):
        assert any(part in line for line in shown)
    (page,) = Path(".design").glob("*.md")
    text = page.read_text()
    for part in (
        "## Runs",
        "## Resources",
        "Mean memory",
        "## samples",
        "## line",
        "return sum(range(10**6))",
    ):
        assert part in text
    assert {each.suffix for each in Path(".design").iterdir()} == {".md", ".json", ".html", ".svg"}
    assert hotloop("profile", "--probe", "torch", "--", "true").code == ExitCode.USAGE
