"""Stable-Baselines3's loop under a run: its rows leave no gap, and nothing of us stays behind."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback

import hotloop
from hotloop.core import spans
from hotloop.core.record import Record
from hotloop.loops.sb3 import RunCallback

STEPS = {f"rollout/{name}" for name in ("forward", "env.step", "callbacks", "store", "returns")}

ROWS = {"setup", "rollout", *STEPS, "logging", "learning", "hotloop"}


@pytest.fixture(autouse=True)
def quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    yield
    assert not spans.enabled()


def ppo(**more: Any) -> Any:
    return PPO(
        "MlpPolicy", "CartPole-v1", device="cpu", n_steps=16, batch_size=16, n_epochs=1, seed=1, **more
    )


def learnt(model: Any, steps: int, *callbacks: BaseCallback) -> Record:
    with hotloop.run("sb3", every=1, output=None, say=lambda _: None) as run:
        model.learn(steps, callback=[*callbacks, RunCallback(run)])
    assert run.record is not None
    return run.record


def rows(record: Record) -> dict[str, int]:
    return {phase.path.partition("/")[2]: phase.calls for phase in record.phases if "/" in phase.path}


def test_the_rows_of_ppo_are_its_parts_and_its_steps_are_counted(tmp_path: Path) -> None:
    model = ppo()
    record = learnt(model, 48, CheckpointCallback(20, str(tmp_path / "kept")))
    assert set(rows(record)) <= ROWS
    made = rows(record)
    assert made["rollout/env.step"] == made["rollout/forward"] == made["rollout/store"] == 48
    assert made["rollout"] == made["learning"] == 3
    assert (record.work.env_steps, record.work.updates) == (48, 3)
    assert record.values["env_steps"] == (16.0, 16.0, 16.0)
    ns = {phase.path: phase.total_ns for phase in record.phases}
    leaves = sum(ns[f"wall/{path}"] for path in made if path != "rollout")
    assert record.unaccounted_ns == ns["wall"] - leaves >= 0
    known = {phase.path for phase in record.phases if phase.cpu_ns is not None}
    assert {"wall/rollout"} == known - {"wall", "wall/hotloop"}
    assert list((tmp_path / "kept").glob("*.zip")), "a model is saved while it is watched"
    assert "step" not in vars(model.env)
    assert "add" not in vars(model.rollout_buffer)


def test_off_policy_loops_have_the_same_rows() -> None:
    model = DQN(
        "MlpPolicy",
        "CartPole-v1",
        device="cpu",
        learning_starts=4,
        train_freq=8,
        buffer_size=64,
        batch_size=4,
    )
    record = learnt(model, 24)
    assert rows(record)["rollout/env.step"] == rows(record)["rollout/store"] == 24
    assert rows(record)["learning"] == 3


def test_an_error_leaves_a_partial_record_and_the_model_can_learn_on() -> None:
    class Failing(BaseCallback):
        def _on_step(self) -> bool:
            if self.num_timesteps == 20:
                raise ValueError("enough")
            return True

    model = ppo()
    run = hotloop.run("sb3", output=None, say=lambda _: None)
    with pytest.raises(ValueError, match="enough"), run:
        model.learn(48, callback=[Failing(), RunCallback(run)])
    assert run.record is not None
    assert run.record.partial
    assert rows(learnt(model, 16))["rollout/env.step"] == 16


def test_a_callback_that_ends_the_training_leaves_no_rollout_open() -> None:
    class Enough(BaseCallback):
        def _on_step(self) -> bool:
            return self.num_timesteps < 20

    record = learnt(ppo(), 48, Enough())
    assert not record.partial
    assert "left-open" not in {notice.code for notice in record.notices}
    assert rows(record)["rollout"] == 2


def test_switched_off_it_learns_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTLOOP_RUN", "0")
    model = ppo()
    with hotloop.run("sb3") as run:
        model.learn(16, callback=RunCallback(run))
    assert model.num_timesteps == 16
