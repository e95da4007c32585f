from dataclasses import replace
from typing import Any

import pytest
from support.trainings import STEPS_PER_UPDATE, small

from hotloop.core.errors import ExitCode, InputError
from hotloop.lab.training import sides
from hotloop.lab.training.sides import (
    MODES,
    TrainSide,
    check_modes,
    climb,
    prepared,
    turn_steps,
    warmup_steps,
)
from hotloop.options.bench import BenchOptions
from hotloop.train.trainer import Trainer


def climbing(**given: Any) -> BenchOptions:
    return BenchOptions(target="prospector", **given)


BRIEF = climbing(rounds=2, quick=True)
QUIET = {"train__eval__every": 2, "train__eval__episodes": 2, "train__eval__steps": 3}


def test_every_rung_has_a_record_of_its_own_with_as_many_steps() -> None:
    records = climb(small(**QUIET), MODES, BRIEF)
    assert [record.run_id.rpartition("-")[2] for record in records] == list(MODES)
    assert (
        len({record.run_id for record in records}) == len({record.method.policy for record in records}) == 4
    )
    for record in records:
        assert (record.kind, record.partial, len(record.values["env_steps_per_s"])) == ("bench", False, 2)
        assert record.method.iterations == 2 * STEPS_PER_UPDATE
        assert record.path.ran == {"native": 1.0}
        assert not record.target.variant["profile"]
    assert [record.work.updates for record in records] == [0, 0, 4, 4]
    assert [record.work.env_steps for record in records[1:]] == [4 * STEPS_PER_UPDATE] * 3


def test_rungs_take_turns_in_more_than_one_order(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    turn = TrainSide.turn

    def noted(self: TrainSide, env_steps: int, run_in: int | None = None) -> object:
        seen.append(self.mode)
        return turn(self, env_steps, run_in)

    monkeypatch.setattr(TrainSide, "turn", noted)
    climb(small(), ("rollout", "trainer"), replace(BRIEF, rounds=6))
    rounds = [tuple(seen[at : at + 2]) for at in range(2, 14, 2)]
    assert set(rounds) == {("rollout", "trainer"), ("trainer", "rollout")}
    assert all(len(set(each)) == 2 for each in rounds)


def test_evaluation_has_its_turn_where_it_is_asked_for() -> None:
    assert prepared(small(), ("trainer",)).eval.every == 0
    assert prepared(small(), MODES).eval.every == sides.EVAL_EVERY
    assert prepared(small(**QUIET), MODES).eval.every == 2
    assert not prepared(small(), MODES).timed


def test_a_turn_is_whole_updates_and_whole_evaluations() -> None:
    made = small(**QUIET)
    assert turn_steps(made, ("trainer",), climbing()) == STEPS_PER_UPDATE
    assert turn_steps(made, ("trainer",), climbing(iterations=65)) == 2 * STEPS_PER_UPDATE
    assert turn_steps(made, MODES, climbing(iterations=129)) == 4 * STEPS_PER_UPDATE
    assert warmup_steps(made, climbing()) == 3 * STEPS_PER_UPDATE
    assert warmup_steps(made, climbing(warmup=1)) == STEPS_PER_UPDATE
    assert warmup_steps(made, climbing(warmup=0)) == 0


def test_a_speed_that_is_asked_for_is_held_against_every_rung() -> None:
    asked = replace(BRIEF, target_steps_per_sec=1e12, enforce_target=True)
    records = climb(small(), ("rollout", "trainer"), asked)
    assert [record.exit_code for record in records] == [ExitCode.REGRESSION] * 2


def test_ctrl_c_leaves_the_rounds_there_were(monkeypatch: pytest.MonkeyPatch) -> None:
    update, calls = Trainer.update, iter(range(100))

    def stop(self: Trainer) -> object:
        if next(calls) == 3:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Trainer, "update", stop)
    (record,) = climb(small(), ("trainer",), replace(BRIEF, rounds=9))
    assert record.partial
    assert len(record.values["env_steps_per_s"]) == 2
    assert record.work.env_steps == 2 * STEPS_PER_UPDATE


@pytest.mark.parametrize(
    ("words", "modes"),
    [("trainer", ("trainer",)), ("trainer,env_only", ("env_only", "trainer")), (",".join(MODES), MODES)],
)
def test_modes_stand_in_the_order_of_the_ladder(words: str, modes: tuple[str, ...]) -> None:
    assert check_modes(words) == modes


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean trainer"):
        check_modes("env_only,trainr")
