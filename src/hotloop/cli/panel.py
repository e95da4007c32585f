"""What a person sees of a training run: a panel that is drawn anew, or a line an epoch."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hotloop.cli.output import remark
from hotloop.core.clock import now_ns

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotloop.lab.epochs import Epoch
    from hotloop.lab.training import Asked, Watch

REDRAW_NS = 200_000_000
MOST_SHARE = 0.02
"""Of the time, that drawing may take: what takes long is drawn less often."""


class Panel:
    """Redrawn between updates, never inside one: no thread of its own takes time from the run."""

    def __init__(self, live: Any, title: str) -> None:
        self._live = live
        self._title = title
        self._epochs: list[Epoch] = []
        self._said = ""
        self._due_ns = 0

    def update(self, steps: int, total: int) -> None:
        begin = now_ns()
        if begin >= self._due_ns:
            self._live.update(self._view(steps, total), refresh=True)
            end = now_ns()
            self._due_ns = end + max(REDRAW_NS, round((end - begin) / MOST_SHARE))

    def epoch(self, epoch: "Epoch") -> None:
        self._epochs.append(epoch)
        self.update(epoch.steps, epoch.total)

    def say(self, text: str) -> None:
        self._said = text

    def _view(self, steps: int, total: int) -> "RenderableType":
        from hotloop.cli.dashboard import draw_panel

        return draw_panel(self._title, steps, total, self._epochs, self._said)


class Lines:
    """A line an epoch, for a log or a pipe, under a title that comes with the first."""

    def __init__(self, title: str) -> None:
        self._title = title

    def update(self, steps: int, total: int) -> None:
        """Nothing between epochs."""

    def epoch(self, epoch: "Epoch") -> None:
        from hotloop.cli.dashboard import epoch_words

        if self._title:
            sys.stderr.write(f"{self._title}\n")
            self._title = ""
        sys.stderr.write(f"{epoch_words(epoch)}\n")

    def say(self, text: str) -> None:
        remark(text)


@contextmanager
def open_panel(asked: "Asked") -> "Iterator[Watch]":
    """A panel at a terminal; lines elsewhere. Both are on stderr."""
    from hotloop.lab.training import Watch

    title = f"{asked.regimen.target}  run={asked.run.name}"
    if not sys.stderr.isatty():
        lines = Lines(f"{title}  {asked.run.folder}/logs/script.log")
        yield Watch(update=lines.update, epoch=lines.epoch, say=lines.say)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        panel = Panel(live, title)
        panel.update(0, asked.regimen.train.total_timesteps)
        yield Watch(update=panel.update, epoch=panel.epoch, say=panel.say)
