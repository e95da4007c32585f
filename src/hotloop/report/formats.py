"""The formats of other tools: speeds of records written in them, and results read as records."""

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from hotloop.core.errors import InputError
from hotloop.core.files import small_text
from hotloop.core.record import RUNS_PER_S, Method, Metric, Record, new_record
from hotloop.core.record.codec import ForeignError, parse
from hotloop.core.record.metadata import CodeInfo, Described, Machine, PathRan, ProjectCode, Work, own_commit
from hotloop.stats.summary import with_metrics


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
        formula = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for one
        writer.writerow(
            [
                *(f"'{text}" if text.startswith(formula) else text for text in (*words, speed.name)),
                *(metric.median, low, high, metric.mean),
                "" if metric.cv is None else metric.cv,
                len(speed.values),
                speed.commit,
                *(record.machine["fingerprint"], record.machine["cpu"]),
                *(record.target.impl, record.exit_code),
            ]
        )
    return file.getvalue()


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
    benchmarks = []
    for speed in latest_headlines(records, without_zeros=True):  # a round without a step has no time per step
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
        benchmarks.append({"metadata": metadata, "runs": [run]})
    return json.dumps({"version": PYPERF_VERSION, "benchmarks": benchmarks}) + "\n"


# Every format by the name that `report --export` takes.
EXPORTS = {
    "csv": export_csv,
    "github": export_github,
    "openmetrics": export_openmetrics,
    "pyperf": export_pyperf,
}


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
    fits: Callable[[dict[str, Any]], bool]  # Whether a parsed JSON object has the tool's format
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
        if isinstance(data, dict) and tool.fits(data):
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
    project = ProjectCode(commit=result.commit, dirty=result.dirty, root=result.project or UNKNOWN)
    return with_metrics(
        new_record(
            "bench",
            now=result.when,
            name=" ".join([name, *map(str, result.keys.values())]),
            code=CodeInfo(
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
    # Written by `pytest --benchmark-json=FILE`.
    Tool(
        "pytest-benchmark",
        lambda data: {"machine_info", "commit_info", "benchmarks"} <= data.keys(),
        pytest_benchmark_results,
    ),
    # By google-benchmark with `--benchmark_format=json`.
    Tool(
        "google-benchmark",
        lambda data: {"context", "benchmarks"} <= data.keys() and "date" in data["context"],
        google_benchmark_results,
    ),
    # By airspeed velocity: `results/MACHINE/COMMIT-ENV.json`, its second format.
    Tool("asv", lambda data: {"commit_hash", "results", "result_columns"} <= data.keys(), asv_results),
    # By `hyperfine --export-json FILE`.
    Tool(
        "hyperfine",
        lambda data: (
            isinstance(data.get("results"), list)
            and all(isinstance(each, dict) and "command" in each for each in data["results"])
        ),
        hyperfine_results,
    ),
)
