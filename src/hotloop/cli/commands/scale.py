"""hotloop scale: what a target costs against its size, with the law it follows."""

from typing import Annotated

import typer

from hotloop.cli import flags, sweeps
from hotloop.cli.console import bar, stdout_kept_clean
from hotloop.cli.flags import Json, Output, Policy, Words
from hotloop.cli.results import FOLDER, make_room
from hotloop.core.target import Target

ISOLATED = True

EXAMPLES = (
    "hotloop scale grid/toy agents=10,50,100,500,1000",
    "hotloop scale grid/toy threads=1,2,4 num_envs=256",
    "hotloop scale farm/steady index=grid,quadtree agents=50,100,200,400,800",
    "hotloop scale grid/toy --grid crowding",
    "hotloop scale my_env.py:make n=10,100,1000",
    "hotloop scale eco.py:make agents=10,100,1000 --time World.perceive",
    "hotloop scale gym:CartPole-v1 num_envs=1,4,16,64",
    "hotloop scale farm/default --grid steps --resume",
    "hotloop scale grid/toy agents=10,50,100,500 --on ray",
)

Grid = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="A classic grid: agents 10 to 1000, steps 100 to 5000, envs 50 to 500, or one of the world's.",
        show_default=False,
    ),
]

Repeats = Annotated[
    int, typer.Option(metavar="N", min=1, help="How often each size is measured, in shuffled order.")
]

Steps = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=10**12,
        help="Env-steps in each of a cell's five rounds.  [default: 4096; fewer if slow]",
    ),
]

NoPhases = Annotated[bool, typer.Option("--no-phases", help="Leave out the passes that time phases.")]


def scale(  # noqa: PLR0913 - one argument a flag
    target: flags.TargetName,
    words: Words = None,
    *,
    grid: Grid = None,
    repeats: Repeats = 5,
    steps: Steps = None,
    policy: Policy = "random",
    no_phases: NoPhases = False,
    phases: flags.Reports = None,
    time: flags.Functions = None,
    on: sweeps.On = None,
    resume: sweeps.Resume = False,
    yes: sweeps.Yes = False,
    output: Output = FOLDER,
    json: Json = False,
) -> int:
    """Measure how the cost of a target grows with its size.

    A key with several values is an axis: agents=10,100,1000, also threads, num_envs (or envs), an encoder or
    an index by name, any argument of your own function, and steps, the length of a run from its reset on.
    Every combination is measured several times, in shuffled order. For each phase, the step and memory it
    says how they grow (constant, log, linear, n log n, quadratic, or a power with its exponent and interval)
    and what else would fit, or that it cannot tell; --time makes a phase of a function of yours. It says
    where one phase overtakes another, where more brings little, and what limits threads. A PNG and an SVG
    are saved with the record. Ctrl-C keeps what is done; --resume continues.
    """
    from hotloop.lab.scale import axes as reading
    from hotloop.lab.scale import scale as lab
    from hotloop.lab.scale.scale import forecast

    asked_target = flags.reporting(Target.typed(target, words), phases, time)
    axes = reading.read(asked_target, grid)
    asked = lab.Asked(repeats=repeats, env_steps=steps or lab.ENV_STEPS, policy=policy, phases=not no_phases)
    with bar("forecast") as progress, stdout_kept_clean():
        seconds = forecast(axes, asked, progress)
    sweeps.announce(len(axes.places) * repeats, seconds, yes=yes)
    make_room(output)
    record = sweeps.swept(
        axes,
        "scale",
        lab.cells_of(axes, asked),
        lambda progress, shelf, executor: lab.scale(axes, asked, progress, executor=executor, shelf=shelf),
        on=on,
        resume=resume,
    )
    return sweeps.tell(record, output, as_json=json)
