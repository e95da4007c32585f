"""hotloop train: PPO or DQN on a world, seen as a panel that is drawn anew, or as a line a window."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli import main
from hotloop.cli.main import remark, show, stdout_kept_clean
from hotloop.cli.results import check_trust, make_folder, make_room, print_records, save_record
from hotloop.core.clock import now_ns
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.registry import find
from hotloop.core.settings import Target, describe
from hotloop.options.train import TrainOptions
from hotloop.report.section import percent, plain, sparkline, speed

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotloop.lab.training.run import TrainingWindow, TrainListener, TrainRequest
    from hotloop.lab.training.settings import RunFolder

OWN = ("network", "teacher")  # Keys that may name user code

REDRAW_NS = 200_000_000

MOST_SHARE = 0.02  # Of the time, that drawing may take: what takes long is drawn less often

MIB = 1 << 20

SHARES = ("rollout", "learn", "eval", "logging", "checkpoint")


def train(options: TrainOptions) -> int:
    """Train in view, keep and show the record; return its exit code."""
    from hotloop.lab.training.run import train as train_lab

    name, words, on = options.target or "", [*(options.words or ())], options.on
    # Where --resume leaves the target out, the first word is a key.
    target = Target.typed("", [name, *words]) if "=" in name else Target.typed(name, words)
    if on is not None:
        target = target.with_keys({"train.ranks_on": on})
    if options.keys:
        return list_keys(target.name)
    if options.trust is not None and not options.resume:
        raise InputError("--trust is for the settings of a run that --resume goes on with: leave it out")
    if follow_torchrun(target):
        return ExitCode.FINE
    folder, output = folders_of(options)
    make_folder(folder)
    make_room(output)
    asked = prepare_run(target, folder, options.trust, resume=options.resume)
    if on is not None and asked.settings.train.ranks == 1:
        raise InputError(f"--on {on} is for ranks after the first: give train.ranks=2 or more")
    for notice in asked.settings.notices:
        remark(f"! {notice.text}; {notice.remedy}")
    with open_panel(asked) as watch, stdout_kept_clean():
        record = train_lab(asked, watch)
    return print_records([save_record(output, record)], as_json=options.json)


def follow_torchrun(target: Target) -> bool:
    """Return whether torchrun made this a rank after the first, which has followed by now."""
    from hotloop.lab.training import ranks

    found = ranks.from_torchrun()
    if found is None:
        return False
    rank, size = found
    if rank:
        ranks.follow(rank, size)
    elif size > 1 and "ranks" not in target.keys:
        target.keys.setdefault("train.ranks", str(size))
    return rank > 0


def folders_of(options: TrainOptions) -> tuple[Path, Path]:
    """Return where the run and its record go: away, if `diagnose --causal` delays it and deletes it later."""
    from hotloop.lab.causal import left_folder

    away = left_folder()
    if away is None:
        return options.folder, options.output
    if options.resume:
        raise InputError("a run with delays begins anew: leave out --resume")
    return away / "runs", away / "records"


def prepare_run(target: Target, root: Path, trusted: Path | None, *, resume: bool) -> "TrainRequest":
    """Check everything that can be checked, then make or find the run's folder."""
    from hotloop.lab.training import settings as folders
    from hotloop.lab.training import settings as training_settings
    from hotloop.lab.training.run import TrainRequest
    from hotloop.lab.training.settings import check_trace
    from hotloop.lab.validate.shadow import comparisons_of

    popped = (target.keys.pop(key, None) for key in ("run", "validate"))
    name, validate = (None if word is None else str(word) for word in popped)
    if validate in ("false", "0"):
        validate = None
    if validate is not None:
        comparisons_of(validate)
        if resume:
            raise InputError("validate= begins with a run's first step: leave out --resume, or validate=")
    checkpoint = None
    if resume:
        found = folders.find_run(root, name)
        target = resumed_target(found, target, trusted)
        checkpoint, damaged = folders.last_checkpoint(found)
        for line in damaged:
            remark(f"{line}; going on from {checkpoint.name}")
    if validate is not None and target.is_foreign:
        raise InputError(f"validate= needs a twin, and {target.name} has none: leave it out")
    if not target.name:
        raise InputError("train needs a TARGET, such as prospector: hotloop train --help says how")
    made = training_settings.read(target)
    check_trace(made.profiler, training_settings.updates_of(made))
    run = found if resume else folders.begin_run(root, name, target.name)
    told = training_settings.with_full_names(target)
    return TrainRequest(settings=made, run=run, told=told, resume=checkpoint, validate=validate)


def resumed_target(run: "RunFolder", target: Target, trusted: Path | None) -> Target:
    """Return what a run goes on with: what it was begun with, and over it what is given now.

    What its file alone names, and the command line does not, is not called unless it is of this project.
    """
    from hotloop.lab.training.settings import PREFIX, SETTINGS, with_full_names

    was = run.told()
    if target.name and target.name != was.name and find(target.name).target != find(was.name).target:
        raise InputError(
            f"run {run.name} trains on {was.name}, not on {target.name}: "
            "leave the target out, or begin a new run"
        )
    given = {key.removeprefix(PREFIX) for key in target.keys}
    rest = {key: value for key, value in was.keys.items() if key.removeprefix(PREFIX) not in given}
    own = [value for key, value in rest.items() if key.removeprefix(PREFIX) in OWN and ":" in str(value)]
    calls = [Target("" if target.name == was.name else was.name, rest), *(Target(str(each)) for each in own)]
    check_trust(run.folder / SETTINGS, calls, trusted)
    return was.with_keys(with_full_names(Target(was.name, target.keys)).keys)


def list_keys(target: str) -> int:
    """Show every key, its default and its help."""
    from hotloop.lab.training.settings import PARTS, PREFIX
    from hotloop.report.kinds.listings import keys
    from hotloop.report.terminal import draw

    def shown(value: object) -> str:
        return ",".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()

    rows = [
        (f"{PREFIX}{prefix}{info.name}", shown(info.default), f"{info.help} ({info.expected})")
        for prefix, cls in PARTS.values()
        for info in describe(cls)
    ]
    show(draw(keys(rows)))
    remark(f"and the keys of the world: hotloop worlds {(target or 'WORLD').partition('/')[0]}")
    return ExitCode.FINE


class TrainingPanel:
    """Redrawn between updates, never inside one: no thread of its own takes time from the run."""

    def __init__(self, live: Any, title: str) -> None:
        self._live = live
        self._title = title
        self._windows: list[TrainingWindow] = []
        self._said = ""
        self._due_ns = 0

    def update(self, steps: int, total: int) -> None:
        begin = now_ns()
        if begin >= self._due_ns:
            view = draw_panel(self._title, steps, total, self._windows, self._said)
            self._live.update(view, refresh=True)
            end = now_ns()
            self._due_ns = end + max(REDRAW_NS, round((end - begin) / MOST_SHARE))

    def window(self, window: "TrainingWindow") -> None:
        self._windows.append(window)
        self.update(window.steps, window.total)

    def say(self, text: str) -> None:
        self._said = text


class TrainingLines:
    """A line a window, for a log or a pipe, under a title that comes with the first."""

    def __init__(self, title: str) -> None:
        self._title = title

    def update(self, steps: int, total: int) -> None:
        """Nothing between windows."""

    def window(self, window: "TrainingWindow") -> None:
        stream = main.err or sys.stderr
        if self._title:
            stream.write(f"{self._title}\n")
            self._title = ""
        stream.write(f"{window_words(window)}\n")

    def say(self, text: str) -> None:
        remark(text)


@contextmanager
def open_panel(asked: "TrainRequest") -> "Iterator[TrainListener]":
    """Yield a panel at a terminal, lines elsewhere, both on stderr."""
    from hotloop.lab.training.run import TrainListener

    title = f"{asked.settings.target.name}  run={asked.run.name}"
    if not sys.stderr.isatty():
        lines = TrainingLines(f"{title}  {asked.run.folder}/logs/script.log")
        yield TrainListener(update=lines.update, window=lines.window, say=lines.say)
        return
    from rich.console import Console
    from rich.live import Live

    terminal = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with Live(console=terminal, auto_refresh=False, transient=True) as live:
        panel = TrainingPanel(live, title)
        panel.update(0, asked.settings.train.total_timesteps)
        yield TrainListener(update=panel.update, window=panel.window, say=panel.say)


def draw_panel(
    title: str, steps: int, total: int, windows: "Sequence[TrainingWindow]", said: str = ""
) -> "RenderableType":
    """Draw all there is to see between two updates."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from hotloop.report.kinds.train import training_tree
    from hotloop.report.terminal import draw

    steps_bar = Table.grid(padding=(0, 1))
    done = ProgressBar(total=total, completed=min(steps, total), width=30)
    steps_bar.add_row(done, f"{steps:,} of {total:,}")
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column()
    facts.add_row("steps", steps_bar)
    for name, value in panel_rows(windows) if windows else [("speed", "the first window is under way")]:
        facts.add_row(name, value)
    parts: list[RenderableType] = [facts]
    if windows and windows[-1].times:
        parts.append(draw(training_tree(windows[-1].times, "the last window")))
    if said:
        parts.append(Text(said, "yellow"))
    return Panel(Group(*parts), title=Text(title, "bold"), title_align="left")


def panel_rows(windows: "Sequence[TrainingWindow]") -> Iterator[tuple[str, str]]:
    """Yield the facts of the last window, and the curves of all."""
    last = windows[-1]
    pace = f"{speed(last.sps)} steps/s now, {speed(last.mean_sps)} on average"
    yield "speed", f"{pace}, {duration(last.eta_s)} left"
    if times := last.times:
        known = ((name, times.share(name)) for name in SHARES)
        shares = [f"{name} {percent(share)}" for name, share in known if share]
        rest = percent(times.unaccounted_ns / max(times.total_ns, 1))
        yield "shares", ", ".join([*shares, f"unaccounted {rest}"])
    returns = [each for window in windows if (each := window.episodes.mean_return) is not None]
    yield "return", f"{plain(returns[-1])}  {sparkline(returns)}" if returns else "no episode has ended"
    if evaluated := [window.evaluation.mean_return for window in windows if window.evaluation]:
        yield "eval", f"{plain(evaluated[-1])}  {sparkline(evaluated)}"
    words = [last.update.phase, f"learning rate {last.update.learning_rate:.2g}"]
    if last.agreement is not None:
        words.append(f"agrees with the teacher in {percent(last.agreement)}")
    yield "learning", ", ".join([*words, *(f"{name} {value:.3g}" for name, value in last.losses.items())])
    gpu = "" if last.gpu_bytes is None else f", {last.gpu_bytes / MIB:,.0f} MiB on the GPU"
    yield "memory", f"{last.rss_bytes / MIB:,.0f} MiB{gpu}"
    if words_of_twin := twin_words(last):
        yield "validated", words_of_twin


def twin_words(window: "TrainingWindow") -> str:
    """Return what the comparison with the world's twin came to; empty without one."""
    checked = window.validation
    if checked is None:
        return ""
    if checked.difference:
        return f"DIFFERS: {checked.difference}"
    return f"{checked.comparisons:,} outputs equal to the twin's, to the byte"


def window_words(window: "TrainingWindow") -> str:
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
        words.append(twin_words(window))
    return ", ".join([*words, f"{duration(window.eta_s)} left"])


def duration(seconds: float) -> str:
    """`45 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"
