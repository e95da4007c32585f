from itertools import count
from types import SimpleNamespace

import pytest

from hotloop.core.progress import Progress, silent
from hotloop.core.settings import Target
from hotloop.lab.sweep import tune as lab
from hotloop.lab.sweep.cells import LocalExecutor
from hotloop.lab.sweep.tune import Deadline
from hotloop.lab.training.sides import TrainSide
from hotloop.options.sweeps import TuneOptions


def test_both_settings_learn_for_as_long_with_each_seed_and_that_is_said_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said, trained = list[str](), list[tuple[object, object]]()

    def learn_one(target: Target, progress: Progress, *, env_steps: int, untrained: bool) -> SimpleNamespace:
        trained.append((target.keys["seed"], target.keys["train.seed"]))
        returns = (float(env_steps), float(env_steps) + 2 * ("b" in target.keys))
        before = {lab.UNTRAINED: (60.0,)} if untrained else {}
        return SimpleNamespace(values={lab.RETURN: returns, **before}, partial=False)

    monkeypatch.setattr(lab, "learn_one", learn_one)
    monkeypatch.setattr(lab, "is_same", lambda one, other: one == other)
    monkeypatch.setattr(lab, "training_s", lambda target, env_steps: env_steps * (1 + ("b" in target.keys)))
    present, chosen = Target("t", {"train.a": "1"}), Target("t", {"train.a": "1", "b": "2"})
    asked = TuneOptions(target="", learn_steps=100, seeds=3, learning_band=10)
    found = lab.learn(present, chosen, asked, LocalExecutor(), silent, said.append)
    assert found is not None
    assert (found.difference, len(found.present)) == (1.0, 3)
    assert (found.learned, found.margin) == (40.0, 4.0)
    [line] = said
    assert line.startswith(
        "learning check: 6 trainings of 100 env-steps, about 900 s, at most 1800 s; as well"
    )
    assert line.endswith("is at most 10% less than the present settings learn")
    assert trained == [(seed, seed) for seed in (1, 1, 2, 2, 3, 3)]
    assert lab.learn(chosen, chosen, asked, LocalExecutor(), silent, said.append) is None


def test_a_check_that_takes_twice_what_was_said_keeps_the_seeds_that_both_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = list[str]()
    values = {lab.RETURN: (1.0,), lab.UNTRAINED: (0.0,)}
    clock = count(0, 3 * 10**9)
    monkeypatch.setattr(lab, "learn_one", lambda *_, **__: SimpleNamespace(values=values, partial=False))
    monkeypatch.setattr(lab, "training_s", lambda *_: 1.0)
    monkeypatch.setattr(lab, "is_same", lambda *_: False)
    monkeypatch.setattr(lab, "Deadline", lambda seconds: Deadline(seconds, lambda: next(clock)))
    one, other = (Target("t", {"train.a": value}) for value in "12")
    found = lab.learn(one, other, TuneOptions(target="", learn_steps=1), LocalExecutor(), silent, said.append)
    assert found is not None
    assert len(found.present) == 4  # of six, said to take 12 s, at most 24, at 3 s a training
    assert said[1:] == ["learning check: its time was over after 4 of 6 seeds"]


def test_a_training_of_the_check_is_a_record_of_its_steps_and_of_the_returns_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TrainSide, "evaluate", lambda side: (1.0, 3.0) if side.updates else (0.5,))
    words = ["num_envs=2", "train.num_steps=4", "train.minibatch_size=64", "train.hidden=8,8"]
    cell = lab.learn_cell(Target.typed("grid/guard", words), env_steps=12, untrained=True)
    [done] = LocalExecutor().run([cell], silent)
    assert done.record is not None, done.refused
    assert done.record.values[lab.RETURN] == (1.0, 3.0)
    assert done.record.values[lab.UNTRAINED] == (0.5,)
    assert done.record.work.env_steps == 16
    assert done.record.work.updates > 0


def test_what_a_training_takes_is_told_by_its_updates_and_an_evaluation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lab, "update_s", lambda _: 0.5)
    monkeypatch.setattr(lab.TrainContender, "evaluation_s", lambda _: 2.0)
    words = ["num_envs=4", "train.num_steps=8", "train.minibatch_size=64"]
    assert lab.training_s(Target.typed("grid/guard", words), 65) == 3 * 0.5 + 2
