"""hotloop profile -- CMD: where the time of a whole program goes."""

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli.commands.profile import FOLDER, Commit, keeper
from hotloop.cli.flags import Json
from hotloop.cli.programs.flags import program_of
from hotloop.cli.results import check_repository, make_room
from hotloop.cli.runner import measure, tell
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record.record import Record

EXAMPLES = (
    "hotloop profile -- python train.py --steps 1000",
    "hotloop profile --probe line,memory -- python train.py",
    "hotloop profile --probe all -- python -m mypackage.train",
)

Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="NAME",
        help="Look further: line, threads, cprofile, memory, pyspy, or all; may be repeated, or a list with "
        "commas.  [default: samples,resources]",
    ),
]


def profile(
    context: typer.Context, *, probe: Probes = None, commit: Commit = False, json: Json = False
) -> int:
    """Show where the time of a whole program goes: hotloop profile [OPTIONS] -- CMD.

    CMD is any command, run without a shell: first undisturbed, then watched: its hot functions by samples,
    its spans if it uses hotloop.spans, its processes, threads and memory over time. --probe line shows the
    lines of the five hottest functions; cprofile, memory and pyspy each look at a run of their own. Writes
    .design/profile-<YYYYMMDD-HHMM>.md and .json (UTC), a web page and the files of the probes.
    """
    from hotloop.lab.programs import profile as lab
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.kinds.programs import profile as sections
    from hotloop.report.terminal import draw

    program, chosen = program_of(context), lab.choose(probe or ())
    if commit:
        check_repository()
    make_room(FOLDER)
    name = program.name
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        folder = folder_of(Path(made), name)

        def experiment(_: Target, progress: "Progress") -> "Record":
            picture = partial(pictured, name, folder)
            return lab.profile(program, chosen, progress, files=folder, picture=picture)

        records = measure([Target(name)], experiment, keeper(Path(made), {}, commit=commit))
    return tell(records, draw(sections(records[0])), as_json=json, as_list=False)
