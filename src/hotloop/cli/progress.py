"""A bar with an ETA, for a person who waits at a terminal for longer than two seconds."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hotloop.core.clock import now_ns
from hotloop.lab.progress import Progress, silent

PATIENCE_NS = 2_000_000_000
REDRAW_NS = 100_000_000


@contextmanager
def bar(label: str) -> Iterator[Progress]:
    """Give an experiment a bar to move; without a terminal, something that does nothing.

    It is drawn only when it is moved, which is between rounds: no thread redraws it inside one.
    """
    if not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn(label), BarColumn(), TextColumn("{task.percentage:3.0f}%"), TimeRemainingColumn())
    shown = Bar(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
    task = shown.add_task(label)
    redraw_at = now_ns() + PATIENCE_NS

    def move(done: int, total: int) -> None:
        nonlocal redraw_at
        shown.update(task, completed=done, total=total)
        if now_ns() >= redraw_at:
            shown.start()
            shown.refresh()
            redraw_at = now_ns() + REDRAW_NS

    try:
        yield move
    finally:
        shown.stop()
