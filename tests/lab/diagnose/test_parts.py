"""Delays in the parts of somebody's environment."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.records import PROFILE

from hotloop.core import spans
from hotloop.core.errors import InputError
from hotloop.core.settings import Target
from hotloop.lab import causal
from hotloop.lab.causal import Delays, Experiment, delay_target, is_enough, run_causal, trials

ENV = """
class Env:
    num_actions = 2

    def reset(self, seed=None):
        return 0

    def look(self):
        return sum(range(200))

    def step(self, action):
        return self.look(), 0.0, False, False, {}
"""


def test_its_parts_are_delayed_and_what_was_seen_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "delayed_env.py").write_text(ENV)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(causal, "UPDATE_NS", 500_000)
    experiment = Experiment(delays=Delays(wait=lambda _: None), seed=1)
    run_causal(experiment, Target("delayed_env.py:Env", {}), "random", ["delayed_env.Env.look"], 2)
    assert "delayed_env.Env.look" in {trial.part for trial in trials(experiment.blocks)}
    assert not spans.enabled()


def test_a_native_step_is_one_part_and_is_told_where_it_can_be_tried() -> None:
    with pytest.raises(InputError, match=r"hotloop diagnose --causal -- hotloop train grid/toy"):
        delay_target(replace(PROFILE), (), 3)


def test_nothing_to_delay_is_enough_at_once() -> None:
    assert is_enough(Experiment(), 100, 3)
    assert not is_enough(Experiment(), 1, 3)
