"""Records as pyperf's benchmark suites: seconds of one env-step, one value a round."""

import json
from collections.abc import Sequence
from typing import Any

from hotloop.core.record.record import Record
from hotloop.report.exports.speeds import Speed, speeds

VERSION = "1.0"


def export(records: Sequence[Record]) -> str:
    """A suite of the latest run of every target; `python -m pyperf stats` reads it."""
    ordered = sorted(records, key=lambda record: record.created)
    latest = {
        speed.record.target.words: speed for speed in speeds(ordered, headline=True) if all(speed.values)
    }
    return (
        json.dumps({"version": VERSION, "benchmarks": [benchmark(each) for each in latest.values()]}) + "\n"
    )


def benchmark(speed: Speed) -> dict[str, Any]:
    record = speed.record
    about = {
        "name": record.target.words,
        "unit": "second",
        "loops": 1,
        "hotloop_run_id": record.run_id,
        "hotloop_commit": speed.commit,
        "cpu_model_name": record.machine["cpu"],
    }
    run = {"values": [1.0 / value for value in speed.values], "metadata": {"date": date(record.created)}}
    return {"metadata": about, "runs": [run]}


def date(created: str) -> str:
    """As pyperf writes it: without a zone."""
    return created[:19].replace("T", " ")
