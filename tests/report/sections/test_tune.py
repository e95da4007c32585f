from dataclasses import replace

from support.drawn import text
from support.shelves import tuned

from hotloop.report.sections.tune import tune

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
