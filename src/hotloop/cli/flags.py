"""Arguments and flags that commands take, each declared once."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.core.errors import InputError
from hotloop.core.registry import find, presets
from hotloop.core.target import Target, names_callable

if TYPE_CHECKING:
    from hotloop.lab.measure.stepping import Garbage

Numbers = tuple[int, int, int]
"""Rounds, env-steps in each, env-steps of warm-up."""

QUICK: Numbers = (8, 5_000, 20_000)

THOROUGH: Numbers = (60, 20_000, 300_000)
"""Three times the rounds make the interval about half as wide as it usually is."""

TARGETS = (
    "A preset such as grid/toy (grid means all of its presets), gym:ID, pettingzoo:MODULE, puffer:NAME, "
    "path.py:callable or module:callable."
)

TargetName = Annotated[str, typer.Argument(metavar="TARGET", help=TARGETS)]

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Parameters; `hotloop worlds WORLD` lists them. Of your env: arguments, seed, num_envs, vector.",
        show_default=False,
    ),
]

Policy = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Who plays: random, one of the world's players (live:PLAYER chooses in the loop), run:NAME, "
        "tape:FILE or module:callable.",
    ),
]

Output = Annotated[
    Path,
    typer.Option(metavar="F", help="Where the record goes: a file if it ends in .json, else a folder."),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, to stdout.")]

TargetOrNone = Annotated[
    str | None,
    typer.Argument(
        metavar="TARGET",
        help=TARGETS,
        show_default=False,
    ),
]

ProfileSteps = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Env-steps with the timing on, and as many without.  [default: 200000; fewer if slow]",
    ),
]

Functions = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A function to look at, as module.Class.method; may be repeated."),
]

TapeFile = Annotated[
    Path | None, typer.Option(metavar="TAPE", help="Save the actions that were played as a tape.")
]

RoundCount = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Measured rounds; 6 or more give an interval.  [default: 20]"),
]

Iterations = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Env-steps in a round.  [default: 20000; fewer if slow]"),
]

Warmup = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="Env-steps before the first round.  [default: 150000; at most 2 s]"
    ),
]

Quick = Annotated[
    bool, typer.Option("--quick", help="{} rounds of {} after {}: a first look.".format(*QUICK))
]

Thorough = Annotated[
    bool, typer.Option("--thorough", help="{} rounds of {} after {}, and half the band.".format(*THOROUGH))
]

Seed = Annotated[int | None, typer.Option(metavar="N", help="Short for seed=N.")]

Threads = Annotated[int | None, typer.Option(metavar="N", help="Short for threads=N.")]

Mode = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="What to measure: env_only, rollout, trainer, trainer_eval, or several, separated by commas.  "
        "[default: env_only; trainer with a train. key]",
        show_default=False,
    ),
]

Phases = Annotated[bool, typer.Option("--profile", help="After the rounds, also show where the time goes.")]

Reports = Annotated[
    str | None,
    typer.Option(
        "--phases",
        metavar="my.py:function",
        help="A function that takes your env and returns what has its phase_totals, step_timing or counters.",
        show_default=False,
    ),
]

Label = Annotated[str | None, typer.Option(metavar="LABEL", help="What to call this run in its record.")]

TargetSpeed = Annotated[
    float | None, typer.Option(metavar="N", help="A speed to reach, in env-steps a second.")
]

Enforce = Annotated[bool, typer.Option("--enforce-target", help="Exit with 3 if it is not reached.")]

Baselines = Annotated[
    list[str] | None,
    typer.Option(
        metavar="F...",
        help="Commits, saved baselines or records to compare with; a commit is built and takes turns.",
    ),
]

SaveBaseline = Annotated[
    str | None, typer.Option(metavar="NAME", help="Keep the record as this machine's baseline of that name.")
]

Since = Annotated[
    str | None,
    typer.Option(
        metavar="REF", help="Measure past commits from REF to HEAD, in turns, with a record of each."
    ),
]

Every = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="With --since: one commit in N.  [default: about 16 in all]"),
]

Build = Annotated[
    str | None,
    typer.Option(metavar="CMD", help="What builds a commit in its checkout.  [default: pip install .]"),
]

Folder = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Measure nothing; show all records of a folder in one table."),
]

SuiteName = Annotated[
    str | None,
    typer.Option("--suite", metavar="NAME", help="Run a suite from hotloop.toml, or one of ours."),
]

ResumeSuite = Annotated[
    bool,
    typer.Option("--resume", help="Continue an interrupted suite; failures are tried again."),
]

Gc = Annotated[
    str,
    typer.Option(
        "--gc",
        metavar="WHEN",
        help="When garbage is collected: between (rounds, untimed), or life (as Python does).",
    ),
]

Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="FIELD", help="A field not to compare, such as infos.time; may be repeated."),
]

Instructions = Annotated[
    bool, typer.Option("--instructions", help="Also count the instructions of an env-step (valgrind).")
]


InProcess = Annotated[
    bool,
    typer.Option(
        "--in-process",
        help="Open your target in this process, for a debugger; if it crashes, so does this.",
    ),
]

StepTimeout = Annotated[
    float,
    typer.Option(
        "--step-timeout",
        metavar="S",
        help="Seconds without a step after which your target counts as hung; ten times as long to make it, "
        "to reset it and for its first step.",
    ),
]

Trust = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Let FILE, when replayed or resumed, call code outside this project; it is named first.",
        show_default=False,
    ),
]


def reporting(target: Target, phases: str | None, time: list[str] | None = None) -> Target:
    """Return the target with what finds its phases, and functions to time: both are for others' code."""
    for flag, given in (("--phases", phases), ("--time", time)):
        if given and not target.is_foreign:
            raise InputError(f"{flag} is for others' code: {target.name} has its own phases; leave it out")
    return replace(target, phases=phases, time=tuple(time or ()))


def garbage_of(word: str) -> "Garbage":
    """When garbage is collected, as --gc says it."""
    if word == "between":
        return "between"
    if word == "life":
        return "life"
    raise InputError(f"--gc {word} does not fit: expected between or life")


def names_world(name: str) -> bool:
    """Whether a name given to bench or profile stands for all presets of a world."""
    return "/" not in name and not names_callable(name)


def names_several(name: str) -> bool:
    """Whether a name stands for several targets: all presets of a world, or callables, `my.py:f,g`."""
    return names_world(name) or len(callables_of(name)) > 1


def callables_of(name: str) -> list[str]:
    """Return the callables of one file or module that a name lists."""
    place, _, names = name.rpartition(":")
    several = names.split(",")
    is_list = place and all(each.isidentifier() for each in several)
    return [f"{place}:{each}" for each in several] if is_list else [name]


def targets_of(target: Target) -> list[Target]:
    """The targets that one given to bench or profile stands for, each with its keys."""
    if target.is_foreign:
        return [replace(target, name=name) for name in callables_of(target.name)]
    found = find(target.name)
    names = [each.target for each in presets(found.world)] if names_world(target.name) else [found.target]
    return [Target(name, target.keys) for name in names]
