"""hotloop diagnose --causal -- CMD: what a speed-up of each part of a loop is really worth."""

from hotloop.cli.commands.diagnose import tell_causal
from hotloop.cli.console import bar
from hotloop.cli.programs.flags import program_of
from hotloop.core.errors import InputError
from hotloop.options.diagnose import DiagnoseProgramOptions


def diagnose(words: tuple[str, ...], options: DiagnoseProgramOptions) -> int:
    """Delay each part of a program in turns and show what that costs; returns 4 if it cannot tell."""
    from hotloop.lab.diagnose.causal import of_program

    program = program_of(words)
    if not options.causal:
        raise InputError(
            f"diagnose reads records: hotloop profile -- {program.name}, then hotloop diagnose; "
            "or delay its parts with --causal"
        )
    with bar(program.name) as progress:
        trials = of_program(program, options.turns, options.runs, progress)
    return tell_causal(program.name, trials, as_json=options.json)
