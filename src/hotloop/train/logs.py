"""The logs of a run: JSON lines, lines for people and TensorBoard, written when a window ends.

    train_dir/<run>/logs/metrics.jsonl    one object a window, numbers by name
    train_dir/<run>/logs/script.log       one line a window: epoch=10 steps=655360 sps=51234 ...
    train_dir/<run>/tensorboard/          the same numbers

A line goes to the file in one write, so a kill can only tear the last one; opening the file again cuts that
off. A run that is resumed says from which step on in a line of its own, and `read_metrics` leaves out what
was written beyond it before.
"""

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.record.codec import Count, ForeignError, build, expect, parse, show

METRICS = Path("logs/metrics.jsonl")

SCRIPT = Path("logs/script.log")

TENSORBOARD = Path("tensorboard")

# What the names of numbers begin with that the lines for people leave out.
DETAILS = ("loss/", "info/", "time/")

RESUMED = "resumed"  # The key of a line that says that the run went on from its `steps`

Values = Mapping[str, float | int | str | None]


class Lines:
    """A text file that grows by whole lines."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._cut_torn_line()

    def append(self, line: str) -> None:
        text = line.encode() + b"\n"
        written = os.write(self._file, text)
        while written < len(text):
            written += os.write(self._file, text[written:])

    def close(self) -> None:
        os.close(self._file)

    def _cut_torn_line(self) -> None:
        end = os.lseek(self._file, 0, os.SEEK_END)
        whole = os.pread(self._file, end, 0).rfind(b"\n") + 1
        if whole < end:
            os.ftruncate(self._file, whole)


class Logs:
    """All logs of one run; what is no number goes to the lines for people only."""

    def __init__(self, folder: Path, *, resumed_at: int | None = None, tensorboard: bool = True) -> None:
        self._metrics = Lines(folder / METRICS)
        self._script = Lines(folder / SCRIPT)
        self._board = open_board(folder / TENSORBOARD, resumed_at) if tensorboard else None
        if resumed_at is not None:
            self._metrics.append(json.dumps({RESUMED: True, "steps": resumed_at}))
            self.say(f"resumed steps={resumed_at}")

    def say(self, text: str) -> None:
        """Add a line for people, with the date; further lines of it are indented."""
        self._script.append(f"{utc_now():%Y-%m-%dT%H:%M:%SZ} {text}".replace("\n", "\n    "))

    def write(self, steps: int, values: Values) -> None:
        """Write what a window came to; `steps` are those of the run since its very beginning."""
        numbers = {name: value for name, value in values.items() if is_number(value)}
        self._metrics.append(json.dumps({"steps": steps, **{name: plain(numbers[name]) for name in numbers}}))
        self.say(epoch_line(steps, values))
        if self._board is not None:
            for name, value in numbers.items():
                self._board.add_scalar(name, value, steps)
            self._board.flush()

    def close(self) -> None:
        self._metrics.close()
        self._script.close()
        if self._board is not None:
            self._board.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_board(folder: Path, resumed_at: int | None) -> Any:
    """TensorBoard's writer, which hides what lies beyond the step that a run goes on from."""
    from torch.utils.tensorboard import SummaryWriter

    purge = None if resumed_at is None else resumed_at + 1
    return SummaryWriter(str(folder), purge_step=purge, flush_secs=3600)  # type: ignore[no-untyped-call,unused-ignore]


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def plain(value: Any) -> float | int | None:
    """A number as JSON has it: what is no finite one is null."""
    number: float | int = value
    return number if math.isfinite(number) else None


def epoch_line(steps: int, values: Values) -> str:
    """`epoch=10 steps=655360 sps=51234 return=3.25 ...`: what is not known is left out."""
    words = {"epoch": values.get("epoch"), "steps": steps, "sps": values.get("sps"), **values}
    return " ".join(
        f"{name}={word(value)}"
        for name, value in words.items()
        if value is not None and not name.startswith(DETAILS)
    )


def word(value: float | str) -> str:
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)


def read_metrics(path: Path, say: Callable[[str], None] = lambda text: None) -> list[dict[str, Any]]:
    """The windows of a run in order; those that a resumed run went over again are left out.

    A last line that a kill tore is left out and said; any other that is none of ours is an InputError, which
    names the line and the field.
    """
    windows: list[dict[str, Any]] = []
    *whole, torn = text_of(path).split("\n")
    if torn:
        say(f"{path}: its last line was cut off, and is left out")
    for number, line in enumerate(whole, 1):
        found = window_of(line, f"{path}:{number}")
        if found.pop(RESUMED, False):
            windows = [window for window in windows if window["steps"] <= found["steps"]]
        else:
            windows.append(found)
    return windows


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def window_of(line: str, place: str) -> dict[str, Any]:
    """One line's numbers by name: `steps`, and whatever else a window has; null is not known."""
    try:
        found: dict[str, Any] = build(dict[str, Any], parse(line), "$")
        expect("steps" in found, "the field steps", None, "$")
        build(Count, found["steps"], "$.steps")
        for name, value in found.items():
            fits = isinstance(value, bool) if name == RESUMED else value is None or is_number(value)
            expect(fits, "bool" if name == RESUMED else "a number", value, f"$.{show(name)}")
    except ForeignError as error:
        raise InputError(f"{place}: {error}") from None
    return found
