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
    str,
    typer.Option(
        metavar="NAMES",
        help="What to measure: env_only, rollout, trainer, trainer_eval, or several, separated by commas.",
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
    typer.Option(metavar="F...", help="Records, saved baselines or commits to compare this run with."),
]

SaveBaseline = Annotated[
    str | None, typer.Option(metavar="NAME", help="Keep the record as this machine's baseline of that name.")
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


def reporting(target: Target, phases: str | None) -> Target:
    """The target with the function that finds its phases, which is for others' code."""
    if phases is None:
        return target
    if not target.is_foreign:
        raise InputError(f"--phases is for others' code: {target.name} has its own; leave it out")
    return replace(target, phases=phases)


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


def targets_of(target: Target) -> list[Target]:
    """The targets that one given to bench or profile stands for, each with its keys."""
    if target.is_foreign:
        return [target]
    found = find(target.name)
    names = [each.target for each in presets(found.world)] if names_world(target.name) else [found.target]
    return [Target(name, target.keys) for name in names]
