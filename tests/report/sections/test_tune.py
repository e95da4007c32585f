from dataclasses import replace

import pytest
from support.drawn import text
from support.shelves import compared, tuned

from hotloop.judge.sweep import learning_check
from hotloop.report.kinds.sweep import tune

MORE = {"train.torch_threads": "1", "train.minibatch_size": "4096"}


def test_two_axes_have_columns_of_their_own() -> None:
    drawn = text(tune(tuned()), width=110)
    assert "num_envs   threads" in drawn


def test_many_axes_share_a_column_and_no_figure_is_cut() -> None:
    record = tuned()
    assert record.tuning is not None
    found = replace(
        record.tuning,
        axes=record.tuning.axes | {name: (value, "2") for name, value in MORE.items()},
        tried=tuple(
            replace(each, at=each.at | MORE, low=each.median, high=2 * each.median)
            for each in record.tuning.tried
        ),
        winner=record.tuning.winner | MORE,
    )
    drawn = text(tune(replace(record, tuning=found)), width=100)
    assert "settings: num_envs / threads / train.torch_threads / train.minibatch_size" in drawn
    assert "128 / 2 / 1 / 4096" in drawn
    assert "…" not in drawn
    assert "winner" in drawn


@pytest.mark.parametrize(
    ("winner", "word"), [((5.0, 6.0), "better: +1 ["), ((3.0, 5.5), "cannot tell: -0.25 [")]
)
def test_what_is_learnt_is_told_beside_what_the_present_settings_learn(
    winner: tuple[float, float], word: str
) -> None:
    record = tuned()
    assert record.tuning is not None
    found = replace(
        record.tuning,
        learnt=learning_check(100, (4.0, 5.0), winner),
        floor=1e3,
        words="hotloop train grid/guard",
    )
    drawn = text(tune(replace(record, tuning=found)), width=150)
    assert word in drawn
    assert "to the present settings' 4.5 of return after 100 env-steps, 2 seeds" in drawn
    assert "--write-floor" not in drawn  # a gate measures no training


def test_too_few_rounds_for_an_interval_are_no_number_of_times() -> None:
    [found] = compared().comparisons
    untold = replace(found, ratio=None, outcome="cannot tell")
    drawn = text(tune(replace(tuned(), comparisons=(untold,))), width=110)
    assert ": cannot tell if it is faster than the present settings" in drawn
    assert "no interval times" not in drawn
