"""hotloop compare -- "CMD A" "CMD B": which of several programs is faster."""

from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli.commands.compare import Band, plan, tell
from hotloop.cli.console import bar, remark
from hotloop.cli.flags import Json, Output
from hotloop.cli.programs.flags import LessIsBetter, Metric, metric_of
from hotloop.cli.results import FOLDER, make_room
from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.lab.measure.loop import Plan

EXAMPLES = (
    'hotloop compare -- "python train.py" "python train.py --fast"',
    'hotloop compare --metric \'sps=SPS: (\\d+)\' -- "python a.py" "python b.py" "python c.py"',
)

BUDGET_S = 60


def compare(  # noqa: PLR0913 - one argument a flag
    context: typer.Context,
    *,
    rounds: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=6, help="Rounds, each of which runs every side.  [default: by --budget]"
        ),
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="A band of 1% and five times the time.")
    ] = False,
    band: Band = None,
    budget: Annotated[
        float | None,
        typer.Option(metavar="S", help=f"Seconds of rounds, six of them at least.  [default: {BUDGET_S}]"),
    ] = None,
    metric: Metric = None,
    less_is_better: LessIsBetter = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Compare whole programs: hotloop compare [OPTIONS] -- "CMD A" "CMD B" ...

    Each CMD is one quoted argument, split into words as a shell would, and run without one. All of them, and
    A a second time, take turns in shuffled order; the ratio is the median over the rounds with its exact 95%
    interval, next to that of A against itself. Faster and slower need a second run that agrees. --metric
    compares what the programs themselves print. Exit codes: 0 faster or the same, 3 slower, 4 cannot tell.
    """
    from hotloop.lab.programs.compare import check
    from hotloop.lab.programs.compare import compare as run
    from hotloop.lab.programs.launch import Program

    programs = [Program.parse(each, "a side") for each in context.obj]
    check(programs)
    judged = metric_of(metric, less_is_better=less_is_better)
    chosen = chosen_plan(thorough=thorough, band=band, budget=budget, rounds=rounds)
    make_room(output)
    remark(beforehand(chosen, rounds))
    with bar(" | ".join(each.name for each in programs)) as progress:
        record = run(programs, chosen, progress, rounds=rounds, metric=judged)
    return tell(record, output, as_json=json)


def chosen_plan(*, thorough: bool, band: float | None, budget: float | None, rounds: int | None) -> "Plan":
    """That of compare, with the time that whole programs need."""
    if budget is not None and rounds is not None:
        raise InputError("--rounds and --budget exclude each other: give one of them")
    seconds = (5 if thorough else 1) * BUDGET_S if budget is None else budget
    return plan(thorough=thorough, band=band, budget=seconds)


def beforehand(chosen: "Plan", rounds: int | None) -> str:
    lasts = f"{rounds} rounds" if rounds else f"up to {chosen.budget_ns / 1e9:g} s, and six rounds at least"
    return f"{lasts}, and as much again for faster or slower"
