"""Records as OpenMetrics text: the latest of every target, for a scraper or a push gateway."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from hotloop.core.record.record import Record
from hotloop.report.exports.speeds import Speed, speeds

HELP = "Median over the rounds of the latest run, and its 95% interval."


def export(records: Sequence[Record]) -> str:
    """One family a metric, its samples together, and the end that the format asks for."""
    families: dict[str, dict[tuple[str, ...], Speed]] = {}
    for speed in speeds(sorted(records, key=lambda record: record.created)):
        record = speed.record
        key = (record.kind, record.target.words, record.target.impl, record.machine["fingerprint"])
        families.setdefault(speed.name, {})[key] = speed
    lines = [line for name, found in families.items() for line in family(name, list(found.values()))]
    return "\n".join([*lines, "# EOF"]) + "\n"


def family(name: str, found: Sequence[Speed]) -> Iterator[str]:
    yield f"# TYPE {named(name)} gauge"
    yield f"# HELP {named(name)} {HELP}"
    for speed in found:
        metric = speed.metric
        yield sample(speed, "median", metric.median)
        if metric.ci95:
            yield sample(speed, "low", metric.ci95[0])
            yield sample(speed, "high", metric.ci95[1])


def sample(speed: Speed, stat: str, value: float) -> str:
    record = speed.record
    labels = {
        "target": record.target.words,
        "kind": record.kind,
        "impl": record.target.impl,
        "machine": record.machine["fingerprint"],
        "commit": speed.commit,
        "stat": stat,
    }
    told = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
    made = datetime.fromisoformat(record.created).timestamp()
    return f"{named(speed.name)}{{{told}}} {value!r} {made:.3f}"


def named(metric: str) -> str:
    """A metric by the letters that the format allows: contest.games_per_s has a point."""
    return f"hotloop_{re.sub(r'[^a-zA-Z0-9_]', '_', metric)}"


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
