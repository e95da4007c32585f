"""The options of report."""

from dataclasses import dataclass
from pathlib import Path

from hotloop.options.option import JsonOptions, OptionRule, argument, option

EXPORTS = ("csv", "openmetrics", "github", "pyperf")

FORMATS = ("html", "markdown", "json", *EXPORTS)

BOTH = "--accept and --why belong together: which run, and the reason"


@dataclass(frozen=True, kw_only=True)
class ReportOptions(JsonOptions):
    """Put every record on one page that opens offline.

    One file with trends, phases, flame graphs, comparisons and trainings. The trend has one point for each
    commit and marks where the speed changed. --read adds results of other tools. --serve follows records and
    trainings as they are written.
    """

    examples = (
        "hotloop report",
        "hotloop report artifacts/throughput -o report.html",
        "hotloop report --serve",
        "hotloop report --format markdown",
        "hotloop report --format openmetrics -o speeds.txt",
        "hotloop report --read bench.json",
        "hotloop report --accept 20260701-120000-1a2b3c4d-grid-toy --why 'two more channels'",
    )
    rules = (
        OptionRule(given=("accept",), needs=("why",), says=BOTH),
        OptionRule(given=("why",), needs=("accept",), says=BOTH),
    )

    folder: Path | None = argument(
        "A folder of records.  [default: artifacts/throughput, .design, artifacts/gate]", "DIR", None
    )
    output: Path | None = option(
        None, "The file to write; only an earlier page is replaced.", "F", flags=("-o", "--output")
    )
    format: str = option("html", f"One of {', '.join(FORMATS)}.", "NAME")
    read: list[Path] | None = option(
        None, "Results of google-benchmark, pytest-benchmark, asv or hyperfine (JSON); may be repeated.", "F"
    )
    accept: str | None = option(None, "Accept the speed since this run; the baseline starts there.", "RUN")
    why: str | None = option(None, "Why it is accepted.", "TEXT")
    serve: bool = option(False, "Serve the page, live, until Ctrl-C.")
    host: str = option("127.0.0.1", "Where to listen; from other machines a token is needed.", "H")
    port: int = option(8765, "0 picks a free one.", "N", min=0, max=65535)
