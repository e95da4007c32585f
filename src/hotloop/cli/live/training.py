"""What a person sees of a training run: a panel that is drawn anew, or a line a window."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hotloop.cli import child
from hotloop.cli.console import remark
from hotloop.core.clock import now_ns
from hotloop.report.units import percent, plain, sparkline, speed

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotloop.lab.training.record import Window
    from hotloop.lab.training.run import Asked, Watch


REDRAW_NS = 200_000_000

MOST_SHARE = 0.02  # Of the time, that drawing may take: what takes long is drawn less often

MIB = 1 << 20

SHARES = ("rollout", "learn", "eval", "logging", "checkpoint")


class Panel:
    """Redrawn between updates, never inside one: no thread of its own takes time from the run."""

    def __init__(self, live: Any, title: str) -> None:
        self._live = live
        self._title = title
        self._windows: list[Window] = []
        self._said = ""
        self._due_ns = 0

    def update(self, steps: int, total: int) -> None:
        begin = now_ns()
        if begin >= self._due_ns:
            self._live.update(self._view(steps, total), refresh=True)
            end = now_ns()
            self._due_ns = end + max(REDRAW_NS, round((end - begin) / MOST_SHARE))

    def window(self, window: "Window") -> None:
        self._windows.append(window)
        self.update(window.steps, window.total)

    def say(self, text: str) -> None:
        self._said = text

    def _view(self, steps: int, total: int) -> "RenderableType":

        return draw_panel(self._title, steps, total, self._windows, self._said)


class Lines:
    """A line a window, for a log or a pipe, under a title that comes with the first."""

    def __init__(self, title: str) -> None:
        self._title = title

    def update(self, steps: int, total: int) -> None:
        """Nothing between windows."""

    def window(self, window: "Window") -> None:

        stream = child.err or sys.stderr
        if self._title:
            stream.write(f"{self._title}\n")
            self._title = ""
        stream.write(f"{window_words(window)}\n")

    def say(self, text: str) -> None:
        remark(text)


@contextmanager
def open_panel(asked: "Asked") -> "Iterator[Watch]":
    """A panel at a terminal; lines elsewhere. Both are on stderr."""
    from hotloop.lab.training.run import Watch

    title = f"{asked.settings.target.name}  run={asked.run.name}"
    if not sys.stderr.isatty():
        lines = Lines(f"{title}  {asked.run.folder}/logs/script.log")
        yield Watch(update=lines.update, window=lines.window, say=lines.say)
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        panel = Panel(live, title)
        panel.update(0, asked.settings.train.total_timesteps)
        yield Watch(update=panel.update, window=panel.window, say=panel.say)


def draw_panel(
    title: str, steps: int, total: int, windows: "Sequence[Window]", said: str = ""
) -> "RenderableType":
    """All there is to see between two updates."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    from hotloop.report.kinds.train import training_tree
    from hotloop.report.terminal import draw

    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    facts.add_row("steps", steps_bar(steps, total))
    if windows:
        for name, value in rows(windows):
            facts.add_row(name, value)
    else:
        facts.add_row("speed", "the first window is under way")
    parts: list[RenderableType] = [facts]
    if windows and windows[-1].times:
        parts.append(draw(training_tree(windows[-1].times, "the last window")))
    if said:
        parts.append(Text(said, "yellow"))
    return Panel(Group(*parts), title=Text(title, "bold"), title_align="left")


def steps_bar(steps: int, total: int) -> "RenderableType":
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=total, completed=min(steps, total), width=30), f"{steps:,} of {total:,}")
    return bar


def rows(windows: "Sequence[Window]") -> list[tuple[str, str]]:
    """The facts of the last window, and the curves of all."""
    last = windows[-1]
    returns = [each for window in windows if (each := window.episodes.mean_return) is not None]
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
    evaluated = [window.evaluation for window in windows if window.evaluation]
    if evaluated:
        line = sparkline([evaluation.mean_return for evaluation in evaluated])
        known.insert(3, ("eval", f"{plain(evaluated[-1].mean_return)}  {line}"))
    if last.validation:
        known.append(("validated", validated(last)))
    return [(name, value) for name, value in known if value]


def shares(window: "Window") -> str:
    times = window.times
    if times is None:
        return ""
    known = ((name, times.share(name)) for name in SHARES)
    words = [f"{name} {percent(share)}" for name, share in known if share]
    return ", ".join([*words, f"unaccounted {percent(times.unaccounted_ns / max(times.total_ns, 1))}"])


def learning(window: "Window") -> str:
    words = [window.update.phase, f"learning rate {window.update.learning_rate:.2g}"]
    if window.agreement is not None:
        words.append(f"agrees with the teacher in {percent(window.agreement)}")
    return ", ".join([*words, *(f"{name} {value:.3g}" for name, value in window.losses.items())])


def memory(window: "Window") -> str:
    here = f"{window.rss_bytes / MIB:,.0f} MiB"
    return here if window.gpu_bytes is None else f"{here}, {window.gpu_bytes / MIB:,.0f} MiB on the GPU"


def validated(window: "Window") -> str:
    checked = window.validation
    if checked is None:
        return ""
    if checked.difference:
        return f"DIFFERS: {checked.difference}"
    return f"{checked.comparisons:,} outputs equal to the twin's, to the byte"


def window_words(window: "Window") -> str:
    """One line about one window."""
    words = [
        f"epoch {window.number:,}",
        f"{window.steps:,} of {window.total:,} steps",
        f"{window.sps:,.0f} steps/s (mean {window.mean_sps:,.0f})",
        "no episode ended" if (mean := window.episodes.mean_return) is None else f"return {plain(mean)}",
    ]
    if window.evaluation:
        words.append(f"eval {plain(window.evaluation.mean_return)}")
    if window.agreement is not None:
        words.append(f"agreement {percent(window.agreement)}")
    if window.times and (largest := window.times.largest):
        share = percent(largest.total_ns / max(window.times.total_ns, 1))
        words.append(f"largest {largest.path.replace('/', ' > ')} {share}")
    if window.validation:
        words.append(validated(window))
    return ", ".join([*words, f"{duration(window.eta_s)} left"])


def duration(seconds: float) -> str:
    """`45 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
