from dataclasses import replace

import pytest
from support.drawn import text
from support.records import BENCH

from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.judge.sweep import learning_check
from hotloop.lab.sweep import combinations
from hotloop.lab.sweep import tune as lab
from hotloop.lab.sweep.combinations import read
from hotloop.options.sweeps import TuneOptions
from hotloop.report.kinds.sweep import tune as sections


def test_how_long_it_takes_is_told_by_all_rungs_and_the_confirmation(monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab.updates_of(16, 6) == 16 * 8 + 8 * 14 + 4 * 26 + 2 * 26
    envs = read(Target.typed("grid/toy", ["agents=2", "num_envs=1,2"]))
    assert lab.forecast(envs, TuneOptions(target="", confirm=1)) == 2 * lab.CELL_S + 2
    monkeypatch.setattr(lab, "update_s", lambda target: 0.5 if target.keys["num_envs"] == "4" else None)
    training = read(Target.typed("grid/guard", ["num_envs=4,8", "train.num_steps=8"]))
    assert lab.forecast(training, TuneOptions(target="", confirm=1)) == 0.5 * lab.updates_of(2, 6) + 2
    assert lab.forecast(training, TuneOptions(target="")) == 0.5 * lab.updates_of(2, 6) + 240


def test_present_settings_that_cannot_be_run_are_refused_before_anything_is() -> None:
    words = ["num_envs=4", "train.num_steps=8", "num_minibatches=2,4"]
    with pytest.raises(InputError, match=r"present settings, grid/guard num_envs=4 .* cannot be run: .*4096"):
        lab.tune(read(Target.typed("grid/guard", words)), TuneOptions(target=""))


def test_a_search_among_envs_ends_with_a_confirmed_line_to_paste() -> None:
    axes = read(Target.typed("grid/toy", ["agents=2", "num_envs=1,16"]))
    record = lab.tune(axes, TuneOptions(target="", rounds=6, confirm=0.2))
    found = record.tuning
    assert found is not None
    assert found.winner == {"num_envs": "16"}
    assert found.present == "grid/toy agents=2"
    assert len(record.comparisons) == 1
    assert record.comparisons[0].b.name == "grid/toy agents=2 num_envs=16"
    assert found.words.startswith("hotloop bench grid/toy agents=2")
    assert record.kind == "tune"


@pytest.mark.parametrize("where", ["confirm", "learn"])
def test_ctrl_c_after_the_search_leaves_a_partial_record_and_learns_nothing(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def stopped(*_: object) -> Record | None:
        if where == "learn":
            return None
        return replace(BENCH, kind="compare", partial=True)

    def learning(*_: object) -> None:
        assert where == "learn", "a confirmation that was interrupted is the last thing done"
        raise KeyboardInterrupt

    monkeypatch.setattr(lab, "confirm", stopped)
    monkeypatch.setattr(lab, "learn", learning)
    monkeypatch.setattr(lab, "TURN_NS", 1_000)
    record = lab.tune(
        read(Target.typed("grid/toy", ["agents=2", "num_envs=1,2"])), TuneOptions(target="", rounds=1)
    )
    assert (record.partial, record.exit_code) == (True, 130)
    assert record.tuning is not None
    assert record.tuning.learnt is None
    assert record.tuning.floor is None


def test_a_winner_that_learns_less_is_not_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "confirm", lambda *_: None)
    monkeypatch.setattr(lab, "learn", lambda *_: learning_check(100, [5.0] * 6, [1.0] * 6))
    monkeypatch.setattr(lab, "TURN_NS", 1_000)
    record = lab.tune(
        read(Target.typed("grid/toy", ["agents=2", "num_envs=1,2"])), TuneOptions(target="", rounds=1)
    )
    assert record.exit_code == 3
    assert record.tuning is not None
    assert record.tuning.words == "hotloop bench grid/toy agents=2"
    assert record.tuning.floor is None
    assert "the present settings stay: the winner learns less" in text(sections(record))


def test_the_search_leaves_the_confirmation_its_time_and_of_programs_half() -> None:
    envs = read(Target.typed("grid/toy", ["agents=2", "num_envs=1,2"]))
    asked = TuneOptions(target="", confirm=1, minutes=100 / 60)
    assert lab.reserved_s(envs, asked) == 2
    assert lab.reserved_s(combinations.read_program(["python", "x.py", "--n", "{1,2}"]), asked) == 50


def test_the_present_settings_of_a_program_are_its_own_defaults() -> None:
    for words, present in (
        ("python x.py --n {1,2} --seed {seed}", "python x.py --seed 1"),
        ("python x.py --n={1,2} k={3,4}", "python x.py"),
        ("python x.py {1,2} -m {3,4}", "python x.py 1"),
        ("python x.py --n 1 2 --fast", "python x.py --fast"),
    ):
        axes = combinations.read_program(words.split())
        assert combinations.program_of(axes.present).name == present
    assert combinations.program_of(combinations.read_program(["x", "{1,2}"], "y 3").present).name == "y 3"
