"""hotloop bench -- CMD: how long a whole program takes, with its spread."""

from typing import TYPE_CHECKING

from hotloop.cli.commands.bench import keeper, make_room_for_all
from hotloop.cli.console import bar
from hotloop.cli.programs.flags import metric_of, program_of
from hotloop.cli.results import find_baselines, make_room, names_file
from hotloop.cli.runner import kept_in, measure, tell
from hotloop.core.errors import InputError
from hotloop.core.target import Target
from hotloop.options.bench import QUICK_PROGRAM_ROUNDS, THOROUGH_PROGRAM_ROUNDS, BenchProgramOptions

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record.record import Record
    from hotloop.lab.programs.launch import Program


def bench(words: tuple[str, ...], options: BenchProgramOptions) -> int:
    """Measure a program, keep and show the record; returns its exit code."""
    from hotloop.lab import bench as lab
    from hotloop.lab.programs import bench as programs
    from hotloop.report.kinds.programs import bench as sections
    from hotloop.report.terminal import draw

    program, metric = program_of(words), metric_of(options)
    if options.mode is not None:
        return climb_all(program, options.mode, options)
    warmup = programs.Rounds().warmup if options.warmup is None else options.warmup
    boxed = options.rounds is None and not options.thorough
    planned = programs.Rounds(count=options.count, warmup=warmup, boxed=boxed)
    baselines = find_baselines(options.baseline or ())
    extras = lab.Extras(label=options.phase, baselines=baselines, band=options.band_share)
    make_room_for_all(options.output, options.save_baseline)

    def experiment(_: Target, progress: "Progress") -> "Record":
        return programs.bench(program, planned, progress, metric=metric, extras=extras)

    keep = keeper(options.output, options.save_baseline)
    records = measure([Target(program.name)], experiment, keep)
    return tell(records, draw(sections(records[0])), as_json=options.json, as_list=False)


def climb_all(program: "Program", mode: str, options: BenchProgramOptions) -> int:
    """Measure the rungs of a program's training, keep every record and show the ladder."""
    from hotloop.lab.ladder import check_modes
    from hotloop.lab.programs.ladder import climb
    from hotloop.report.kinds.bench import ladder
    from hotloop.report.terminal import draw

    modes, output = check_modes(mode), options.output
    if len(modes) > 1 and names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder, or one mode")
    make_room(output)
    rounds = options.rounds or (THOROUGH_PROGRAM_ROUNDS if options.thorough else QUICK_PROGRAM_ROUNDS)
    with bar(f"{program.name} {','.join(modes)}") as progress:
        records = climb(program, modes, rounds, progress)
    records = [kept_in(output, record) for record in records]
    return tell(records, draw(ladder(records)), as_json=options.json, as_list=len(modes) > 1)
