import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hotloop.core.errors import InputError, SetupError
from hotloop.probes.torch import COLUMNS, TorchWindow

torch = pytest.importorskip("torch")


def turn(window: TorchWindow) -> None:
    torch.ones(4, 4) @ torch.ones(4, 4)
    window.step()


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


def test_a_window_keeps_its_active_turns_and_nothing_before_or_after(tmp_path: Path) -> None:
    window = TorchWindow(tmp_path / "new" / "trace.json", wait=1, warmup=2, active=3)
    for count in range(10):
        assert window.is_over is (count >= 6)
        turn(window)
    assert window.turns == 6
    rows = {row[0]: dict(zip(COLUMNS, row, strict=True)) for row in window.table}
    assert rows["aten::mm"]["calls"] == 3
    assert 0 < rows["aten::mm"]["self_cpu_ns"] <= rows["aten::mm"]["total_cpu_ns"]
    assert sum(event["name"] == "aten::mm" for event in events(window.path)) == 3
    assert [path.name for path in window.path.parent.iterdir()] == ["trace.json"]


def test_operators_come_by_their_own_time(tmp_path: Path) -> None:
    window = TorchWindow(tmp_path / "trace.json", wait=0, warmup=1, active=2)
    for _ in range(3):
        turn(window)
    own = [row[2] + row[4] for row in window.table]
    assert own == sorted(own, reverse=True)
    assert not any(row[0].startswith("ProfilerStep") for row in window.table)


def test_shapes_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    window = TorchWindow(tmp_path / "trace.json", wait=0, warmup=1, active=1, record_shapes=True)
    for _ in range(2):
        turn(window)
    product = next(event for event in events(window.path) if event["name"] == "aten::mm")
    assert product["args"]["Input Dims"] == [[4, 4], [4, 4]]


def test_a_window_that_is_closed_in_its_middle_keeps_what_it_has(tmp_path: Path) -> None:
    window = TorchWindow(tmp_path / "trace.json", wait=1, warmup=1, active=9)
    for _ in range(4):
        turn(window)
    window.close()
    assert window.is_over
    assert sum(event["name"] == "aten::mm" for event in events(window.path)) == 2


def test_a_window_that_ends_before_it_begins_is_an_error_and_no_file(tmp_path: Path) -> None:
    window = TorchWindow(tmp_path / "trace.json", wait=1, warmup=1, active=2)
    turn(window)
    with pytest.raises(SetupError, match="ended after 1 turns and begins after 2"):
        window.close()
    assert list(tmp_path.iterdir()) == []
    window.close()


def test_a_window_without_torch_in_it_is_an_error_and_no_file(tmp_path: Path) -> None:
    window = TorchWindow(tmp_path / "trace.json", wait=0, warmup=1, active=2)
    window.step()
    window.step()
    with pytest.raises(SetupError, match="no torch operator ran"):
        window.step()
    assert list(tmp_path.iterdir()) == []
    window.step()


def test_a_trace_is_cut_to_its_size_and_says_so(tmp_path: Path) -> None:
    window = TorchWindow(tmp_path / "trace.json", wait=0, warmup=1, active=4, most_bytes=4_000)
    for _ in range(5):
        turn(window)
    trace = json.loads(window.path.read_text())
    assert window.path.stat().st_size <= 4_000
    assert trace["hotloop_left_out"] > 0
    timed = [event["ts"] for event in trace["traceEvents"] if "dur" in event]
    assert timed == sorted(timed)


@pytest.mark.parametrize("turns", [{"wait": -1}, {"warmup": 0}, {"active": 0}])
def test_a_window_that_could_not_catch_anything_is_refused(tmp_path: Path, turns: dict[str, int]) -> None:
    with pytest.raises(InputError, match="expected at least"):
        TorchWindow(tmp_path / "trace.json", **turns)


def test_a_trace_that_exists_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text("mine")
    with pytest.raises(InputError, match="never overwritten"):
        TorchWindow(tmp_path / "trace.json")


@pytest.mark.slow
def test_the_profiler_writes_nothing_of_its_own_to_stderr(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hotloop.probes.torch import TorchWindow\n"
        "window = TorchWindow(Path(sys.argv[1]), wait=0, warmup=1, active=1)\n"
        "import torch\n"
        "for _ in range(2): torch.ones(2) + 1; window.step()\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "trace.json")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == ""
