"""hotloop tune -- CMD: which settings of a program are the fastest, and do they still learn."""

from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli import sweeps
from hotloop.cli.commands.tune import (
    Confirm,
    LearningBand,
    Minutes,
    Seeds,
    WriteFloor,
    announced,
    check_name,
    confirmed_ns,
    keep,
    keeps_floor,
    seconds_of,
    share_of,
)
from hotloop.cli.console import remark
from hotloop.cli.flags import Json, Output
from hotloop.cli.programs.flags import LessIsBetter, Metric, metric_of, program_of
from hotloop.cli.results import FOLDER, make_room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotloop.core.project import Budget
    from hotloop.core.record.record import Record
    from hotloop.core.record.sweep import Tuning
    from hotloop.lab.tune.asked import Asked
    from hotloop.lab.tune.programs import ProgramAxes

EXAMPLES = (
    "hotloop tune -- python train.py --num-envs '{8,32}'",
    "hotloop tune --metric 'sps=SPS: ([\\d.]+)' --write-floor sps -- python train.py --num-envs '{8,32}'",
    "hotloop tune --learning-metric 'reward=reward: (\\S+)' -- python train.py --lr '{1,2}' --seed '{seed}'",
)

Rounds = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Runs of each combination in the first stage; each later stage has twice as many.  "
        "[default: 3; of two combinations 6]",
        show_default=False,
    ),
]

Present = Annotated[
    str | None,
    typer.Option(
        metavar="CMD",
        help="How the program is run now, quoted; the winner takes turns with it.  "
        "[default: CMD without the settings that have several values]",
        show_default=False,
    ),
]

LearningMetric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=REGEX",
        help="Also compare what both settings learn: the last such number of each run, more being better.",
        show_default=False,
    ),
]


def tune(  # noqa: PLR0913 - one argument a flag
    context: typer.Context,
    *,
    metric: Metric = None,
    less_is_better: LessIsBetter = False,
    present: Present = None,
    rounds: Rounds = None,
    confirm: Confirm = None,
    minutes: Minutes = None,
    learning_metric: LearningMetric = None,
    seeds: Seeds = 6,
    learning_band: LearningBand = 5,
    write_floor: WriteFloor = None,
    resume: sweeps.Resume = False,
    yes: sweeps.Yes = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Find the fastest settings of a program: hotloop tune [OPTIONS] -- CMD.

    A word of CMD such as '{8,32}' has several values; all combinations run in stages, each of which keeps
    the faster half with twice as many runs. The winner takes turns with the present settings. --metric
    judges what the program prints, otherwise whole runs are judged. {seed} in CMD is 1, and another for each
    training of the learning check. --write-floor keeps what the winner can be relied on for as a budget of
    hotloop gate. Exit: 3 the winner learns less, 4 cannot tell.
    """
    from hotloop.lab.tune import programs
    from hotloop.lab.tune import tune as lab
    from hotloop.lab.tune.asked import Asked
    from hotloop.lab.tune.halving import Sweeping

    axes = programs.read(program_of(context).words, present)
    check_metrics(metric, learning_metric, less_is_better=less_is_better)
    check_name(write_floor)
    asked = Asked(
        rounds=rounds or programs.rounds_of(len(axes.places)),
        seeds=seeds,
        band=share_of(learning_band),
        confirm_ns=confirmed_ns(confirm),
        at_most_s=seconds_of(minutes),
        metric=metric,
        less_is_better=less_is_better,
        learning_metric=learning_metric,
    )
    make_room(output)
    say_settings(axes, program_of(context).words)
    asked = announced(axes, asked, yes=yes)
    record = sweeps.swept(
        axes,
        "tune",
        [Sweeping.cell_of(axes, place, 0, asked.rounds, asked) for place in axes.places],
        lambda progress, shelf, executor: lab.tune(
            axes, asked, progress, executor=executor, shelf=shelf, say=remark
        ),
        on=None,
        resume=resume,
    )
    code = sweeps.tell(record, output, as_json=json)
    keep_floor(write_floor, record, axes, asked)
    return code


def check_metrics(judged: str | None, learnt: str | None, *, less_is_better: bool) -> None:
    """Refuse, before anything is run, what finds no number."""
    metric_of(judged, less_is_better=less_is_better)
    metric_of(learnt, less_is_better=False)


def say_settings(axes: "ProgramAxes", words: "Sequence[str]") -> None:
    """Say what the program is compared with, and values that were read from several words."""
    from hotloop.lab.tune.programs import is_expanded
    from hotloop.lab.tune.programs import program_of as command_of

    if is_expanded(words):
        remark(f"the shell expanded the braces: {axes.words}; quote them as in '{{8,32}}' to be sure")
    remark(f"present settings: {command_of(axes.present).name}")


def keep_floor(name: str | None, record: "Record", axes: "ProgramAxes", asked: "Asked") -> None:
    """Write the floor of the confirmed winner as a budget."""
    if name is not None and keeps_floor(name, record):
        assert record.tuning is not None
        keep(budget_of(name, axes, record.tuning, asked))


def budget_of(name: str, axes: "ProgramAxes", found: "Tuning", asked: "Asked") -> "Budget":
    """The floor of the winner as a budget, held by what the search was judged by."""
    from hotloop.core.project import PROGRAM, Budget
    from hotloop.judge.gate import rounded
    from hotloop.lab.tune.programs import metric_of as parsed
    from hotloop.lab.tune.programs import program_of as command_of

    metric = parsed(asked.metric, less_is_better=asked.less_is_better)
    kind = "printed_less" if asked.less_is_better else "printed"
    chosen = next(axes.target_at(each) for each in axes.places if each.at == found.winner)
    speed = found.floor or 0.0
    return Budget(
        name=name,
        target=f"{PROGRAM}{command_of(chosen).name}",
        metric=f"{kind}:{metric.name}" if metric else "runs_per_s",
        pattern=metric.pattern.pattern if metric else "",
        limit=float(rounded(1 / speed if asked.less_is_better else speed)),
        reason="the floor of the settings that hotloop tune confirmed",
    )
