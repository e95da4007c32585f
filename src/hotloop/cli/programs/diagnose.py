"""hotloop diagnose --causal -- CMD: what a speed-up of each part of a loop is really worth."""

from typing import Annotated

import typer

from hotloop.cli.commands.diagnose import Causal, tell_causal
from hotloop.cli.console import bar
from hotloop.cli.flags import Json
from hotloop.cli.programs.flags import program_of
from hotloop.core.errors import InputError

EXAMPLES = (
    "hotloop diagnose --causal -- python own_loop.py",
    "hotloop diagnose --causal -- hotloop train prospector run=delayed total_timesteps=1000000",
)

TURNS = 24

RUNS = 6

Turns = Annotated[int, typer.Option(metavar="N", min=1, help="Delayed turns of each part, at least.")]

Runs = Annotated[int, typer.Option(metavar="N", min=1, help="How often the program is run, at most.")]


def diagnose(
    context: typer.Context,
    *,
    causal: Causal = False,
    turns: Turns = TURNS,
    runs: Runs = RUNS,
    json: Json = False,
) -> int:
    """Measure what speeding up each part of a loop is worth: hotloop diagnose --causal -- CMD.

    CMD is any program with hotloop.run around its loop and spans inside, or hotloop train. Small delays are
    added to one part at a time, in turns with none; what they cost the whole loop shows what speeding up that
    part would gain, even where threads, workers or a GPU overlap it. Next to it is what its share alone
    promises (Amdahl's law); where the two differ, the part is hidden behind other work. Writes
    .design/diagnosis-<YYYYMMDD-HHMM>.md and .json (UTC).
    """
    from hotloop.lab.diagnose.causal import of_program

    program = program_of(context)
    if not causal:
        raise InputError(
            f"diagnose reads records: hotloop profile -- {program.name}, then hotloop diagnose; "
            "or delay its parts with --causal"
        )
    with bar(program.name) as progress:
        trials = of_program(program, turns, runs, progress)
    return tell_causal(program.name, trials, as_json=json)
