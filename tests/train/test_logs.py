import json
import math
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hotloop.core.errors import InputError
from hotloop.train.windows import METRICS, SCRIPT, TENSORBOARD, LineFile, Logs, read_metrics

VALUES = {"epoch": 3, "sps": 51234.5, "return": 1.25, "phase": "ppo", "length": None}


def test_a_window_is_one_object_and_one_line_for_people(tmp_path: Path) -> None:
    with closing(Logs(tmp_path, tensorboard=False)) as logs:
        logs.write(4096, VALUES)
    assert read_metrics(tmp_path / METRICS) == [{"steps": 4096, "epoch": 3, "sps": 51234.5, "return": 1.25}]
    (line,) = (tmp_path / SCRIPT).read_text().splitlines()
    date, _, rest = line.partition(" ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", date)
    assert rest == "epoch=3 steps=4096 sps=51234 return=1.25 phase=ppo"


def test_what_is_not_finite_is_null_in_json(tmp_path: Path) -> None:
    with closing(Logs(tmp_path, tensorboard=False)) as logs:
        logs.write(1, {"loss": math.nan, "speed": math.inf})
    assert json.loads((tmp_path / METRICS).read_text()) == {"steps": 1, "loss": None, "speed": None}


def test_a_line_that_a_kill_tore_is_cut_off_and_the_log_goes_on(tmp_path: Path) -> None:
    with closing(Logs(tmp_path, tensorboard=False)) as logs:
        logs.write(10, {"sps": 1})
    with (tmp_path / METRICS).open("a") as file:
        file.write('{"steps": 20, "sp')
    assert [window["steps"] for window in read_metrics(tmp_path / METRICS)] == [10]
    with closing(Logs(tmp_path, tensorboard=False)) as logs:
        logs.write(30, {"sps": 3})
    assert [window["steps"] for window in read_metrics(tmp_path / METRICS)] == [10, 30]


def test_a_log_of_nothing_but_a_torn_line_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("torn")
    LineFile(tmp_path / "a").append("whole")
    assert (tmp_path / "a").read_text() == "whole\n"


def test_lines_are_in_the_file_at_once_so_that_a_kill_loses_none(tmp_path: Path) -> None:
    code = (
        "import os, signal; from pathlib import Path; from hotloop.train.windows import Logs\n"
        f"logs = Logs(Path({str(tmp_path)!r}), tensorboard=False)\n"
        "logs.write(1, {'sps': 1.0}); logs.write(2, {'sps': 2.0}); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert [window["sps"] for window in read_metrics(tmp_path / METRICS)] == [1.0, 2.0]
    assert len((tmp_path / SCRIPT).read_text().splitlines()) == 2


def test_a_resumed_run_leaves_out_what_it_went_over_again(tmp_path: Path) -> None:
    with closing(Logs(tmp_path, tensorboard=False)) as logs:
        for steps in (10, 20, 30):
            logs.write(steps, {"return": float(steps)})
    with closing(Logs(tmp_path, resumed_at=20, tensorboard=False)) as logs:
        logs.write(30, {"return": -30.0})
    found = read_metrics(tmp_path / METRICS)
    assert [(window["steps"], window["return"]) for window in found] == [(10, 10), (20, 20), (30, -30)]
    assert "resumed steps=20" in (tmp_path / SCRIPT).read_text()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"steps": "many"}', "$.steps: expected int, got str"),
        ('{"steps": -1}', "$.steps: expected at least 0, got -1"),
        ('{"epoch": 1}', "$: expected the field steps"),
        ('{"steps": 1, "sps": NaN}', "$.sps: expected a finite number, got nan"),
        ('{"steps": 1, "sps": "fast"}', "$.sps: expected a number, got str"),
        ('{"steps": 1, "resumed": 1}', "$.resumed: expected bool, got int"),
        ("[1]", "$: expected an object, got a list"),
        ('{"steps": 1', "not JSON, or cut off"),
        ("[" * 100_000, "nested too deep"),
    ],
)
def test_a_line_that_is_none_of_ours_is_named_with_its_field(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"steps": 1, "sps": null}\n' + line + "\n")
    with pytest.raises(InputError) as refused:
        read_metrics(path)
    assert str(refused.value).startswith(f"{path}:2: ")
    assert said in str(refused.value)


def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    path, said = tmp_path / "metrics.jsonl", list[str]()
    path.write_text('{"steps": 1}\n{"ste')
    assert read_metrics(path, said.append) == [{"steps": 1}]
    assert said == [f"{path}: its last line was cut off, and is left out"]
    with pytest.raises(InputError, match="cannot be read"):
        read_metrics(tmp_path)


def test_tensorboard_has_the_numbers_of_every_window(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with closing(Logs(tmp_path)) as logs:
        logs.write(10, VALUES)
        logs.write(20, VALUES | {"return": 2.5})
    with closing(Logs(tmp_path, resumed_at=10)) as logs:
        logs.write(20, VALUES | {"return": 7.5})
    events = EventAccumulator(str(tmp_path / TENSORBOARD)).Reload()
    assert [(event.step, event.value) for event in events.Scalars("return")] == [(10, 1.25), (20, 7.5)]
    assert "phase" not in events.Tags()["scalars"]
