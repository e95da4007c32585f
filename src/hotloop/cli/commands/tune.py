"""hotloop tune: which settings are the fastest, and do they still learn."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli import flags, sweeps
from hotloop.cli.child import settled
from hotloop.cli.console import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.flags import Json, Output, Words
from hotloop.cli.results import FOLDER, make_room
from hotloop.cli.runner import kept_in
from hotloop.core.errors import InputError
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.axes import Axes
    from hotloop.lab.tune import Asked

ISOLATED = True

EXAMPLES = (
    "hotloop tune grid/toy num_envs=64,256,1024 threads=1,2",
    "hotloop tune prospector num_envs=64,256 threads=1,2 train.num_steps=64,128 num_minibatches=2,4",
    "hotloop tune grid/guard num_envs=64,128 train.num_steps=32,64 --learn-steps 100000",
    "hotloop tune prospector num_workers=1,2 rollout_steps=64,128 num_minibatches=2,4",
    "hotloop tune farm/default index=grid,hash,quadtree,kdtree resources=list,memmap",
    "hotloop tune grid/toy num_envs=64,256 --write-floor toy-speed",
)

CELL_S = 5.0
"""What a cell takes about over all rungs."""

LearnSteps = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="Of a training: also train both settings for N env-steps, seed by seed."
    ),
]

Seeds = Annotated[int, typer.Option(metavar="N", min=1, help="Seeds of that; from 6 on with an interval.")]

WriteFloor = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Write the winner's floor into hotloop.toml as [budget.NAME], comments kept.",
        show_default=False,
    ),
]

Rounds = Annotated[
    int, typer.Option(metavar="N", min=1, help="Rounds of the first rung; each next has twice as many.")
]


def tune(  # noqa: PLR0913 - one argument a flag
    target: flags.TargetName,
    words: Words = None,
    *,
    rounds: Rounds = 6,
    learn_steps: LearnSteps = 0,
    seeds: Seeds = 6,
    write_floor: WriteFloor = None,
    on: sweeps.On = None,
    resume: sweeps.Resume = False,
    yes: sweeps.Yes = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Which settings are the fastest: every combination of keys with several values.

    With a train. key trainings are measured, else envs alone. What cannot be run is skipped first, with the
    reason. The rest is measured in rungs, each of twice as many rounds for the faster half; the winner has
    the highest lower end of an interval, and takes turns with the present settings before it is recommended.
    --learn-steps trains both and compares returns. num_workers, n_envs, rollout_steps, n_steps, batch_size,
    n_epochs and num_minibatches are understood. Exit: 3 where the winner learns less, 4 cannot tell.
    """
    from hotloop.lab import tune as lab

    axes = lab.read(Target.typed(target, words))
    asked = lab.Asked(rounds=rounds, learn_steps=learn_steps, seeds=seeds)
    check_floor(write_floor, axes)
    sweeps.announce(len(axes.places), len(axes.places) * CELL_S, yes=yes)
    make_room(output)
    record = settled(run(axes, asked, on=on, resume=resume))
    code = tell(record, output, as_json=json)
    keep_floor(write_floor, record, axes)
    return code


def check_floor(name: str | None, axes: "Axes") -> None:
    """Refuse, before anything is measured, a budget that no gate could measure."""
    if name is None:
        return
    if any(key.startswith("train.") for place in axes.places for key in axes.target_at(place).keys):
        raise InputError("--write-floor is for envs alone: a gate measures no training; leave it out")


def run(axes: "Axes", asked: "Asked", *, on: str | None, resume: bool) -> "Record":
    from hotloop.lab import tune as lab
    from hotloop.lab.cells import FOLDER as SHELVES
    from hotloop.lab.cells import Here, shelf_of

    cells = [lab.Sweeping.cell_of(axes, place, 0, asked.rounds) for place in axes.places]
    with sweeps.executor(on, axes.target, Here(), timed=True) as (executor, machines):
        shelf = shelf_of(SHELVES, "tune", cells, resume=resume, machines=machines)
        with bar(axes.target.name) as progress, stdout_kept_clean():
            return lab.tune(
                axes,
                asked,
                progress,
                executor=executor,
                learners=sweeps.side_by_side(executor),
                shelf=shelf,
                say=remark,
            )


def keep_floor(name: str | None, record: "Record", axes: "Axes") -> None:
    """Write the floor of the confirmed winner as a budget."""
    from hotloop.core.project import NAME, Budget, find_file, put_budget

    found = record.tuning
    assert found is not None
    if name is None:
        return
    if found.floor is None:
        remark(f"no budget {name} written: nothing was confirmed to be as fast as the present settings")
        return
    place = find_file() or Path(NAME)
    chosen = next(axes.target_at(each) for each in axes.places if each.at == found.winner)
    budget = Budget(
        name=name,
        target=chosen.name,
        keys={key: typed(value) for key, value in chosen.keys.items()},
        metric="env_steps_per_s",
        limit=float(round(found.floor)),
        reason="the floor of the settings that hotloop tune confirmed",
    )
    put_budget(place, budget)
    remark(f"wrote [budget.{name}] into {place}")


def typed(value: object) -> object:
    """A value as TOML would have it: a number where it is one."""
    text = str(value)
    try:
        return int(text)
    except ValueError:
        return text


def tell(record: "Record", output: Path, *, as_json: bool) -> int:
    """Keep the record and its pictures, print or draw it; returns its exit code."""
    from hotloop.report.sections.notices import notices
    from hotloop.report.sections.tune import panels
    from hotloop.report.sections.tune import tune as sections
    from hotloop.report.terminal import draw

    assert record.tuning is not None
    record = kept_in(output, record, *sweeps.pictures(record.target.words, panels(record.tuning)))
    if as_json:
        emit(record.to_json())
    else:
        show(draw(sections(record)))
    remark(draw(notices([record])))
    return record.exit_code
