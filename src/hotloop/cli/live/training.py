"""What a person sees of a training run: a panel that is drawn anew, or a line a window."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hotloop.cli.console import remark
from hotloop.core.clock import now_ns
from hotloop.report.units import percent, plain, sparkline, speed

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotloop.lab.training.record import Epoch
    from hotloop.lab.training.run import Asked, Watch


REDRAW_NS = 200_000_000

MOST_SHARE = 0.02
"""Of the time, that drawing may take: what takes long is drawn less often."""

MIB = 1 << 20

SHARES = ("rollout", "learn", "eval", "logging", "checkpoint")


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

        return draw_panel(self._title, steps, total, self._epochs, self._said)


class Lines:
    """A line an epoch, for a log or a pipe, under a title that comes with the first."""

    def __init__(self, title: str) -> None:
        self._title = title

    def update(self, steps: int, total: int) -> None:
        """Nothing between epochs."""

    def epoch(self, epoch: "Epoch") -> None:

        if self._title:
            sys.stderr.write(f"{self._title}\n")
            self._title = ""
        sys.stderr.write(f"{epoch_words(epoch)}\n")

    def say(self, text: str) -> None:
        remark(text)


@contextmanager
def open_panel(asked: "Asked") -> "Iterator[Watch]":
    """A panel at a terminal; lines elsewhere. Both are on stderr."""
    from hotloop.lab.training.run import Watch

    title = f"{asked.settings.target.name}  run={asked.run.name}"
    if not sys.stderr.isatty():
        lines = Lines(f"{title}  {asked.run.folder}/logs/script.log")
        yield Watch(update=lines.update, epoch=lines.epoch, say=lines.say)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        panel = Panel(live, title)
        panel.update(0, asked.settings.train.total_timesteps)
        yield Watch(update=panel.update, epoch=panel.epoch, say=panel.say)


def draw_panel(
    title: str, steps: int, total: int, epochs: "Sequence[Epoch]", said: str = ""
) -> "RenderableType":
    """All there is to see between two updates."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from hotloop.report.sections.train import tree
    from hotloop.report.terminal import draw

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    facts.add_row("steps", steps_bar(steps, total))
    if epochs:
        for name, value in rows(epochs):
            facts.add_row(name, value)
    else:
        facts.add_row("speed", "the first window is under way")
    parts: list[RenderableType] = [facts]
    if epochs and epochs[-1].times:
        parts.append(draw(tree(epochs[-1].times, "the last window")))
    if said:
        parts.append(Text(said, "yellow"))
    return Panel(Group(*parts), title=Text(title, "bold"), title_align="left")


def steps_bar(steps: int, total: int) -> "RenderableType":
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=total, completed=min(steps, total), width=30), f"{steps:,} of {total:,}")
    return bar


def rows(epochs: "Sequence[Epoch]") -> list[tuple[str, str]]:
    """The facts of the last epoch, and the curves of all."""
    last = epochs[-1]
    returns = [each for epoch in epochs if (each := epoch.window.mean_return) is not None]
    known = [
        (
            "speed",
            f"{speed(last.sps)} steps/s now, {speed(last.mean_sps)} on average, {duration(last.eta_s)} left",
        ),
        ("shares", shares(last)),
        ("return", f"{plain(returns[-1])}  {sparkline(returns)}" if returns else "no episode has ended"),
        ("learning", learning(last)),
        ("memory", memory(last)),
    ]
    evaluated = [epoch.evaluation for epoch in epochs if epoch.evaluation]
    if evaluated:
        line = sparkline([evaluation.mean_return for evaluation in evaluated])
        known.insert(3, ("eval", f"{plain(evaluated[-1].mean_return)}  {line}"))
    if last.validation:
        known.append(("validated", validated(last)))
    return [(name, value) for name, value in known if value]


def shares(epoch: "Epoch") -> str:
    times = epoch.times
    if times is None:
        return ""
    known = ((name, times.share(name)) for name in SHARES)
    words = [f"{name} {percent(share)}" for name, share in known if share]
    return ", ".join([*words, f"unaccounted {percent(times.unaccounted_ns / max(times.wall_ns, 1))}"])


def learning(epoch: "Epoch") -> str:
    words = [epoch.update.phase, f"learning rate {epoch.update.learning_rate:.2g}"]
    if epoch.agreement is not None:
        words.append(f"agrees with the teacher in {percent(epoch.agreement)}")
    return ", ".join([*words, *(f"{name} {value:.3g}" for name, value in epoch.losses.items())])


def memory(epoch: "Epoch") -> str:
    here = f"{epoch.rss_bytes / MIB:,.0f} MiB"
    return here if epoch.gpu_bytes is None else f"{here}, {epoch.gpu_bytes / MIB:,.0f} MiB on the GPU"


def validated(epoch: "Epoch") -> str:
    checked = epoch.validation
    if checked is None:
        return ""
    if checked.difference:
        return f"DIFFERS: {checked.difference}"
    return f"{checked.comparisons:,} outputs equal to the twin's, to the byte"


def epoch_words(epoch: "Epoch") -> str:
    """One line about one epoch."""
    words = [
        f"epoch {epoch.number:,}",
        f"{epoch.steps:,} of {epoch.total:,} steps",
        f"{epoch.sps:,.0f} steps/s (mean {epoch.mean_sps:,.0f})",
        "no episode ended" if (mean := epoch.window.mean_return) is None else f"return {plain(mean)}",
    ]
    if epoch.evaluation:
        words.append(f"eval {plain(epoch.evaluation.mean_return)}")
    if epoch.agreement is not None:
        words.append(f"agreement {percent(epoch.agreement)}")
    if epoch.times and (largest := epoch.times.largest):
        share = percent(largest.total_ns / max(epoch.times.wall_ns, 1))
        words.append(f"largest {largest.path.replace('/', ' > ')} {share}")
    if epoch.validation:
        words.append(validated(epoch))
    return ", ".join([*words, f"{duration(epoch.eta_s)} left"])


def duration(seconds: float) -> str:
    """`45 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
