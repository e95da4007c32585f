"""What profile has for slow steps: running one again, and the files of a trace."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli.measuring import measure, tell
from hotloop.cli.place import make_room, save
from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotloop.core.record import Record
    from hotloop.lab.progress import Progress
    from hotloop.lab.tracing import Tracer
    from hotloop.report.files import Kept

ReplaySlow = Annotated[
    Path | None,
    typer.Option(
        metavar="RECORD [K]",
        help="Profile nothing: run a slow step of that record again, the first or the one numbered K.",
    ),
]
TraceFiles = Annotated[
    bool,
    typer.Option(
        "--trace", help="Write sampled steps for Perfetto (.trace.json) and speedscope (.speedscope.json)."
    ),
]


def check_again(**flags: object) -> None:
    """Refuse what running a slow step again cannot be asked."""
    given = [name for name, value in flags.items() if value]
    if given:
        raise InputError(
            f"--{given[0]} does not go with --replay-slow, which runs a step as its record says: leave it out"
        )


def run_again(path: Path, words: "Sequence[str]", folder: Path, *, as_json: bool) -> int:
    """Run one slow step of a record again and say what came of it; a word after it is its number."""
    from hotloop.core.record import read
    from hotloop.lab import rerun
    from hotloop.report.sections.slow import again
    from hotloop.report.terminal import draw

    record, rank = read(path), rank_of(words)
    rerun.find(record, rank)
    make_room(folder)

    def experiment(_: str, progress: "Progress") -> "Record":
        return rerun.rerun(record, rank, progress)

    def keep(replayed: "Record") -> Path:
        return save(folder / f"replay-{utc_now():%Y%m%d-%H%M}.json", replayed.to_json())

    records = measure([record.target.name], experiment, keep)
    return tell(records, draw(again(records[0])), as_json=as_json, as_list=False)


def rank_of(words: "Sequence[str]") -> int:
    """Which of the slow steps is meant; the first, unless a number follows the record."""
    if not words:
        return 1
    if len(words) > 1 or not words[0].isdecimal() or int(words[0]) < 1:
        raise InputError(
            f"--replay-slow RECORD {' '.join(words)}: expected the number of one slow step, such as 1; "
            "the target and its settings are the record's"
        )
    return int(words[0])


def trace_files(tracer: "Tracer | None", record: "Record") -> "list[Kept]":
    """The files of a trace; none where there was no tracer."""
    if tracer is None:
        return []
    from hotloop.report import files

    return files.trace_files(tracer.trace(record.slow, files.about_trace(record)))
