"""The speed that a training script prints: a change of a tenth is found, and none where there is none.

The script's clock is that of its own CPU time here, so that a busy machine moves it little.
"""

import sys
from pathlib import Path

import pytest
from support.pages import ROOT

from hotloop.core.record.comparison import Comparison
from hotloop.lab.measure.loop import Plan
from hotloop.lab.programs.launch import Program, parse_metric
from hotloop.lab.programs.measure import compare

ROUNDS = 40
STEPS = ("--total-timesteps", "4000")
LOOP = "while global_step < args.total_timesteps:\n"
PRINTED = '    print("SPS:"'
DRAG = "    while time.process_time() < begin + 1.1 * (ended - begin):\n        pass\n"


@pytest.fixture
def scripts(tmp_path: Path) -> tuple[Program, Program]:
    """The example, and one whose every update takes a tenth longer."""
    text = (ROOT / "examples/train.py").read_text("utf-8").replace("perf_counter", "process_time")
    begun = text.replace(LOOP, f"{LOOP}    begin = time.process_time()\n")
    slower = begun.replace(PRINTED, f"    ended = time.process_time()\n{DRAG}{PRINTED}")
    assert slower.count("begin") == 3
    for name, content in (("a.py", text), ("b.py", slower)):
        (tmp_path / name).write_text(content)
    a, b = (Program((sys.executable, str(tmp_path / name), *STEPS)) for name in ("a.py", "b.py"))
    return a, b


def compared(a: Program, b: Program) -> Comparison:
    (found,) = compare([a, b], Plan(), rounds=ROUNDS, metric=parse_metric(r"sps=SPS: (\d+)")).comparisons
    return found


@pytest.mark.long
def test_a_planted_tenth_is_found(scripts: tuple[Program, Program]) -> None:
    found = compared(*scripts)
    assert (found.outcome, found.why) == (
        "slower",
        "the whole interval is beyond 2%, and a second run agrees",
    )


@pytest.mark.long
def test_the_same_script_twice_is_neither_faster_nor_slower(scripts: tuple[Program, Program]) -> None:
    found = compared(scripts[0], scripts[0])
    assert found.outcome in ("same", "cannot tell")
