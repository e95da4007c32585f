"""Which command lines run in a process of their own."""

import math
from pathlib import Path
from typing import Any

import pytest
from support.records import BENCH

from hotloop.cli.isolated import ON_RAY, Call, foreign, run_in_process
from hotloop.core.process.supervisor import StandstillLimits


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        ({"target": "grid/toy", "words": ["num_envs=4"]}, []),
        ({"target": "gym:CartPole-v1"}, ["gym:CartPole-v1"]),
        ({"target": "prospector", "policy": "my.py:Policy"}, ["my.py:Policy"]),
        ({"target": "prospector", "policy": "tape:a.npz"}, []),
        ({"target": "prospector", "words": ["train.network=my_net.py:Net"]}, ["my_net.py:Net"]),
        ({"target": "prospector", "words": ["run=a"], "resume": True}, []),
        ({"target": "run=a", "words": [], "resume": True}, ["the run that goes on"]),
        ({"target": None, "words": None, "resume": True}, ["the run that goes on"]),
        ({"target": "run=a", "words": [], "resume": False}, []),
        ({"target": None, "replay": "mismatch.npz"}, ["mismatch.npz"]),
        ({"target": "prospector", "words": ["train.collect=ray"]}, [ON_RAY]),
        ({"target": "prospector", "words": ["ranks=2"], "on": "ray"}, [ON_RAY]),
        ({"target": "prospector", "words": ["ranks=2", "ranks_on=ray"]}, [ON_RAY]),
        ({"target": "prospector", "words": ["train.ranks=2"], "on": "ray://head:1"}, []),
        ({"target": "prospector", "words": ["collect=ray://head:1"]}, []),
    ],
)
def test_somebody_elses_code_or_process_is_what_makes_it_so(asked: dict[str, Any], names: list[str]) -> None:
    assert list(foreign(asked)) == names


OFFERING = """
from pathlib import Path
from hotloop.core.process import lifeline

class Text:
    def to_json(self):
        return Path(__file__).with_name("record.json").read_text()

def offer(*, code):
    lifeline.offer(Text)
    return code
"""
"""A command that offers a record so far, and keeps none."""


@pytest.mark.parametrize(
    ("code", "saves", "files"), [(0, True, 0), (3, True, 0), (64, False, 0), (70, False, 0), (64, True, 1)]
)
def test_only_a_command_that_broke_off_leaves_its_record_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, saves: bool, files: int
) -> None:
    (tmp_path / "offering.py").write_text(OFFERING)
    (tmp_path / "record.json").write_text(BENCH.to_json())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    call = Call(command="offering:offer", asked={"code": code}, argv=("hotloop",))
    assert run_in_process(["a command"], StandstillLimits(step_s=math.inf), call, saves=saves) == code
    assert len([*tmp_path.glob(".design/*.json")]) == files
