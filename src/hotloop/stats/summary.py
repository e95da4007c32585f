"""The center and the spread of a set of rounds, and the metrics of a record derived from them."""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median, stdev
from typing import Literal

from hotloop.core.errors import InputError
from hotloop.core.record import Metric, Record
from hotloop.stats.intervals import sign_interval

Label = Literal["excellent", "good", "fair", "unstable", "unknown"]


LARGEST = 1e150  # Values are below it: their squares are still numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One metric over its rounds."""

    median: float
    mean: float
    cv: float | None  # Sample standard deviation over mean; None for one value or a mean of zero
    ci95: tuple[float, float] | None  # Exact sign-test interval of the median; None below six values
    min: float
    max: float
    mad: float  # Median distance from the median, not scaled to a standard deviation


def summarise(values: Sequence[float]) -> Summary:
    """Summarise raw values, one a round."""
    if not values or not all(abs(value) < LARGEST for value in values):
        raise InputError(f"cannot summarise {reprlib.repr(list(values))}: expected one finite number or more")
    return Summary(
        median=median(values),
        mean=fmean(values),
        cv=variation(values),
        ci95=sign_interval(values),
        min=min(values),
        max=max(values),
        mad=deviation(values),
    )


def variation(values: Sequence[float]) -> float | None:
    """Return the coefficient of variation; None if it is undefined."""
    mean = fmean(values)
    return stdev(values) / abs(mean) if len(values) > 1 and mean else None


def deviation(values: Sequence[float]) -> float:
    """Return the median absolute deviation from the median."""
    centre = median(values)
    return median(abs(value - centre) for value in values)


NORMAL = 1.4826  # A standard deviation over the median absolute deviation, of normal values


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation over the median, as the middle half of positive values has it."""
    return NORMAL * deviation(values) / median(values)


def label(cv: float | None) -> Label:
    """Return a word for a spread: under 5% excellent, 10 good, 20 fair, else unstable."""
    if cv is None:
        return "unknown"
    if cv < 0.05:
        return "excellent"
    if cv < 0.10:
        return "good"
    return "fair" if cv < 0.20 else "unstable"


def with_metrics(record: Record) -> Record:
    """Return the record with its metrics computed anew, for one just made or just read."""
    return replace(record, metrics={name: metric(values) for name, values in record.values.items() if values})


def metric(values: Sequence[float]) -> Metric:
    """Return the statistics that a record keeps of one metric."""
    all_of_it = summarise(values)
    return Metric(
        median=all_of_it.median,
        mean=all_of_it.mean,
        cv=all_of_it.cv,
        ci95=all_of_it.ci95,
        min=all_of_it.min,
        max=all_of_it.max,
    )
