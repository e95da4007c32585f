"""What the commands that run many cells have in common: said beforehand, resumed, and drawn."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.child import settled
from hotloop.cli.console import bar, remark, stdout_kept_clean
from hotloop.cli.runner import kept_in, tell_one
from hotloop.core.errors import InputError, SetupError

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.lab.sweep.cells import Cell, CellCache, Executor
    from hotloop.lab.sweep.scale import Axes
    from hotloop.report.charts import Panel

ASK_S = 1_800  # A sweep that would take longer is begun only by who says so


def announce(cells: int, seconds: float, *, yes: bool, more: str = "") -> None:
    """Say how long a sweep takes before it begins; refuse one of hours that nobody asked for on purpose."""
    told = f"{cells:,} cells, about {duration(seconds)}"
    if seconds > ASK_S and not yes:
        raise InputError(f"{told}: narrow the axes or the repeats, or give --yes")
    remark(told + more)


@contextmanager
def executor(
    on: str | None, cells: "Sequence[Cell]", here: "Executor", *, timed: bool
) -> "Iterator[tuple[Executor, frozenset[str] | None]]":
    """What runs cells, and the fingerprints of its machines; the folder travels with somebody's code."""
    if on is None:
        yield here, None
        return
    from hotloop.lab.sweep.on_ray import on_ray

    carry = Path.cwd() if any(cell.names_code for cell in cells) else None
    with on_ray(on, timed=timed, carry=carry, say=remark) as ray:
        hosts = len({node.host for node in ray.nodes})
        cores = sum(node.cores for node in ray.nodes)
        remark(f"on {on}: {len(ray.nodes)} nodes on {hosts} machines, {cores} cores")
        yield ray, ray.fingerprints


def side_by_side(executor: "Executor") -> "Executor":
    """The same for cells that nobody times."""
    from dataclasses import replace

    from hotloop.lab.sweep.on_ray import OnRay

    return replace(executor, timed=False) if isinstance(executor, OnRay) else executor


def swept(
    axes: "Axes",
    kind: str,
    cells: "Sequence[Cell]",
    experiment: "Callable[[Progress, CellCache, Executor], Record]",
    *,
    on: str | None,
    resume: bool,
) -> "Record":
    """Run an experiment of many cells with a bar, their records on a shelf."""
    from hotloop.lab.sweep.cells import FOLDER, LocalExecutor, shelf_of

    with executor(on, cells, LocalExecutor(), timed=True) as (running, machines):
        shelf = shelf_of(FOLDER, kind, cells, resume=resume, machines=machines)
        try:
            with bar(axes.target.name) as progress, stdout_kept_clean():
                record = experiment(progress, shelf, running)
        except KeyboardInterrupt:
            remark(
                f"interrupted: the cells that are done are in {shelf.folder}, and --resume goes on from there"
            )
            raise
    kept = f"the cells' records are in {shelf.folder}"
    remark(kept if shelf.fault is None else f"not all of {kept}, and cannot be resumed: {shelf.fault}")
    return settled(record)


def duration(seconds: float) -> str:
    """A time to wait, as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


def tell(record: "Record", output: Path, *, as_json: bool) -> int:
    """Keep the record and its pictures, print or draw it; returns its exit code."""
    from hotloop.report.kinds.record import record_panels

    drawn = pictures(record.target.words, record_panels(record))
    return tell_one(kept_in(output, record, *drawn), as_json=as_json)


def pictures(title: str, panels: "Sequence[Panel]") -> list[tuple[str, bytes]]:
    """The drawings that lie beside a record; without Pillow no PNG."""
    from hotloop.report.charts import png, svg

    if not panels:
        return []
    drawn = [(".svg", svg(title, panels))]
    try:
        drawn.append((".png", png(title, panels)))
    except SetupError as error:
        remark(f"no PNG: {error}")
    return drawn
