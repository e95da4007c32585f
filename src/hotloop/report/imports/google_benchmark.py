"""What a program built with google-benchmark writes with `--benchmark_format=json`."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from hotloop.core.record.record import Record
from hotloop.report.imports.result import NOWHERE, Result, record_of

TOOL = "google-benchmark"

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def fits(data: Any) -> bool:
    return isinstance(data, dict) and {"context", "benchmarks"} <= data.keys() and "date" in data["context"]


def records(data: Any) -> Iterator[Record]:
    """One record a benchmark, its repetitions the rounds; aggregates are left to us."""
    context = data["context"]
    found: dict[str, list[float]] = {}
    for each in data["benchmarks"]:
        if each.get("run_type", "iteration") == "iteration" and not each.get("error_occurred"):
            seconds = each["real_time"] * UNITS[each.get("time_unit", "ns")]
            found.setdefault(each.get("run_name", each["name"]), []).append(seconds)
    for name, seconds in found.items():
        yield record_of(
            Result(
                tool=TOOL,
                name=name,
                seconds=seconds,
                when=datetime.fromisoformat(context["date"]),
                cpu=f"{context.get('num_cpus', '?')} cores of {context.get('mhz_per_cpu', '?')} MHz",
                cores=context.get("num_cpus"),
                machine=[context.get("host_name", NOWHERE), context.get("num_cpus"), context.get("caches")],
            )
        )
