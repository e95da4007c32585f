"""Read benchmark results of other tools as records."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from hotloop.core.errors import InputError
from hotloop.core.files import small_text
from hotloop.core.record import RUNS_PER_S, Method, Record, new_record
from hotloop.core.record.codec import ForeignError, parse
from hotloop.core.record.metadata import Code, Described, Machine, PathRan, Project, Work
from hotloop.stats.summary import with_metrics

UNKNOWN = "unknown"  # For facts that a file does not hold
WRITTEN = "hotloop_read_from"  # The key under which the file's own date stands, for formats that have none
SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}  # Units of google-benchmark


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedResult:
    """One benchmark that another tool measured."""

    name: str
    seconds: Sequence[float]  # One per repetition
    when: datetime
    cpu: str = UNKNOWN
    cores: int | None = None
    machine: Any = None  # All that the file says of the machine: files that say the same are of one machine
    commit: str = UNKNOWN
    dirty: bool = False
    project: str = ""
    keys: dict[str, Any] = field(default_factory=dict)


class Tool(NamedTuple):
    """A tool whose results can be read."""

    name: str
    fits: Callable[[Any], bool]  # Whether parsed JSON has the tool's format
    results: Callable[[Any], Iterator[ImportedResult]]


def read_results(path: Path) -> list[Record]:
    """Return the results in a file as records; InputError if no known tool has written it."""
    try:
        data: Any = parse(small_text(path))
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, ForeignError) as error:
        raise InputError(f"{path}: {error}") from None
    for tool in TOOLS:
        if tool.fits(data):
            try:
                return [record_of(tool.name, each) for each in tool.results(data | {WRITTEN: written})]
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise InputError(f"{path}: {tool.name} writes other files: {error!r:.80}") from None
    known = ", ".join(tool.name for tool in TOOLS)
    raise InputError(f"{path}: no results of a tool that is known here: expected JSON of {known}")


def record_of(tool: str, result: ImportedResult) -> Record:
    """Return a record whose rounds are the repetitions; more runs per second are better."""
    seconds = [each for each in result.seconds if each > 0]
    name = f"{tool}:{result.name}"
    project = Project(commit=result.commit, dirty=result.dirty, root=result.project or UNKNOWN)
    return with_metrics(
        new_record(
            "bench",
            now=result.when,
            name=" ".join([name, *map(str, result.keys.values())]),
            code=Code(
                version=tool,
                commit=result.commit,
                dirty=result.dirty,
                compiler=None,
                flags=None,
                project=project,
            ),
            target=Described(
                name=name,
                world=None,
                impl="foreign",
                device="cpu",
                params=dict(result.keys),
                workload_hash=digest([name, result.keys]),
                variant={},
                keys=dict(result.keys),
            ),
            machine=Machine(
                fingerprint=digest(result.machine or result.cpu),
                cpu=result.cpu,
                cores=result.cores,
                gpu=None,
                limits={"cpus": None, "memory_bytes": None},
            ),
            method=Method(
                rounds=len(seconds),
                iterations=1,
                warmup=0,
                threads=1,
                order="single",
                clock=tool,
                policy="none",
                headline=RUNS_PER_S,
            ),
            work=Work(runs=len(seconds)),
            path=PathRan(requested="foreign"),
            values={RUNS_PER_S: [1.0 / each for each in seconds]},
        )
    )


def digest(value: Any) -> str:
    """Return twelve hex digits that equal values share."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:12]


def is_pytest_benchmark(data: Any) -> bool:
    """Return whether `pytest --benchmark-json=FILE` wrote it."""
    return isinstance(data, dict) and {"machine_info", "commit_info", "benchmarks"} <= data.keys()


def pytest_benchmark_results(data: Any) -> Iterator[ImportedResult]:
    """Yield every benchmark, its rounds the repetitions."""
    machine, commit = data["machine_info"], data["commit_info"]
    cpu = machine.get("cpu") or {}
    for each in data["benchmarks"]:
        stats = each["stats"]
        yield ImportedResult(
            name=each["fullname"],
            seconds=stats.get("data") or [stats["median"]],
            when=datetime.fromisoformat(data["datetime"]),
            cpu=cpu.get("brand_raw") or machine.get("processor") or UNKNOWN,
            cores=cpu.get("count"),
            machine=[machine.get("node"), cpu.get("brand_raw"), cpu.get("count")],
            commit=commit.get("id") or UNKNOWN,
            dirty=bool(commit.get("dirty")),
            project=commit.get("project") or "",
            keys=each.get("params") or {},
        )


def is_google_benchmark(data: Any) -> bool:
    """Return whether google-benchmark wrote it with `--benchmark_format=json`."""
    return isinstance(data, dict) and {"context", "benchmarks"} <= data.keys() and "date" in data["context"]


def google_benchmark_results(data: Any) -> Iterator[ImportedResult]:
    """Yield every benchmark with its repetitions; its aggregates are left out, Hotloop makes its own."""
    context = data["context"]
    repetitions: dict[str, list[float]] = {}
    for each in data["benchmarks"]:
        if each.get("run_type", "iteration") == "iteration" and not each.get("error_occurred"):
            seconds = each["real_time"] * SECONDS[each.get("time_unit", "ns")]
            repetitions.setdefault(each.get("run_name", each["name"]), []).append(seconds)
    for name, values in repetitions.items():
        yield ImportedResult(
            name=name,
            seconds=values,
            when=datetime.fromisoformat(context["date"]),
            cpu=f"{context.get('num_cpus', '?')} cores of {context.get('mhz_per_cpu', '?')} MHz",
            cores=context.get("num_cpus"),
            machine=[context.get("host_name", UNKNOWN), context.get("num_cpus"), context.get("caches")],
        )


def is_asv(data: Any) -> bool:
    """Return whether airspeed velocity wrote it: `results/MACHINE/COMMIT-ENV.json`, its second format."""
    return isinstance(data, dict) and {"commit_hash", "results", "result_columns"} <= data.keys()


def asv_results(data: Any) -> Iterator[ImportedResult]:
    """Yield one result per timed benchmark and choice of its parameters; failed ones have no value."""
    machine, columns = data.get("params", {}), data["result_columns"]
    for name, row in data["results"].items():
        # Benchmarks of other names track sizes, memory or anything else.
        if not name.rpartition(".")[2].lower().startswith("time"):
            continue
        fields = dict(zip(columns, row or [], strict=False))
        samples = fields.get("samples") or []
        choices = [dict(enumerate(each)) for each in product(*(fields.get("params") or []))] or [{}]
        for index, (value, choice) in enumerate(zip(fields.get("result") or [], choices, strict=False)):
            if value is None:
                continue
            yield ImportedResult(
                name=name,
                seconds=(samples[index] if index < len(samples) else None) or [value],
                when=datetime.fromtimestamp(data.get("date", 0) / 1e3, UTC),
                cpu=machine.get("cpu") or UNKNOWN,
                machine=[machine.get("machine"), machine.get("cpu"), machine.get("num_cpu")],
                commit=data["commit_hash"],
                project=data.get("project", ""),
                keys={f"param{key}": str(each) for key, each in choice.items()},
            )


def is_hyperfine(data: Any) -> bool:
    """Return whether `hyperfine --export-json FILE` wrote it."""
    results = data.get("results") if isinstance(data, dict) else None
    return isinstance(results, list) and all(isinstance(each, dict) and "command" in each for each in results)


def hyperfine_results(data: Any) -> Iterator[ImportedResult]:
    """Yield every command; the format has no date, so the file's own is used."""
    for each in data["results"]:
        yield ImportedResult(
            name=each["command"],
            seconds=each.get("times") or [each["median"]],
            when=data[WRITTEN],
            keys=each.get("parameters") or {},
        )


TOOLS = (
    Tool("pytest-benchmark", is_pytest_benchmark, pytest_benchmark_results),
    Tool("google-benchmark", is_google_benchmark, google_benchmark_results),
    Tool("asv", is_asv, asv_results),
    Tool("hyperfine", is_hyperfine, hyperfine_results),
)
