"""hotloop profile -- CMD: where the time of a whole program goes."""

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.commands.profile import keeper
from hotloop.cli.programs.flags import program_of
from hotloop.cli.results import check_repository, make_room
from hotloop.cli.runner import measure, tell
from hotloop.core.target import Target
from hotloop.options.profile import ProfileProgramOptions
from hotloop.options.shared import PROFILES

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record.record import Record


def profile(words: tuple[str, ...], options: ProfileProgramOptions) -> int:
    """Look at a program as it runs, keep and show the record; returns its exit code."""
    from hotloop.lab.programs import profile as lab
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.kinds.programs import profile as sections
    from hotloop.report.terminal import draw

    program, chosen = program_of(words), lab.choose(options.probe or ())
    if options.commit:
        check_repository()
    make_room(PROFILES)
    name = program.name
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        folder = folder_of(Path(made), name)

        def experiment(_: Target, progress: "Progress") -> "Record":
            picture = partial(pictured, name, folder)
            return lab.profile(program, chosen, progress, files=folder, picture=picture)

        records = measure([Target(name)], experiment, keeper(Path(made), {}, commit=options.commit))
    return tell(records, draw(sections(records[0])), as_json=options.json, as_list=False)
