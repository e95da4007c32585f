"""hotloop bench -- CMD: how long a whole program takes, with its spread."""

from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli import flags
from hotloop.cli.commands.bench import band, keeper, make_room_for_all
from hotloop.cli.flags import Json, Output
from hotloop.cli.programs.flags import LessIsBetter, Metric, metric_of, program_of
from hotloop.cli.results import FOLDER, find_baselines
from hotloop.cli.runner import measure, tell
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.lab.programs.bench import Rounds

EXAMPLES = (
    "hotloop bench -- python train.py --steps 1000",
    "hotloop bench --rounds 20 --metric 'sps=SPS: (\\d+)' -- python train.py",
    "hotloop bench --rounds 1 --metric 'sps=SPS: (\\d+)' -- python train.py",
)

QUICK, THOROUGH = 6, 30

RoundCount = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, help="Runs that count.  [default: 10; a slow program fewer, 6 at least]"
    ),
]

Warmup = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Runs before the first that counts.  [default: 1]")
]


def bench(  # noqa: PLR0913 - one argument a flag
    context: typer.Context,
    *,
    rounds: RoundCount = None,
    warmup: Warmup = None,
    quick: Annotated[bool, typer.Option("--quick", help=f"{QUICK} runs.")] = False,
    thorough: Annotated[
        bool, typer.Option("--thorough", help=f"{THOROUGH} runs, and half the band.")
    ] = False,
    metric: Metric = None,
    less_is_better: LessIsBetter = False,
    phase: flags.Label = None,
    baseline: flags.Baselines = None,
    save_baseline: flags.SaveBaseline = None,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Measure how long a whole program takes: hotloop bench [OPTIONS] -- CMD.

    CMD is any command, run as it is, without a shell. A round is one run from start to end: wall time, CPU
    time of all its processes, peak memory of the largest. --metric judges what the program itself prints:
    the median of each run without its warm-up; with --rounds 1, the series of that one run. If the program
    fails, so does this, with its last line. The exit codes are those of bench.
    """
    from hotloop.lab import bench as lab
    from hotloop.lab.programs import bench as programs

    program, judged = program_of(context), metric_of(metric, less_is_better=less_is_better)
    planned = plan(rounds, warmup, quick=quick, thorough=thorough)
    extras = lab.Extras(label=phase, baselines=find_baselines(baseline or ()), band=band(thorough=thorough))
    make_room_for_all(output, save_baseline)

    def experiment(_: Target, progress: "Progress") -> "Record":
        return programs.bench(program, planned, progress, metric=judged, extras=extras)

    from hotloop.report.sections.programs import bench as sections
    from hotloop.report.terminal import draw

    records = measure([Target(program.name)], experiment, keeper(output, save_baseline))
    return tell(records, draw(sections(records[0])), as_json=json, as_list=False)


def plan(count: int | None, warmup: int | None, *, quick: bool, thorough: bool) -> "Rounds":
    """As many as were asked for, whatever it takes; fewer of a slow program where nothing was."""
    from hotloop.core.errors import InputError
    from hotloop.lab.programs.bench import Rounds

    if quick and thorough:
        raise InputError("--quick and --thorough exclude each other: give one of them")
    usual = Rounds()
    planned = QUICK if quick else THOROUGH if thorough else usual.count
    return Rounds(
        count=planned if count is None else count,
        warmup=usual.warmup if warmup is None else warmup,
        boxed=count is None and not thorough,
    )
