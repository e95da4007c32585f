"""Trainings as sides: alone, and in an A/B."""

import pytest
import torch
from support.trainings import SMALL, STEPS_PER_UPDATE, small

from hotloop.core.errors import ExitCode, InputError
from hotloop.core.progress import silent
from hotloop.core.record.comparison import AFTER, RETURNS
from hotloop.core.settings import Target
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.measure.loop import Plan
from hotloop.lab.training.sides import (
    TrainContender,
    TrainSide,
    check_one_variable,
    compare_trainings,
    with_returns,
)


def contender(**words: object) -> TrainContender:
    return TrainContender(
        Target(
            "prospector/short",
            {**SMALL, **{key.replace("__", "."): str(each) for key, each in words.items()}},
        )
    )


def test_a_rollout_alone_learns_nothing_and_training_does() -> None:
    rollout, trainer = (TrainSide(mode, small(), mode) for mode in ("rollout", "trainer"))  # type: ignore[arg-type]
    before = [torch.clone(each) for each in rollout.trainer.network.parameters()]
    for side in (rollout, trainer):
        assert side.turn(100).env_steps == 2 * STEPS_PER_UPDATE
    unchanged, changed = (
        [torch.equal(a, b) for a, b in zip(before, side.trainer.network.parameters(), strict=True)]
        for side in (rollout, trainer)
    )
    assert all(unchanged)
    assert not all(changed)


def test_a_rollout_is_labelled_where_a_run_would_begin_with_a_teacher() -> None:
    side = TrainSide("a", small(train__supervised_steps=64), "rollout")
    side.turn(1)
    assert side.counters()["decisions.greedy"] == STEPS_PER_UPDATE


def test_trainings_are_compared_update_by_update_on_one_variable() -> None:
    a, b = contender(train__update_epochs=4), contender(train__update_epochs=1)
    check_one_variable(a, b)
    plan = Plan(budget_ns=1_000_000_000)
    record = compare(a, b, CompareSettings(plan=plan, replayed=False))
    (comparison,) = record.comparisons
    assert comparison.unlike == ("train.update_epochs 4 against 1",)
    assert comparison.ratio is not None
    rounds = record.method.rounds
    assert rounds >= 6
    updates, left = divmod(record.method.iterations, STEPS_PER_UPDATE)
    assert (updates > 0, left) == (True, 0)
    assert comparison.b.work.updates == rounds * updates
    assert comparison.b.work.env_steps == rounds * record.method.iterations


def test_trainings_that_differ_in_a_variant_do_the_same_work() -> None:
    a, b = contender(train__kernels="torch"), contender(train__kernels="auto")
    check_one_variable(a, b)
    record = compare(a, b, CompareSettings(plan=Plan(budget_ns=0), replayed=False))
    (comparison,) = record.comparisons
    assert comparison.unlike == ()
    assert record.validation is None
    assert comparison.a.path.counters["updates.torch"] == comparison.a.work.updates


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ({"train__gamma": 0.5, "train__hidden": 8}, {}),
        ({"num_envs": 16}, {"train__gamma": 0.5}),
        ({"seed": 3}, {"train__seed": 3}),
    ],
)
def test_more_than_one_variable_is_refused(mine: dict[str, object], theirs: dict[str, object]) -> None:
    with pytest.raises(InputError, match="compared on one variable"):
        check_one_variable(contender(**mine), contender(**theirs))


def test_two_targets_are_refused() -> None:
    other = TrainContender(Target("prospector", SMALL))
    with pytest.raises(InputError, match="name one target"):
        check_one_variable(contender(), other)


def test_each_side_works_with_the_threads_it_was_told() -> None:
    sides = [contender(train__torch_threads=count).side("") for count in (1, 2)]
    seen = []
    for side in (*sides, *sides):
        side.turn(1)
        seen.append(torch.get_num_threads())
    torch.set_num_threads(1)
    assert seen == [1, 2, 1, 2]


def test_returns_after_as_many_steps_come_from_the_same_episodes() -> None:
    words = {"train__eval__episodes": 6, "train__eval__steps": 10}
    a, b = contender(**words), contender(**words, train__learning_rate=0.1)
    record = compare(a, b, CompareSettings(plan=Plan(budget_ns=0), replayed=False))
    both = with_returns(record, a, b, 130, silent)
    of_a, of_b = (both.values[name] for name in RETURNS)
    assert (len(of_a), len(of_b), both.values[AFTER]) == (6, 6, (130.0,))
    assert of_a != of_b
    again = with_returns(record, a, a, 130, silent)
    assert again.values[RETURNS[0]] == again.values[RETURNS[1]] == of_a


def test_ctrl_c_while_returns_are_sought_leaves_the_speeds(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: TrainContender, env_steps: int) -> tuple[float, ...]:
        raise KeyboardInterrupt

    monkeypatch.setattr(TrainContender, "returns_after", stop)
    record = compare_trainings(contender(), contender(), CompareSettings(plan=Plan(budget_ns=0)), 130)
    assert (record.partial, record.exit_code) == (True, ExitCode.INTERRUPTED)
    assert "a.ns_per_env_step" in record.values
    assert not {AFTER, *RETURNS} & record.values.keys()
