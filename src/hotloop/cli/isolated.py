"""Commands on user code: run in a process of their own, watched, and ended where they hang.

That process does all that the command does. What the command says goes over its lifeline; stdout and stderr
are those of user code. What it does not live to say is said in the first process: what happened at which
step, and a record of the rounds there were. The server of an assistant's tools uses the same process.
"""

import json
import math
import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

from hotloop.cli import main as entry
from hotloop.core.cluster import LOCAL
from hotloop.core.errors import ExitCode, worst
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import ProcessState
from hotloop.core.process.supervisor import PATIENCE_S, ExitReport, StandstillLimits, Supervisor
from hotloop.core.progress import Progress
from hotloop.core.settings import names_callable
from hotloop.options.option import HOMES, Options, ProcessOptions, options_of

if TYPE_CHECKING:
    from hotloop.core.record import Record

IN_PROCESS = "HOTLOOP_IN_PROCESS"  # Of the environment: 1 is short for --in-process on every command line
TERMINALS = "HOTLOOP_TERMINALS"  # Of the environment: which of `out` and `err` are terminals

SIDES = ("target", "a", "b", "more", "against", "policy")  # Arguments of commands that may name user code
TAPE = "tape:"  # What the name of a policy begins with that is a file of actions
FILE = ".py:"  # What is in a key's value that names a callable of the user: a network, a teacher, a player

# What a training's keys may begin with, those that say where a part of it runs, and how many parts.
TRAINS, PLACES, RANKS = "train.", ("collect", "ranks_on"), "ranks"

# A cluster that is started here ends whatever is connected to it, when its own process is gone.
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

PROGRAM = ("-P", "-c", "from hotloop.cli.isolated import run_call; run_call()")

EXECUTE = "hotloop.cli.isolated:execute"

# Of this process before user code came into it; None where the command runs in the first one.
surroundings: ProcessState | None = None


def execute(command: str, program: Sequence[str] | None = None, **values: Any) -> int:
    """Run a command with the values of its options, or on a program; return its exit code."""
    options = options_of(command, program=program is not None)(**values)
    module = import_module(f"hotloop.cli.commands.{HOMES[command]}")
    if program is None:
        code: int = getattr(module, command)(options)
    else:
        code = getattr(module, f"{command}_program")(tuple(program), options)
    return code


def run_isolated(
    command: str, values: Mapping[str, Any], kind: type[Options], process: ProcessOptions
) -> int:
    """Run a command in a process of its own if it would run user code, or starts processes itself.

    A command of the second kind runs no user code, and sees by itself which of its processes stand still: it
    runs below a guard, so that nothing is left of what it starts, whatever ends it.
    """
    names = [f"hotloop {command}"] if kind.guarded else list(foreign(values))
    is_own = os.environ.get(IN_PROCESS) == "1" or lifeline.line is not None
    if not names or is_own or process.in_process:
        return execute(command, **values)
    step_s = math.inf if kind.guarded else process.step_timeout
    limits = StandstillLimits(step_s=step_s, stop_s=PATIENCE_S if kind.stop_s is None else kind.stop_s)
    call = Call(command=EXECUTE, asked={"command": command, **values}, argv=sys.argv)
    return run_in_process(names, limits, call, saves=not kind.guarded)


def foreign(asked: Mapping[str, Any]) -> Iterator[str]:
    """Yield what user code options name; a file that is replayed says later what it is of."""
    for given in (asked.get(key) or "" for key in SIDES):
        for each in given if isinstance(given, list) else [given]:
            words = str(each).split()
            if words and names_callable(words[0]) and not words[0].startswith(TAPE):
                yield words[0]
    for word in asked.get("words") or ():
        key, _, value = word.partition("=")
        if FILE in value:
            yield value
        key = key.removeprefix(TRAINS)
        if (key in PLACES and value == LOCAL) or (key == RANKS and asked.get("on") == LOCAL):
            yield ON_RAY  # a part of the training, on a Ray that is started here
    yield from (str(asked[key]) for key in REPLAYS if asked.get(key) is not None)
    if asked.get("causal"):
        yield f"the target of {asked.get('record') or 'the newest record'}"
    if asked.get("resume") and "=" in (asked.get("target") or "="):
        yield "the run that goes on"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A command and what was asked of it, as they pass to a process that need not read the words again."""

    command: str  # `module:function`
    asked: Mapping[str, Any]
    argv: Sequence[str]  # Of the process that read them: user code may look

    def to_json(self) -> str:
        return json.dumps([self.command, self.asked, self.argv], default=lambda path: {"path": str(path)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return a call from its JSON, in which an object of one key stands for a path."""
        command, asked, argv = json.loads(
            text, object_hook=lambda each: Path(each["path"]) if list(each) == ["path"] else each
        )
        return cls(command=command, asked=asked, argv=argv)

    def run(self) -> int:
        module, _, name = self.command.partition(":")
        code: int = getattr(import_module(module), name)(**self.asked)
        return code


def run_in_process(names: Sequence[str], limits: StandstillLimits, call: Call, *, saves: bool = True) -> int:
    """Run the command in a process of its own; what it did not live to say is said here.

    `saves` keeps the record so far of a command that broke off. A verdict leaves nothing to save.
    """
    streams = {"out": sys.stdout, "err": sys.stderr}
    terminals = [name for name, stream in streams.items() if stream.isatty()]
    environment = {TERMINALS: ",".join(terminals)}
    if terminals:
        environment["COLUMNS"] = str(shutil.get_terminal_size().columns)
    with ExitStack() as stack:
        words, relay = [*PROGRAM, call.to_json()], OutputRelay(stack)
        ended = Supervisor(" | ".join(names), words, limits, relay, environment).run()
    if ended.code == ExitCode.INTERRUPTED and ended.why is not None:
        print(f"hotloop: {ended.why}", file=sys.stderr)
    if ended.code in VERDICTS or not saves:
        ended.record = None
    if ended.code is not None and ended.record is None:
        return ended.code
    if ON_RAY in names and ended.exited:
        ended.why = RAY_GONE
    return report_exit(ended, call.asked, ExitCode.FAULT if set(names) == {ON_RAY} else ExitCode.USAGE)


class OutputRelay:
    """Shows what the process says as if it were said here."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack, self._label = stack, ""
        self._move: Progress | None = None

    def said(self, stream: str, text: str) -> None:
        self._stack.close()
        self._label = ""
        if stream == "out":
            entry.emit(text)
        else:
            sys.stderr.write(text)

    def printed(self, text: str) -> None:
        sys.stderr.write(text)

    def moved(self, label: str, done: int, total: int) -> None:
        if label != self._label or self._move is None:
            self._stack.close()
            self._label, self._move = label, self._stack.enter_context(entry.bar(label))
        self._move(done, total)


def report_exit(ended: ExitReport, asked: Mapping[str, Any], fault: ExitCode = ExitCode.USAGE) -> int:
    """Say what happened to a process that was ended, and keep and show what it had measured by then."""
    code = ExitCode.INTERRUPTED if ended.interrupted else ExitCode(ended.code or fault)
    if ended.code is None:
        is_ours = False
        for frame in ended.stack if ended.hung else ():  # from the innermost to the first of ours, by thread
            is_ours = frame.startswith("  File") and (is_ours or str(HOME) in frame)
            if not is_ours:
                sys.stderr.write(f"{frame}\n")
        print(f"hotloop: {'interrupted' if ended.interrupted else ended.why}", file=sys.stderr)
    if ended.record is None:
        return code
    from hotloop.cli.results import make_room, print_records, save_record
    from hotloop.core.record import Record
    from hotloop.judge.judge import broken_off
    from hotloop.report.kinds.record import record_sections

    record = broken_off(Record.from_json(ended.record), code, ended.why)
    folder = asked.get("output") or Path(".design")
    make_room(folder)
    record = save_record(folder, record)
    as_json = bool(asked.get("json"))
    printed = print_records([record], record_sections(record), as_json=as_json)
    return worst((code, ExitCode(printed)))


class RelayStream:
    """A stream whose text is said over the lifeline.

    The first thread says what Hotloop says: what other threads print is user code's, whenever it comes.
    """

    def __init__(self, line: lifeline.SupervisorLine, name: str, *, is_terminal: bool) -> None:
        self._line, self._name, self._is_terminal = line, name, is_terminal
        # What the first process can show, whose environment decided this one's streams, too.
        self.encoding = sys.__stdout__.encoding if sys.__stdout__ else "utf-8"

    def write(self, text: str) -> int:
        if threading.current_thread() is not threading.main_thread():
            theirs = sys.__stdout__ if self._name == "out" else sys.__stderr__
            return theirs.write(text) if theirs is not None else len(text)
        if text:
            self._line.say(said=text, on=self._name)
        return len(text)

    def flush(self) -> None:
        """Everything is said at once."""

    def isatty(self) -> bool:
        return self._is_terminal

    def fileno(self) -> int:
        raise OSError("this stream is a line to another process")


def main() -> None:
    """Run the command line of this process below its supervisor."""
    run_child(lambda: entry.main(sys.argv[1:]))


def run_call() -> None:
    """Run the command that the one word of this process's command line names."""
    call = Call.from_json(sys.argv[1])
    sys.argv[:] = call.argv
    run_child(lambda: entry.exit_code_of(call.run))


def run_child(run: Callable[[], int]) -> None:
    """Run a command, say what it says and its code over the lifeline, and end."""
    global surroundings  # noqa: PLW0603 - a process has one
    line = lifeline.attach()
    terminals = os.environ.pop(TERMINALS, "").split(",")
    streams = (RelayStream(line, name, is_terminal=name in terminals) for name in ("out", "err"))
    out, entry.err = (cast("TextIO", each) for each in streams)
    with redirect_stdout(out), redirect_stderr(entry.err):
        surroundings = ProcessState()
        code = run()
    line.flush()
    line.say(end=code)
    left = [each for each in threading.enumerate() if each is not threading.main_thread()]
    if not all(each.daemon for each in left):
        os._exit(0)  # Python would wait for them


def undo_leftovers() -> list[str]:
    """Undo what user code left behind, and return it in words; nothing more is asked of that code."""
    if surroundings is None or lifeline.line is None:
        return []
    left = surroundings.settle()
    lifeline.line.settle()
    return left


def settle_record(record: "Record") -> "Record":
    """Return a record that is about to be kept, with what user code left behind, which is undone."""
    from hotloop.core.errors import Code, notice

    name, said = record.target.name, []
    if not record.partial:  # what broke it off is still to be told
        lifeline.pulse[lifeline.DOING] = lifeline.Activity.OURS
    if lifeline.unclosed:
        said.append(notice(Code.INTERFACE, target=name, fault=f"close() raised {lifeline.unclosed[0]}"))
        lifeline.unclosed.clear()
    if copies := lifeline.pulse[lifeline.COPIES]:
        fault = f"step() forked this process and came back in {copies} copies, which were ended"
        said.append(notice(Code.INTERFACE, target=name, fault=fault))
    if left := undo_leftovers():
        said.append(notice(Code.UNTIDY, target=name, what=", ".join(left)))
    return replace(record, notices=(*record.notices, *said)) if said else record
