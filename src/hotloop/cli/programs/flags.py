"""Flags that the commands for programs share, and the program itself."""

from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.lab.programs.launch import Program
    from hotloop.lab.programs.metrics import Metric as Found

Metric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME=REGEX",
        help="Judge a number that the program prints, such as 'sps=SPS: (\\d+)'; the group is the number.",
    ),
]

LessIsBetter = Annotated[
    bool, typer.Option("--less-is-better", help="The metric is a time rather than a speed.")
]


def program_of(context: typer.Context) -> "Program":
    """The words after `--`."""
    from hotloop.lab.programs.launch import Program

    words: tuple[str, ...] = context.obj
    if not words:
        raise InputError("nothing stands after --: give a command there, such as -- python train.py")
    return Program(words)


def metric_of(text: str | None, *, less_is_better: bool) -> "Found | None":
    """The metric that was asked for; None where whole runs are judged."""
    from hotloop.lab.programs.metrics import parse

    if text is None:
        if less_is_better:
            raise InputError("--less-is-better says it of a metric: give --metric NAME=REGEX")
        return None
    return parse(text, less_is_better=less_is_better)
