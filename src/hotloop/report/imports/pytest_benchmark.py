"""What `pytest --benchmark-json=FILE` writes."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from hotloop.core.record.record import Record
from hotloop.report.imports.result import NOWHERE, Result, record_of

TOOL = "pytest-benchmark"


def fits(data: Any) -> bool:
    return isinstance(data, dict) and {"machine_info", "commit_info", "benchmarks"} <= data.keys()


def records(data: Any) -> Iterator[Record]:
    machine, commit = data["machine_info"], data["commit_info"]
    cpu = machine.get("cpu") or {}
    for each in data["benchmarks"]:
        stats = each["stats"]
        yield record_of(
            Result(
                tool=TOOL,
                name=each["fullname"],
                seconds=stats.get("data") or [stats["median"]],
                when=datetime.fromisoformat(data["datetime"]),
                cpu=cpu.get("brand_raw") or machine.get("processor") or NOWHERE,
                cores=cpu.get("count"),
                machine=[machine.get("node"), cpu.get("brand_raw"), cpu.get("count")],
                commit=commit.get("id") or NOWHERE,
                dirty=bool(commit.get("dirty")),
                project=commit.get("project") or "",
                keys=each.get("params") or {},
            )
        )
