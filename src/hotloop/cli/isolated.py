"""Commands on somebody else's targets: run in a process of their own, heard, and ended where they hang.

The process does all that the command does. What it does not live to say is said here: what happened at which
step, and a record of the rounds there were.
"""

import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.child import TERMINALS, Call, execute
from hotloop.cli.console import bar, emit
from hotloop.core.cluster import LOCAL
from hotloop.core.errors import ExitCode, worst
from hotloop.core.process import lifeline
from hotloop.core.process.supervisor import PATIENCE_S, ExitReport, Limits, Supervisor
from hotloop.core.progress import Progress
from hotloop.core.target import names_callable
from hotloop.options.shared import ProcessOptions

if TYPE_CHECKING:
    from hotloop.core.record import Record

IN_PROCESS = "HOTLOOP_IN_PROCESS"  # Of the environment: 1 is short for --in-process on every command line
SIDES = ("target", "a", "b", "more", "against", "policy")  # Arguments of commands that name somebody's code
TAPE = "tape:"  # What the name of a policy begins with that is a file of actions
FILE = ".py:"  # What is in a key's value that names somebody's callable: a network, a teacher, a player

# What a training's keys may begin with, those that say where a part of it runs, and how many parts.
TRAINS, PLACES, RANKS = "train.", ("collect", "ranks_on"), "ranks"

# A cluster that is started here ends whoever is connected to it, when its own process is gone.
ON_RAY = "the training on Ray"

RAY_GONE = (
    "Ray's own process on this machine is gone, and Ray ended the training with it: "
    "--resume goes on from the last update that was finished"
)

REPLAYS = ("replay", "replay_slow")  # Those that name files which say what is opened

# Codes of commands that came to their end.
VERDICTS = (
    ExitCode.FINE,
    ExitCode.UNSTABLE,
    ExitCode.MISMATCH,
    ExitCode.REGRESSION,
    ExitCode.CANNOT_TELL,
)

HOME = Path(__file__).parents[1]

PROGRAM = ("-P", "-c", "from hotloop.cli.child import called; called()")

EXECUTE = "hotloop.cli.child:execute"


def run_isolated(
    command: str, values: Mapping[str, Any], process: ProcessOptions, stop_s: float | None
) -> int:
    """Run a command in a process of its own if it would run user code; it may take `stop_s` to end."""
    limits = Limits(step_s=process.step_timeout, stop_s=PATIENCE_S if stop_s is None else stop_s)
    names = list(foreign(values))
    if not names or stays(in_process=process.in_process):
        return execute(command, **values)
    call = Call(command=EXECUTE, asked={"command": command, **values}, argv=sys.argv)
    return run_in_process(names, limits, call)


def run_guarded(command: str, values: Mapping[str, Any]) -> int:
    """Run a command below a guard, so that nothing is left of what it starts, whatever ends it.

    It runs no user code itself, and sees by itself which of its own processes stand still.
    """
    if stays(in_process=False):
        return execute(command, **values)
    call = Call(command=EXECUTE, asked={"command": command, **values}, argv=sys.argv)
    return run_in_process([f"hotloop {command}"], Limits(step_s=math.inf), call, saves=False)


def stays(*, in_process: bool) -> bool:
    """Whether it stays here: because that was asked for, or because this is the process of its own."""
    return in_process or os.environ.get(IN_PROCESS) == "1" or lifeline.line is not None


def foreign(asked: Mapping[str, Any]) -> Iterator[str]:
    """What is somebody else's, by name; a file that is replayed says later what it is of."""
    yield from sides_of(asked)
    for word in asked.get("words") or ():
        key, _, value = word.partition("=")
        if FILE in value:
            yield value
        if on_ray(key.removeprefix(TRAINS), value, asked.get("on")):
            yield ON_RAY
    yield from (str(asked[key]) for key in REPLAYS if asked.get(key) is not None)
    if asked.get("causal"):
        yield f"the target of {asked.get('record') or 'the newest record'}"
    if asked.get("resume") and "=" in (asked.get("target") or "="):
        yield "the run that goes on"


def sides_of(asked: Mapping[str, Any]) -> Iterator[str]:
    """The targets that are named, and are not ours."""
    for key in SIDES:
        given = asked.get(key) or ""
        for each in given if isinstance(given, list) else [given]:
            words = str(each).split()
            if words and names_callable(words[0]) and not words[0].startswith(TAPE):
                yield words[0]


def on_ray(key: str, value: str, on: str | None) -> bool:
    """Whether a key of a training, or the flag beside it, puts a part of it on a Ray that is started here."""
    return (key in PLACES and value == LOCAL) or (key == RANKS and on == LOCAL)


def run_in_process(names: Sequence[str], limits: Limits, call: Call, *, saves: bool = True) -> int:
    """Run the command in a process of its own; what it did not live to say is said here.

    `saves` keeps the record so far of a command that broke off. A verdict leaves nothing to save.
    """
    with ExitStack() as stack, terminals():
        listener = OutputRelay(stack)
        ended = Supervisor(" | ".join(names), [*PROGRAM, call.to_json()], limits, listener).run()
    if ended.code == ExitCode.INTERRUPTED and ended.why is not None:
        print(f"hotloop: {ended.why}", file=sys.stderr)
    if ended.code in VERDICTS or not saves:
        ended.record = None
    if ended.code is not None and ended.record is None:
        return ended.code
    if ON_RAY in names and ended.exited:
        ended.why = RAY_GONE
    return report_exit(ended, call.asked, ExitCode.FAULT if set(names) == {ON_RAY} else ExitCode.USAGE)


class terminals:  # noqa: N801 - a context, entered for what it does
    """Let the process know, meanwhile, which of our streams are terminals and how wide."""

    def __enter__(self) -> None:
        streams = {"out": sys.stdout, "err": sys.stderr}
        named = ",".join(name for name, stream in streams.items() if stream.isatty())
        self._before = {name: os.environ.get(name) for name in (TERMINALS, "COLUMNS")}
        os.environ[TERMINALS] = named
        if named:
            os.environ["COLUMNS"] = str(shutil.get_terminal_size().columns)

    def __exit__(self, *_: object) -> None:
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class OutputRelay:
    """Shows what the process says as if it were said here."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self._label = stack, ""
        self._move: Progress | None = None

    def said(self, stream: str, text: str) -> None:
        self._stack.close()
        self._label = ""
        if stream == "out":
            emit(text)
        else:
            sys.stderr.write(text)

    def printed(self, text: str) -> None:
        sys.stderr.write(text)

    def moved(self, label: str, done: int, total: int) -> None:
        if label != self._label or self._move is None:
            self._stack.close()
            self._label, self._move = label, self._stack.enter_context(bar(label))
        self._move(done, total)


def report_exit(ended: ExitReport, asked: Mapping[str, Any], fault: ExitCode = ExitCode.USAGE) -> int:
    """Say what happened to a process that was ended, and keep what it had measured by then."""
    code = ExitCode.INTERRUPTED if ended.interrupted else ExitCode(ended.code or fault)
    if ended.code is None:
        sys.stderr.writelines(f"{frame}\n" for frame in theirs(ended.stack if ended.hung else ()))
        print(f"hotloop: {'interrupted' if ended.interrupted else ended.why}", file=sys.stderr)
    if ended.record is None:
        return code
    record = rest_of(ended.record, code, ended.why)
    return worst((code, ExitCode(kept(record, asked))))


def theirs(stack: Sequence[str]) -> Iterator[str]:
    """The frames of somebody else's code, from the innermost to the first of ours, of each thread."""
    ours = False
    for each in stack:
        ours = each.startswith("  File") and (ours or str(HOME) in each)
        if not ours:
            yield each


def rest_of(text: str, code: ExitCode, why: str | None) -> "Record":
    """The record of the rounds there were, judged as what it is."""
    from hotloop.core.record import Record
    from hotloop.judge.judge import broken_off

    return broken_off(Record.from_json(text), code, why)


def kept(record: "Record", asked: Mapping[str, Any]) -> int:
    """Keep and show it as its command would."""
    from hotloop.cli.results import make_room
    from hotloop.cli.runner import kept_in, tell
    from hotloop.report.kinds.record import record_sections
    from hotloop.report.terminal import draw

    folder = asked.get("output") or Path(".design")
    make_room(folder)
    saved = kept_in(folder, record)
    return tell([saved], draw(record_sections(saved)), as_json=bool(asked.get("json")), as_list=False)
