"""Reading a file of another tool's, whichever it is."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hotloop.core.errors import InputError
from hotloop.core.files import small_text
from hotloop.core.record.codec import ForeignError, parse
from hotloop.core.record.record import Record
from hotloop.report.imports import asv, google_benchmark, hyperfine, pytest_benchmark

TOOLS = (pytest_benchmark, google_benchmark, asv, hyperfine)


def read_results(path: Path) -> list[Record]:
    """The results in a file as records; InputError where no tool that is known has written it."""
    try:
        data: Any = parse(small_text(path))
        written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, ForeignError) as error:
        raise InputError(f"{path}: {error}") from None
    for tool in TOOLS:
        if tool.fits(data):
            return results_of(tool, data | {"hotloop_read_from": written}, path)
    known = ", ".join(tool.TOOL for tool in TOOLS)
    raise InputError(f"{path}: no results of a tool that is known here: expected JSON of {known}")


def results_of(tool: Any, data: Any, path: Path) -> list[Record]:
    try:
        return list(tool.records(data))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: {tool.TOOL} writes other files: {error!r:.80}") from None
