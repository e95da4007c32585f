"""hotloop soak -- CMD: does a whole program slow down or leak."""

from hotloop.cli import sweeps
from hotloop.cli.console import bar
from hotloop.cli.programs.flags import metric_of, program_of
from hotloop.cli.results import make_room
from hotloop.options.soak import SoakProgramOptions


def soak(words: tuple[str, ...], options: SoakProgramOptions) -> int:
    """Watch a program as it runs, keep and show the record; returns its exit code."""
    from hotloop.lab.programs.soak import soak as lab

    program, metric = program_of(words), metric_of(options)
    make_room(options.output)
    with bar(program.name) as progress:
        record = lab(program, options, progress, metric=metric)
    return sweeps.tell(record, options.output, as_json=options.json)
