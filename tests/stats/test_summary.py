import dataclasses
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.errors import InputError
from hotloop.core.record import Method, Metric, Record
from hotloop.core.record.metadata import Described, PathRan, Work
from hotloop.stats.summary import deviation, label, summarise, with_metrics

rounds = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=50)


def test_a_summary_of_known_values():
    seen = summarise([1, 2, 3, 4, 5, 6, 27])
    assert (seen.median, seen.min, seen.max) == (4, 1, 27)
    assert deviation([1, 2, 3, 4, 5, 6, 27]) == 2
    assert seen.mean == pytest.approx(48 / 7)
    assert seen.cv == pytest.approx(statistics.stdev([1, 2, 3, 4, 5, 6, 27]) / (48 / 7))
    assert seen.ci95 == (1, 27)


def test_the_standard_deviation_is_that_of_a_sample():
    assert summarise([9.0, 11.0]).cv == pytest.approx(2**0.5 / 10)


def test_one_value_has_no_spread_to_tell_of():
    seen = summarise([3.0])
    assert (seen.median, seen.cv, seen.ci95, deviation([3.0])) == (3.0, None, None, 0.0)


def test_a_mean_of_zero_has_no_relative_spread():
    assert summarise([-1.0, 1.0]).cv is None


@pytest.mark.parametrize("values", [[], [1.0, float("nan")], [float("inf")]])
def test_what_is_no_finite_number_is_refused(values):
    with pytest.raises(InputError, match="expected one finite number or more"):
        summarise(values)


@given(rounds)
def test_a_summary_stays_inside_its_values(values):
    seen = summarise(values)
    assert seen.min <= seen.median <= seen.max
    assert seen.min <= seen.mean * (1 + 1e-12)
    assert seen.mean <= seen.max * (1 + 1e-12)


@given(rounds, st.randoms())
def test_the_order_of_the_values_does_not_matter(values, dice):
    shuffled = dice.sample(values, len(values))
    seen, again = summarise(values), summarise(shuffled)
    assert (again.median, again.ci95) == (seen.median, seen.ci95)
    assert deviation(shuffled) == deviation(values)


@pytest.mark.parametrize(
    ("cv", "word"),
    [
        (0.0, "excellent"),
        (0.049, "excellent"),
        (0.05, "good"),
        (0.099, "good"),
        (0.10, "fair"),
        (0.199, "fair"),
        (0.20, "unstable"),
        (3.0, "unstable"),
        (None, "unknown"),
    ],
)
def test_a_spread_has_a_word(cv, word):
    assert label(cv) == word


RECORD = Record(
    run_id="r",
    kind="bench",
    created="2025-01-01T00:00:00+00:00",
    target=Described(
        name="grid", world="grid", impl="native", device="cpu", params={}, workload_hash="0", variant={}
    ),
    machine={},
    code={},
    method=Method(rounds=6, iterations=1, warmup=0, threads=1, order="single", clock="tsc", policy="random"),
    work=Work(),
    path=PathRan(requested="native"),
    values={"env_steps_per_s": (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), "games_per_s": ()},
)


def test_metrics_are_derived_from_the_raw_values():
    seen = with_metrics(RECORD).metrics["env_steps_per_s"]
    assert (seen.median, seen.mean, seen.ci95, seen.min, seen.max) == (3.5, 3.5, (1.0, 6.0), 1.0, 6.0)


def test_a_metric_that_was_tampered_with_is_computed_anew():
    flattered = Metric(median=99.0, mean=99.0, cv=0.0, ci95=None, min=99.0, max=99.0)
    record = dataclasses.replace(RECORD, metrics={"env_steps_per_s": flattered})
    assert with_metrics(record) == with_metrics(RECORD)


def test_a_metric_without_values_is_left_out():
    assert list(with_metrics(RECORD).metrics) == ["env_steps_per_s"]
