"""Arguments that several commands take, declared once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from hotloop.core.registry import find, names_callable, presets
from hotloop.core.settings import parse_pairs

TARGETS = (
    "A preset such as grid/toy (grid means all of its presets), gym:ID, pettingzoo:MODULE, puffer:NAME, "
    "path.py:callable or module:callable."
)
TargetName = Annotated[str, typer.Argument(metavar="TARGET", help=TARGETS)]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="KEY=VALUE",
        help="Parameters; `hotloop worlds WORLD` lists them. Of others: arguments, seed, num_envs, vector.",
        show_default=False,
    ),
]
Policy = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Who plays: random, a player of the world's, tape:FILE or module:callable."
    ),
]
Output = Annotated[
    Path,
    typer.Option(metavar="F", help="Where the record goes: a file if it ends in .json, else a folder."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, and nothing else, on stdout.")]


def names_world(name: str) -> bool:
    """Whether a name given to bench or profile stands for all presets of a world."""
    return "/" not in name and not names_callable(name)


def targets_of(name: str) -> list[str]:
    """The targets that a name given to bench or profile stands for."""
    if names_callable(name):
        return [name]
    found = find(name)
    return [each.target for each in presets(found.world)] if names_world(name) else [found.target]


def given_by(words: Sequence[str] | None, **flags: object) -> dict[str, object]:
    """Join key=value words and the flags that are short for such words."""
    spelled = (f"{key}={value}" for key, value in flags.items() if value is not None)
    return dict(parse_pairs([*(words or ()), *spelled]))
