"""Records as comma-separated values: one row a record and metric."""

import csv
import io
from collections.abc import Sequence

from hotloop.core.record.record import Record
from hotloop.report.exports.speeds import Speed, speeds

COLUMNS = (
    "run_id", "created", "kind", "target", "label", "metric", "median", "low", "high", "mean", "cv", "rounds",
    "commit", "machine", "cpu", "impl", "exit_code",
)  # fmt: skip


def export(records: Sequence[Record]) -> str:
    """A header and the rows, lines ended as RFC 4180 has it."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    writer.writerows(row(speed) for speed in speeds(records))
    return file.getvalue()


def row(speed: Speed) -> tuple[object, ...]:
    record, metric = speed.record, speed.metric
    low, high = metric.ci95 or ("", "")
    told = (record.run_id, record.created, record.kind, record.target.words, record.label or "", speed.name)
    numbers = (
        metric.median,
        low,
        high,
        metric.mean,
        "" if metric.cv is None else metric.cv,
        len(speed.values),
    )
    machine = (record.machine["fingerprint"], record.machine["cpu"])
    return (*map(plain, told), *numbers, speed.commit, *machine, record.target.impl, record.exit_code)


def plain(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
