"""hotloop soak: does it slow down or leak."""

from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli import flags, sweeps
from hotloop.cli.child import settled
from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.flags import Json, Output, Policy, Words
from hotloop.cli.results import FOLDER, make_room
from hotloop.core.errors import InputError
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.core.record.record import Record
    from hotloop.lab.soak import Asked

ISOLATED = True

EXAMPLES = (
    "hotloop soak grid/arena --minutes 10",
    "hotloop soak gym:CartPole-v1 --minutes 5",
    "hotloop soak my_env.py:make n=100 --steps 1000000",
    "hotloop soak prospector train.num_steps=64 --minutes 10",
    "hotloop soak --minutes 10 -- python train.py",
    "hotloop soak grid/arena --minutes 60 --on ray://head:10001",
)

Minutes = Annotated[
    float | None, typer.Option(metavar="N", help="How long it runs.  [default: 10]", show_default=False)
]

Steps = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, max=10**15, help="Env-steps instead of minutes.", show_default=False),
]


def soak(  # noqa: PLR0913 - one argument a flag
    target: flags.TargetName,
    words: Words = None,
    *,
    minutes: Minutes = None,
    steps: Steps = None,
    policy: Policy = "random",
    phases: flags.Reports = None,
    on: sweeps.On = None,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Find out whether a target slows down or leaks over time.

    One instance is stepped throughout. At regular moments memory, the native heap, GPU memory, open files and
    threads are read, and a new instance takes turns with the old one: what is judged is the slope of their
    ratio, so a busy machine is not blamed on the target. Each slope has its 99.99% interval; what certainly
    rises, and still does at the end, is named, down to phases. With a train. key a training is soaked; after
    --, any program. Exit: 3 something grows, 4 the run was too short to tell.
    """
    from hotloop.lab.soak import soak as lab

    one = flags.reporting(Target.typed(target, words), phases)
    asked = asked_for(minutes, steps)
    make_room(output)
    remark(f"soak: {sweeps.duration(asked.seconds) if asked.seconds else f'{asked.env_steps:,} env-steps'}")
    if on is not None:
        return sweeps.tell(soaked_on(on, one, asked, policy), output, as_json=json)
    with bar(one.name) as progress, stdout_kept_clean():
        record = lab(one, asked, progress, policy=policy)
    return sweeps.tell(settled(record), output, as_json=json)


def soaked_on(on: str, target: Target, asked: "Asked", policy: str) -> "Record":
    """Soak on another machine, which nothing else of ours is timed on meanwhile."""
    from dataclasses import asdict

    from hotloop.lab import seeds
    from hotloop.lab.cells import Cell, Here, sweep

    cell = Cell(target=target, experiment=seeds.SOAK, asked=asdict(asked) | {"policy": policy})
    with sweeps.executor(on, [cell], Here(), timed=True) as (executor, _), bar(target.name) as progress:
        swept = sweep([cell], executor, None, progress)
    if not swept.records:
        raise KeyboardInterrupt if swept.interrupted else seeds.refusal(swept.refused)
    return swept.records[0][1]


def asked_for(minutes: float | None, steps: int | None) -> "Asked":
    """Minutes or steps, as they were given."""
    from hotloop.lab.soak import Asked

    if minutes is not None and steps is not None:
        raise InputError("--minutes and --steps exclude each other: give one of them")
    if steps is not None:
        return Asked(seconds=None, env_steps=steps)
    if minutes is not None and not 0 < minutes < 1e6:
        raise InputError(f"--minutes {minutes:g} does not fit: expected more than 0")
    return Asked(seconds=60 * (10.0 if minutes is None else minutes))
