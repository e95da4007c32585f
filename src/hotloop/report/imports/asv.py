"""What airspeed velocity keeps in `results/MACHINE/COMMIT-ENV.json`, of its second format."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from typing import Any

from hotloop.core.record.record import Record
from hotloop.report.imports.result import NOWHERE, Result, record_of

TOOL = "asv"


def fits(data: Any) -> bool:
    return isinstance(data, dict) and {"commit_hash", "results", "result_columns"} <= data.keys()


def is_timed(name: str) -> bool:
    """Whether a benchmark's values are seconds; others track sizes, memory or whatever they like."""
    return name.rpartition(".")[2].lower().startswith("time")


def records(data: Any) -> Iterator[Record]:
    """One record a benchmark and choice of its parameters; what failed has no value and is left out."""
    machine, columns = data.get("params", {}), data["result_columns"]
    timed = {name: row for name, row in data["results"].items() if is_timed(name)}
    for name, row in timed.items():
        told = dict(zip(columns, row or [], strict=False))
        samples = told.get("samples") or []
        choices = [dict(enumerate(each)) for each in product(*(told.get("params") or []))] or [{}]
        for index, (value, choice) in enumerate(zip(told.get("result") or [], choices, strict=False)):
            if value is None:
                continue
            yield record_of(
                Result(
                    tool=TOOL,
                    name=name,
                    seconds=(samples[index] if index < len(samples) else None) or [value],
                    when=datetime.fromtimestamp(data.get("date", 0) / 1e3, UTC),
                    cpu=machine.get("cpu") or NOWHERE,
                    machine=[machine.get("machine"), machine.get("cpu"), machine.get("num_cpu")],
                    commit=data["commit_hash"],
                    project=data.get("project", ""),
                    keys={f"param{key}": str(each) for key, each in choice.items()},
                )
            )
