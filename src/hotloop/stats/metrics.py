"""The metrics of a record, derived from its raw values and from nothing else."""

from collections.abc import Sequence
from dataclasses import replace

from hotloop.core.record import Metric, Record
from hotloop.stats.summary import summarise


def with_metrics(record: Record) -> Record:
    """The record with its metrics computed anew, for one just made or just read."""
    return replace(record, metrics={name: metric(values) for name, values in record.values.items() if values})


def metric(values: Sequence[float]) -> Metric:
    """The statistics that a record keeps of one metric."""
    all_of_it = summarise(values)
    return Metric(
        median=all_of_it.median,
        mean=all_of_it.mean,
        cv=all_of_it.cv,
        ci95=all_of_it.ci95,
        min=all_of_it.min,
        max=all_of_it.max,
    )
