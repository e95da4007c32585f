"""Write the speeds of records in the formats of other tools."""

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hotloop.core.record import Metric, Record
from hotloop.core.record.metadata import own_commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """One metric of one record."""

    record: Record
    name: str
    metric: Metric
    values: tuple[float, ...]  # One per round

    @property
    def commit(self) -> str:
        """Return the commit that ran, with `-dirty` if it was changed since."""
        commit, dirty = own_commit(self.record.code)
        return f"{commit}-dirty" if dirty else commit

    @property
    def unit(self) -> str:
        """Return the unit as people write it, such as `env-steps/s`."""
        return self.name.removesuffix("_per_s").replace("_", "-") + "/s"


def speeds(records: Sequence[Record], *, headline: bool = False) -> Iterator[Speed]:
    """Yield every speed of complete records; with `headline` only the one that is judged."""
    for record in records:
        for name, metric in record.metrics.items():
            is_speed = name.endswith("_per_s") and name in record.values
            if is_speed and not record.partial and (not headline or name == record.method.headline):
                yield Speed(record=record, name=name, metric=metric, values=record.values[name])


def latest_headlines(records: Sequence[Record], *, without_zeros: bool = False) -> list[Speed]:
    """Return the latest judged speed of every target, perhaps only of those that stepped in every round."""
    ordered = sorted(records, key=lambda record: record.created)
    latest = {
        speed.record.target.words: speed
        for speed in speeds(ordered, headline=True)
        if all(speed.values) or not without_zeros
    }
    return list(latest.values())


# Comma-separated values: one row per record and metric.

CSV_COLUMNS = (
    "run_id", "created", "kind", "target", "label", "metric", "median", "low", "high", "mean", "cv", "rounds",
    "commit", "machine", "cpu", "impl", "exit_code",
)  # fmt: skip


def export_csv(records: Sequence[Record]) -> str:
    """Return a header and the rows; lines end as RFC 4180 says."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(CSV_COLUMNS)
    for speed in speeds(records):
        record, metric = speed.record, speed.metric
        words = (record.run_id, record.created, record.kind, record.target.words, record.label or "")
        low, high = metric.ci95 or ("", "")
        writer.writerow(
            [
                *map(escape_formula, (*words, speed.name)),
                *(metric.median, low, high, metric.mean),
                "" if metric.cv is None else metric.cv,
                len(speed.values),
                speed.commit,
                *(record.machine["fingerprint"], record.machine["cpu"]),
                *(record.target.impl, record.exit_code),
            ]
        )
    return file.getvalue()


def escape_formula(text: str) -> str:
    """Return text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


# JSON as github-action-benchmark reads it with `tool: customBiggerIsBetter`.


def export_github(records: Sequence[Record]) -> str:
    """Return the latest judged speed of every target."""
    entries = []
    for speed in latest_headlines(records):
        low, high = speed.metric.ci95 or (speed.metric.min, speed.metric.max)
        entries.append(
            {
                "name": speed.record.target.words,
                "unit": speed.unit,
                "value": speed.metric.median,
                "range": f"{low:.6g} to {high:.6g}",
                "extra": f"{speed.record.run_id}, {speed.record.machine['cpu']}",
            }
        )
    return json.dumps(entries, indent=1) + "\n"


# OpenMetrics text, for a scraper or a push gateway.

OPENMETRICS_HELP = "Median over the rounds of the latest run, and its 95% interval."


def export_openmetrics(records: Sequence[Record]) -> str:
    """Return one family per metric, each with the latest run of every target, and the end mark."""
    families: dict[str, dict[tuple[str, ...], Speed]] = {}
    for speed in speeds(sorted(records, key=lambda record: record.created)):
        record = speed.record
        key = (record.kind, record.target.words, record.target.impl, record.machine["fingerprint"])
        families.setdefault(speed.name, {})[key] = speed
    lines = []
    for name, family in families.items():
        lines += [f"# TYPE {metric_name(name)} gauge", f"# HELP {metric_name(name)} {OPENMETRICS_HELP}"]
        for speed in family.values():
            values = [("median", speed.metric.median)]
            if speed.metric.ci95:
                values += zip(("low", "high"), speed.metric.ci95, strict=True)
            lines += [sample_line(speed, stat, value) for stat, value in values]
    return "\n".join([*lines, "# EOF"]) + "\n"


def sample_line(speed: Speed, stat: str, value: float) -> str:
    """Return one sample with its labels and the time of its run."""
    record = speed.record
    labels = {
        "target": record.target.words,
        "kind": record.kind,
        "impl": record.target.impl,
        "machine": record.machine["fingerprint"],
        "commit": speed.commit,
        "stat": stat,
    }
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
    pairs = ",".join(f'{name}="{text.translate(escapes)}"' for name, text in labels.items())
    created = datetime.fromisoformat(record.created).timestamp()
    return f"{metric_name(speed.name)}{{{pairs}}} {value!r} {created:.3f}"


def metric_name(metric: str) -> str:
    """Return a metric's name in the letters that the format allows: contest.games_per_s has a point."""
    return f"hotloop_{re.sub(r'[^a-zA-Z0-9_]', '_', metric)}"


# A suite of pyperf: seconds of one step, one value per round.

PYPERF_VERSION = "1.0"


def export_pyperf(records: Sequence[Record]) -> str:
    """Return a suite of the latest run of every target; `python -m pyperf stats` reads it."""
    # A round without a step has no time per step.
    benchmarks = [pyperf_benchmark(speed) for speed in latest_headlines(records, without_zeros=True)]
    return json.dumps({"version": PYPERF_VERSION, "benchmarks": benchmarks}) + "\n"


def pyperf_benchmark(speed: Speed) -> dict[str, Any]:
    """Return one benchmark with a single run."""
    record = speed.record
    metadata = {
        "name": record.target.words,
        "unit": "second",
        "loops": 1,
        "hotloop_run_id": record.run_id,
        "hotloop_commit": speed.commit,
        "cpu_model_name": record.machine["cpu"],
    }
    date = record.created[:19].replace("T", " ")  # pyperf writes no time zone
    run = {"values": [1.0 / value for value in speed.values], "metadata": {"date": date}}
    return {"metadata": metadata, "runs": [run]}


# Every format by the name that `report --export` takes.
EXPORTS = {
    "csv": export_csv,
    "github": export_github,
    "openmetrics": export_openmetrics,
    "pyperf": export_pyperf,
}
