"""Records as github-action-benchmark reads them with `tool: customBiggerIsBetter`."""

import json
from collections.abc import Sequence

from hotloop.core.record.record import Record
from hotloop.report.exports.speeds import Speed, speeds


def export(records: Sequence[Record]) -> str:
    """The latest speed of every target that is judged."""
    ordered = sorted(records, key=lambda record: record.created)
    latest = {speed.record.target.words: speed for speed in speeds(ordered, headline=True)}
    return json.dumps([entry(speed) for speed in latest.values()], indent=1) + "\n"


def entry(speed: Speed) -> dict[str, object]:
    metric, record = speed.metric, speed.record
    around = (
        f"{metric.ci95[0]:.6g} to {metric.ci95[1]:.6g}"
        if metric.ci95
        else f"{metric.min:.6g} to {metric.max:.6g}"
    )
    return {
        "name": record.target.words,
        "unit": speed.unit,
        "value": metric.median,
        "range": around,
        "extra": f"{record.run_id}, {record.machine['cpu']}",
    }
