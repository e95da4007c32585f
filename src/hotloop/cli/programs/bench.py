"""hotloop bench -- CMD: how long a whole program takes, with its spread."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli import flags
from hotloop.cli.commands.bench import band, keeper, make_room_for_all
from hotloop.cli.console import bar
from hotloop.cli.flags import Json, Output
from hotloop.cli.programs.flags import LessIsBetter, Metric, metric_of, program_of
from hotloop.cli.results import FOLDER, find_baselines, make_room, names_file
from hotloop.cli.runner import kept_in, measure, tell
from hotloop.core.errors import InputError
from hotloop.core.target import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hotloop.core.progress import Progress
    from hotloop.core.record.record import Record
    from hotloop.lab.programs.bench import Rounds
    from hotloop.lab.programs.launch import Program

EXAMPLES = (
    "hotloop bench -- python train.py --steps 1000",
    "hotloop bench --rounds 20 --metric 'sps=SPS: (\\d+)' -- python train.py",
    "hotloop bench --rounds 1 --metric 'sps=SPS: (\\d+)' -- python train.py",
)

QUICK, THOROUGH = 6, 30

Mode = Annotated[
    str | None,
    typer.Option(
        metavar="MODES",
        help="Stages of its training, in turns: env_only, rollout, trainer, trainer_eval, with commas.",
        show_default=False,
    ),
]

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
    mode: Mode = None,
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
    fails, so does this, with its last line. --mode measures the stages up to training of a program that
    has the callback of hotloop.loops.sb3. The exit codes are those of bench.
    """
    from hotloop.lab import bench as lab
    from hotloop.lab.programs import bench as programs

    program, judged = program_of(context), metric_of(metric, less_is_better=less_is_better)
    if mode is not None:
        check_ladder({"--metric": metric, "--baseline": baseline, "--save-baseline": save_baseline})
        return climb_all(program, mode, rounds or (THOROUGH if thorough else QUICK), output, as_json=json)
    planned = plan(rounds, warmup, quick=quick, thorough=thorough)
    extras = lab.Extras(label=phase, baselines=find_baselines(baseline or ()), band=band(thorough=thorough))
    make_room_for_all(output, save_baseline)

    def experiment(_: Target, progress: "Progress") -> "Record":
        return programs.bench(program, planned, progress, metric=judged, extras=extras)

    from hotloop.report.kinds.programs import bench as sections
    from hotloop.report.terminal import draw

    records = measure([Target(program.name)], experiment, keeper(output, save_baseline))
    return tell(records, draw(sections(records[0])), as_json=json, as_list=False)


def check_ladder(others: "Mapping[str, object]") -> None:
    """Refuse what is for whole runs."""
    given = [flag for flag, value in others.items() if value]
    if given:
        raise InputError(f"{given[0]} is for whole runs, and --mode measures the updates of a training")


def climb_all(program: "Program", mode: str, rounds: int, output: Path, *, as_json: bool) -> int:
    """Measure the rungs of a program's training, keep every record and show the ladder."""
    from hotloop.lab.ladder import check_modes
    from hotloop.lab.programs.ladder import climb
    from hotloop.report.kinds.bench import ladder
    from hotloop.report.terminal import draw

    modes = check_modes(mode)
    if len(modes) > 1 and names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder, or one mode")
    make_room(output)
    with bar(f"{program.name} {','.join(modes)}") as progress:
        records = climb(program, modes, rounds, progress)
    records = [kept_in(output, record) for record in records]
    return tell(records, draw(ladder(records)), as_json=as_json, as_list=len(modes) > 1)


def plan(count: int | None, warmup: int | None, *, quick: bool, thorough: bool) -> "Rounds":
    """As many as were asked for, whatever it takes; fewer of a slow program where nothing was."""
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
