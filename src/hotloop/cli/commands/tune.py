"""hotloop tune: which settings are the fastest, and do they still learn."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli import flags, sweeps
from hotloop.cli.console import remark, stdout_kept_clean
from hotloop.cli.flags import Json, Output, Words
from hotloop.cli.results import FOLDER, make_room
from hotloop.core.errors import InputError
from hotloop.core.project import SAYABLE
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.project import Budget
    from hotloop.core.record.record import Record
    from hotloop.lab.scale.axes import Axes
    from hotloop.lab.tune.asked import Asked

ISOLATED = True

MOST_S = 1_000_000
"""A confirmation of days is no confirmation any more."""

EXAMPLES = (
    "hotloop tune grid/toy num_envs=64,256,1024 threads=1,2",
    "hotloop tune prospector num_envs=64,256 threads=1,2 train.num_steps=64,128 num_minibatches=2,4",
    "hotloop tune grid/guard num_envs=64,128 train.num_steps=32,64 --learn-steps 100000 --minutes 15",
    "hotloop tune prospector num_workers=1,2 rollout_steps=64,128 num_minibatches=2,4",
    "hotloop tune farm/default index=grid,hash,quadtree,kdtree resources=list,memmap",
    "hotloop tune grid/toy num_envs=64,256 --write-floor toy-speed",
    "hotloop tune --metric 'sps=SPS: ([\\d.]+)' -- python train.py --num-envs '{8,32}'",
)

LearnSteps = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, help="For trainings: also train both settings for N env-steps, seed by seed."
    ),
]

Seeds = Annotated[int, typer.Option(metavar="N", min=1, help="Seeds for that; 6 or more give an interval.")]

WriteFloor = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Write the winner's floor into hotloop.toml as [budget.NAME], comments kept.",
        show_default=False,
    ),
]

Confirm = Annotated[
    float | None,
    typer.Option(
        metavar="SECONDS",
        help="What the winner's turns with the present settings may take, and as much again for a verdict; "
        "where that cannot tell, twice as long once more.  "
        "[default: 30; of a training 120]",
        show_default=False,
    ),
]

LearningBand = Annotated[
    float,
    typer.Option(
        metavar="%",
        help="What the winner may learn less and still learn as well, of what the present settings learn.",
    ),
]

Minutes = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="What search and confirmation may take at most.  [default: twice what is expected]",
        show_default=False,
    ),
]

Rounds = Annotated[
    int, typer.Option(metavar="N", min=1, help="Rounds of the first stage; each later one has twice as many.")
]


def tune(  # noqa: PLR0913 - one argument a flag
    target: flags.TargetName,
    words: Words = None,
    *,
    rounds: Rounds = 6,
    confirm: Confirm = None,
    minutes: Minutes = None,
    learn_steps: LearnSteps = 0,
    seeds: Seeds = 6,
    learning_band: LearningBand = 5,
    write_floor: WriteFloor = None,
    phases: flags.Reports = None,
    time: flags.Functions = None,
    on: sweeps.On = None,
    resume: sweeps.Resume = False,
    yes: sweeps.Yes = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Find the fastest of all combinations of settings.

    Keys with several values are combined. With a train. key trainings are measured, otherwise envs alone.
    Combinations that cannot run are skipped, with the reason. The rest is measured in stages: each keeps the
    faster half and gives it twice as many rounds. The winner has the highest lower end of its interval, and
    takes turns with the present settings before it is recommended. The longest time is said first and kept:
    a search that is late has fewer stages. --learn-steps compares returns, too. num_workers, n_envs,
    rollout_steps, n_steps, batch_size, n_epochs, num_minibatches are known. Exit: 3 learns less, 4 unsure.
    """
    from hotloop.lab.tune import tune as lab
    from hotloop.lab.tune.asked import Asked
    from hotloop.lab.tune.combinations import read
    from hotloop.lab.tune.halving import Sweeping

    axes = read(flags.reporting(Target.typed(target, words), phases, time))
    band, ns, most_s = share_of(learning_band), confirmed_ns(confirm), seconds_of(minutes)
    how = Asked(rounds=rounds, seeds=seeds, band=band, confirm_ns=ns, at_most_s=most_s)
    asked = replace(how, learn_steps=learn_steps)
    check_floor(write_floor, axes)
    asked = announced(axes, asked, yes=yes)
    make_room(output)
    record = sweeps.swept(
        axes,
        "tune",
        [Sweeping.cell_of(axes, place, 0, asked.rounds, asked) for place in axes.places],
        lambda progress, shelf, executor: lab.tune(
            axes,
            asked,
            progress,
            executor=executor,
            learners=sweeps.side_by_side(executor),
            shelf=shelf,
            say=remark,
        ),
        on=on,
        resume=resume,
    )
    code = sweeps.tell(record, output, as_json=json)
    keep_floor(write_floor, record, axes)
    return code


def announced(axes: "Axes", asked: "Asked", *, yes: bool) -> "Asked":
    """Say how long it takes, and at most, before it begins; the same with that bound."""
    from hotloop.lab.tune import learning
    from hotloop.lab.tune import tune as lab
    from hotloop.lab.tune.combinations import checked_present

    with stdout_kept_clean():
        seconds = lab.forecast(axes, asked)
        learning_s = learning.announced(checked_present(axes), asked)
    longest = lab.LONGEST * seconds if asked.at_most_s is None else asked.at_most_s
    then = f"; then the learning check, about {sweeps.duration(learning_s)}" if learning_s else ""
    expected = seconds if asked.at_most_s is None else min(seconds, asked.at_most_s)
    more = f", at most {sweeps.duration(longest)}{then}"
    sweeps.announce(len(axes.places), expected, yes=yes, more=more)
    return replace(asked, at_most_s=longest)


def seconds_of(minutes: float | None) -> float | None:
    """What search and confirmation may take."""
    if minutes is None:
        return None
    if not 0 < minutes <= MOST_S:
        raise InputError(
            f"--minutes {minutes:g} does not fit: expected minutes, above 0 and up to {MOST_S:,}"
        )
    return 60 * minutes


def share_of(band: float) -> float:
    if not 0 <= band < 100:
        raise InputError(f"--learning-band {band:g} does not fit: expected per cent, from 0 to below 100")
    return band / 100


def confirmed_ns(seconds: float | None) -> int | None:
    """What a confirmation may take, in nanoseconds."""
    if seconds is None:
        return None
    if not 0 < seconds <= MOST_S:
        raise InputError(
            f"--confirm {seconds:g} does not fit: expected seconds, above 0 and up to {MOST_S:,}"
        )
    return round(1e9 * seconds)


def check_name(name: str | None) -> None:
    """Refuse, before anything is measured, a budget whose name cannot be one."""
    if name is not None and not SAYABLE.fullmatch(name):
        raise InputError(f"--write-floor {name!r} does not fit: a name has letters, digits, '-', '_' and '.'")


def check_floor(name: str | None, axes: "Axes") -> None:
    """Refuse, before anything is measured, a budget that no gate could measure."""
    check_name(name)
    if name is None:
        return
    from hotloop.lab.training.settings import is_training

    if any(is_training(axes.target_at(place)) for place in axes.places):
        raise InputError("--write-floor is for envs alone: a gate measures no training; leave it out")


def keep_floor(name: str | None, record: "Record", axes: "Axes") -> None:
    """Write the floor of the confirmed winner as a budget."""
    from hotloop.core.project import Budget

    if name is None or not keeps_floor(name, record):
        return
    found = record.tuning
    assert found is not None
    chosen = next(axes.target_at(each) for each in axes.places if each.at == found.winner)
    keep(
        Budget(
            name=name,
            target=chosen.name,
            keys={key: typed(value) for key, value in chosen.keys.items()},
            metric="env_steps_per_s",
            limit=float(round(found.floor or 0.0)),
            reason="the floor of the settings that hotloop tune confirmed",
        )
    )


def keeps_floor(name: str, record: "Record") -> bool:
    """Whether there is a floor to write; says so if there is none."""
    assert record.tuning is not None
    if record.tuning.floor is None:
        remark(f"no budget {name} written: nothing was confirmed to be as fast as the present settings")
    return record.tuning.floor is not None


def keep(budget: "Budget") -> None:
    """Write a budget into the project's hotloop.toml, or into a new one here."""
    from hotloop.core.project import NAME, find_file, put_budget

    place = find_file() or Path(NAME)
    put_budget(place, budget)
    remark(f"wrote [budget.{budget.name}] into {place}")


def typed(value: object) -> object:
    """A value as TOML would have it: a number where it is one."""
    text = str(value)
    try:
        return int(text)
    except ValueError:
        return text
