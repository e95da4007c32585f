"""What a Q-network expects, beside what comes: by hand."""

import runpy
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import hotloop
from hotloop.train.settings import TrainSettings
from hotloop.train.trainer import Trainer

SCRIPT = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "q_estimates.py"))
Estimates, estimates, realised = (SCRIPT[name] for name in ("Estimates", "estimates", "realised"))


def test_a_return_is_discounted_and_ends_with_its_life() -> None:
    rewards = np.array([[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]])
    ends = np.array([[False, False], [True, False], [False, False]])
    assert realised(rewards, ends, 0.5).tolist() == [[2, 3], [2, 4], [4, 4]]


def test_the_overestimate_is_what_was_expected_beyond_what_came() -> None:
    found = Estimates(estimated=np.array([3.0, 5.0]), realised=np.array([2.0, 1.0]))
    assert found.overestimate == pytest.approx(2.5)


def test_only_steps_that_somebody_made_have_estimates() -> None:
    keys = {"num_envs": 2, "perception": False}
    with closing(hotloop.make("farm/dev", **keys)) as batch, closing(hotloop.make("farm/dev", **keys)) as own:
        trainer = Trainer(batch, TrainSettings(algorithm="dqn", hidden=(8,), minibatch_size=16))
        own.reset()
        alive = int(own.infos["alive"].sum())
        found = estimates(trainer, own, gamma=0.9, steps=2, horizon=3)
    assert len(found.estimated) == len(found.realised)
    assert alive <= len(found.estimated) <= 2 * alive + 4
    assert np.isfinite(found.estimated).all()
