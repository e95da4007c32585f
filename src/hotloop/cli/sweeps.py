"""What the commands that run many cells have in common: said beforehand, resumed, and drawn."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotloop.cli.console import remark
from hotloop.core.errors import InputError, SetupError
from hotloop.core.target import Target

if TYPE_CHECKING:
    from hotloop.lab.cells import Executor
    from hotloop.report.pictures.curves import Panel

ASK_S = 1_800
"""A sweep that would take longer is begun only by who says so."""

Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with the last sweep of the same cells where it was stopped.")
]

On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="RAY",
        help="Where cells run: ray (started on this machine for it) or ray://HOST:PORT; else here.",
        show_default=False,
    ),
]

Yes = Annotated[bool, typer.Option("--yes", help="Begin a sweep that takes long without being asked.")]


def announce(cells: int, seconds: float, *, yes: bool) -> None:
    """Say how long a sweep takes before it begins; refuse one of hours that nobody asked for on purpose."""
    told = f"{cells:,} cells, about {duration(seconds)}"
    if seconds > ASK_S and not yes:
        raise InputError(f"{told}: narrow the axes or the repeats, or give --yes")
    remark(told)


@contextmanager
def executor(
    on: str | None, target: Target | None, here: "Executor", *, timed: bool
) -> "Iterator[tuple[Executor, frozenset[str] | None]]":
    """What runs cells, and the fingerprints of its machines; the folder travels with somebody's target."""
    if on is None:
        yield here, None
        return
    from hotloop.lab.on_ray import on_ray

    carry = Path.cwd() if target is not None and target.is_foreign else None
    with on_ray(on, timed=timed, carry=carry, say=remark) as ray:
        hosts = len({node.host for node in ray.nodes})
        cores = sum(node.cores for node in ray.nodes)
        remark(f"on {on}: {len(ray.nodes)} nodes on {hosts} machines, {cores} cores")
        yield ray, ray.fingerprints


def side_by_side(executor: "Executor") -> "Executor":
    """The same for cells that nobody times."""
    from dataclasses import replace

    from hotloop.lab.on_ray import OnRay

    return replace(executor, timed=False) if isinstance(executor, OnRay) else executor


def duration(seconds: float) -> str:
    """A time to wait, as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


def pictures(title: str, panels: "Sequence[Panel]") -> list[tuple[str, bytes]]:
    """The drawings that lie beside a record; without Pillow no PNG."""
    from hotloop.report.pictures.curves import png, svg

    if not panels:
        return []
    drawn = [(".svg", svg(title, panels))]
    try:
        drawn.append((".png", png(title, panels)))
    except SetupError as error:
        remark(f"no PNG: {error}")
    return drawn
