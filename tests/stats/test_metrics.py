import dataclasses

from hotloop.core.record import Described, Method, Metric, PathRan, Record, Work
from hotloop.stats.summary import with_metrics

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
