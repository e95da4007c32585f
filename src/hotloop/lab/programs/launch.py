"""Launching programs: one run at a time, by a small process of its own, which ends them where this one is."""

import json
import math
import re
import select
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from hotloop.core.errors import Code, InputError, Notice, SetupError, UndecidedError, notice
from hotloop.core.process.worker import end_group, start
from hotloop.stats.summary import without_warmup

LAUNCHER = Path(__file__).parents[1] / "workers" / "launcher.py"

END_S = 2.0  # For a program to end by itself, once it is interrupted
PATIENCE_S = 3.0  # For the launcher to end after its program
SETTLE_S = 30.0  # For what a program leaves behind to stop using CPU; the program's time includes it
MOST_NAMED = 3  # Processes that a notice names

LAST_CHARACTERS = 300

ENDED = "what runs the programs has ended: run it again"

# In what Python says of a script that starts processes as soon as it is imported
UNGUARDED = "finished its bootstrapping phase"

NOT_STARTED = "it cannot be started"


@dataclass(frozen=True, slots=True)
class Program:
    """A command: words, no shell."""

    words: tuple[str, ...]

    @classmethod
    def parse(cls, text: str, what: str = "a program") -> "Program":
        """The words of one quoted argument."""
        try:
            words = tuple(shlex.split(text))
        except ValueError as error:
            raise InputError(f"{what} cannot be read: {error} in {text!r}") from None
        if not words:
            raise InputError(f"{what} is empty: give a command, such as 'python train.py'")
        return cls(words)

    @property
    def name(self) -> str:
        """As it would be typed."""
        return shlex.join(self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A process that a program left behind when it ended."""

    pid: int
    command: str
    is_busy: bool  # Whether it still used CPU when it was no longer waited for

    @property
    def name(self) -> str:
        return f"'{self.command}' (pid {self.pid})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """One run of a program, from its start to its end."""

    wall_ns: int
    cpu_ns: int  # Of it, its children and its orphans, user and system
    rss_peak_bytes: int  # Of the largest of them
    printed: str  # On stdout, then on stderr


class Launcher:
    """Runs programs until it is closed; what they print is kept from the screen."""

    def __init__(self, *, settle_s: float = SETTLE_S, end_s: float = END_S) -> None:
        self._settle_s, self._end_s = settle_s, end_s
        self._room = tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True)
        # What the runs left behind asleep, by program and command line
        self.orphans: dict[tuple[str, str], Orphan] = {}
        self._process = start(
            [sys.executable, "-I", "-S", str(LAUNCHER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Of the process below which all that the programs start is."""
        return self._process.pid

    @property
    def folder(self) -> Path:
        """For what programs print; it goes with the launcher."""
        return Path(self._room.name)

    def run(
        self,
        program: Program,
        environment: Mapping[str, str] | None = None,
        begun: Callable[[int], None] = lambda _: None,
    ) -> ProgramRun:
        """Run a program to its end; InputError with its own last words where it fails.

        UndecidedError where what it left behind goes on working. `begun` is told its pid.
        """
        out, err = (self.folder / name for name in ("out", "err"))
        begun(self.start(program, out, err, environment))
        answer = self._hear()
        printed = [file.read_text("utf-8", errors="replace") for file in (out, err)]
        if answer["status"]:
            raise InputError(f"{program.name} {describe_ending(answer['status'])}: {last_words(printed)}")
        self.note_orphans(program, answer)
        times = {name: answer[name] for name in ("wall_ns", "cpu_ns", "rss_peak_bytes")}
        return ProgramRun(**times, printed="\n".join(printed))

    def start(
        self, program: Program, out: Path, err: Path, environment: Mapping[str, str] | None = None
    ) -> int:
        """Start a program that prints to two files, or to one, and return its pid."""
        order = {
            "words": program.words,
            "out": str(out),
            "err": str(err),
            "environment": environment,
            "settle_s": self._settle_s,
            "end_s": self._end_s,
        }
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            raise SetupError(ENDED) from None
        answer = self._hear()
        if "error" in answer:
            raise InputError(f"{program.name}: {NOT_STARTED}: {answer['error']}")
        return int(answer["pid"])

    def wait(self, seconds: float) -> dict[str, Any] | None:
        """Return what became of the program that runs, or None when it still runs after so many seconds."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        return self._hear() if ready else None

    def note_orphans(self, program: Program, answer: Mapping[str, Any]) -> None:
        """Keep what a run left behind asleep; UndecidedError where it was at work."""
        for orphan in (Orphan(**each) for each in answer["left"]):
            if orphan.is_busy:
                raise UndecidedError(
                    f"cannot tell: {program.name} ended, and {orphan.name} still used CPU "
                    f"{self._settle_s:g} s later; have the program wait for what it starts"
                )
            self.orphans.setdefault((program.name, orphan.command), orphan)

    def notices(self) -> tuple[Notice, ...]:
        """Name what the programs left behind."""
        names: dict[str, list[str]] = {}
        for (program, _), orphan in self.orphans.items():
            names.setdefault(program, []).append(orphan.name)
        notices = []
        for program, own in names.items():
            more = [f"{len(own) - MOST_NAMED} more"] if len(own) > MOST_NAMED else []
            processes = ", ".join([*own[:MOST_NAMED], *more])
            notices.append(notice(Code.LEFT_BEHIND, program=program, processes=processes))
        return tuple(notices)

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer:
            raise SetupError(ENDED)
        found: dict[str, Any] = json.loads(answer)
        return found

    def close(self) -> None:
        """End the launcher, and the program that it runs."""
        self._process.terminate()
        try:
            self._process.wait(self._end_s + PATIENCE_S)
        except subprocess.TimeoutExpired:
            end_group(self._process)
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]
        self._room.cleanup()


def describe_ending(status: int) -> str:
    """How a program ended that failed."""
    if status > 0:
        return f"ended with exit code {status}"
    return f"was ended by {signal.Signals(-status).name}"


def last_words(printed: Sequence[str]) -> str:
    """What a program that failed said last; Python's advice on processes by what it comes to."""
    if any(UNGUARDED in text for text in printed):
        return (
            "the processes that it starts import it again: put what it does, not what it defines, below "
            "if __name__ == '__main__':"
        )
    return last_line(reversed(printed))


def last_line(printed: Sequence[str] | Any) -> str:
    """The last line that says anything, of the first text that has one."""
    for text in printed:
        lines = [line.strip() for line in text.replace("\r", "\n").splitlines() if line.strip()]
        if lines:
            return str(lines[-1][-LAST_CHARACTERS:])
    return "it printed nothing"


NAME = re.compile(r"[A-Za-z_][\w./-]*")

RESERVED = ("wall_ns", "cpu_ns", "cpu_share", "rss_peak_bytes", "runs_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number that a program prints, once or again and again."""

    name: str
    pattern: re.Pattern[str]
    less_is_better: bool = False  # Whether it is a time rather than a speed

    @property
    def headline(self) -> str:
        """What it is judged by, more being better."""
        return f"1/{self.name}" if self.less_is_better else self.name

    def speeds(self, values: Sequence[float]) -> list[float]:
        """The values, more being better."""
        return [1 / value for value in values] if self.less_is_better else list(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The values of a metric in one run, as they were printed."""

    values: tuple[float, ...]

    @property
    def kept(self) -> tuple[float, ...]:
        """Without the warm-up, by the rule that rounds are held to."""
        return without_warmup(self.values)

    @property
    def cut(self) -> int:
        return len(self.values) - len(self.kept)


def parse_metric(text: str, *, less_is_better: bool = False) -> Metric:
    """A metric as it is typed, `NAME=REGEX`."""
    name, equals, pattern = text.partition("=")
    if not equals or not NAME.fullmatch(name) or name in RESERVED:
        raise InputError(rf"--metric {text!r} does not fit: write NAME=REGEX, such as 'sps=SPS: (\d+)'")
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise InputError(f"--metric {name}: {pattern!r} is no regular expression: {error}") from None
    if compiled.groups > 1:
        raise InputError(f"--metric {name}: {compiled.groups} groups: put one around the number alone")
    return Metric(name=name, pattern=compiled, less_is_better=less_is_better)


def metric_of(text: str | None, *, less_is_better: bool = False) -> Metric | None:
    """Return the metric that programs are judged by, as it is typed; None if whole runs are."""
    return None if text is None else parse_metric(text, less_is_better=less_is_better)


def read_series(metric: Metric, run: ProgramRun, program: Program) -> Series:
    """Every value of a metric that a run printed; InputError where there is none, or one is no number."""
    values = []
    for text in matches(metric, run, program):
        values.append(to_number(metric, text))
        if not 0 < values[-1] < math.inf:
            raise InputError(f"--metric {metric.name} found {text}: only what is above 0 can be compared")
    return Series(values=tuple(values))


def matches(metric: Metric, run: ProgramRun, program: Program) -> list[str]:
    """What a metric's group matched, as it was printed; InputError where it matched nothing."""
    said = run.printed.replace("\r", "\n")
    found = [match.group(metric.pattern.groups) for match in metric.pattern.finditer(said)]
    if not found:
        raise InputError(
            f"{program.name} printed nothing that --metric {metric.name} finds; "
            f"its last line was: {last_line([said])}"
        )
    return found


def to_number(metric: Metric, text: str) -> float:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except (ValueError, AttributeError):
        raise InputError(
            f"--metric {metric.name} found {text!r}, which is no number: put a group around the number"
        ) from None
