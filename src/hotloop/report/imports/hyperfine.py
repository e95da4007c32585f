"""What `hyperfine --export-json FILE` writes; the format has no date, so the file's own is given."""

from collections.abc import Iterator
from typing import Any

from hotloop.core.record.record import Record
from hotloop.report.imports.result import Result, record_of

TOOL = "hyperfine"


def fits(data: Any) -> bool:
    results = data.get("results") if isinstance(data, dict) else None
    return isinstance(results, list) and all(isinstance(each, dict) and "command" in each for each in results)


def records(data: Any) -> Iterator[Record]:
    for each in data["results"]:
        yield record_of(
            Result(
                tool=TOOL,
                name=each["command"],
                seconds=each.get("times") or [each["median"]],
                when=data["hotloop_read_from"],
                keys=each.get("parameters") or {},
            )
        )
