"""hotloop soak -- CMD: does a whole program slow down or leak."""

import typer

from hotloop.cli import sweeps
from hotloop.cli.commands.soak import Minutes
from hotloop.cli.console import bar
from hotloop.cli.flags import Json, Output
from hotloop.cli.programs.flags import LessIsBetter, Metric, metric_of, program_of
from hotloop.cli.results import FOLDER, make_room

EXAMPLES = (
    "hotloop soak --minutes 10 -- python train.py",
    "hotloop soak --minutes 5 --metric 'sps=SPS: (\\d+)' -- python train.py",
)


def soak(
    context: typer.Context,
    *,
    minutes: Minutes = None,
    metric: Metric = None,
    less_is_better: LessIsBetter = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Find out whether a whole program slows down or leaks: hotloop soak [OPTIONS] -- CMD.

    CMD is any command, run without a shell for that many minutes, then ended by Ctrl-C. Its memory, open
    files and threads, and those of its children, are watched from outside; --metric adds what it prints about
    its own speed. There is no second instance to compare with: a slow machine looks like a slow program.
    """
    from hotloop.cli.commands.soak import asked_for
    from hotloop.lab.programs.soak import soak as lab

    program, judged = program_of(context), metric_of(metric, less_is_better=less_is_better)
    asked = asked_for(minutes, None)
    make_room(output)
    with bar(program.name) as progress:
        record = lab(program, asked, progress, metric=judged)
    return sweeps.tell(record, output, as_json=json)
