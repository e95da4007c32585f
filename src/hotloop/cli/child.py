"""A command in a process that somebody watches over: `cli/isolated`, or the server of an assistant's tools.

What the command says goes over its lifeline; stdout and stderr are those of somebody's code.
"""

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TextIO, cast

from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import ProcessState
from hotloop.options.commands import options_of

if TYPE_CHECKING:
    from hotloop.core.record import Record

TERMINALS = "HOTLOOP_TERMINALS"  # Of the environment: which of `out` and `err` are terminals

# Of this process before somebody's code came into it; None where the command runs in the first one.
surroundings: ProcessState | None = None


# What this process's remarks go to, whatever somebody's code has done to its stderr; None as above.
err: TextIO | None = None


class RelayStream:
    """A stream whose text is said over the lifeline.

    Whatever we say, the first thread says: what others print is somebody's code's, whenever it comes.
    """

    def __init__(self, line: lifeline.Line, name: str, *, is_terminal: bool) -> None:
        self._line, self._name, self._is_terminal = line, name, is_terminal
        self.encoding = sys.__stdout__.encoding if sys.__stdout__ else "utf-8"
        """What the first process can show, whose environment decided this one's streams, too."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A command and what was asked of it, as they pass to a process that need not read the words again."""

    command: str  # `module:function`
    asked: Mapping[str, Any]
    argv: Sequence[str]  # Of the process that read them: somebody's code may look

    def to_json(self) -> str:
        return json.dumps([self.command, self.asked, self.argv], default=lambda path: {"path": str(path)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        command, asked, argv = json.loads(text, object_hook=path_of)
        return cls(command=command, asked=asked, argv=argv)

    def run(self) -> int:
        module, _, name = self.command.partition(":")
        code: int = getattr(import_module(module), name)(**self.asked)
        return code


def execute(command: str, program: Sequence[str] | None = None, **values: Any) -> int:
    """Run a command with the values of its options, or on a program; returns its exit code."""
    options = options_of(command, program=program is not None)(**values)
    module = import_module(f"hotloop.cli.commands.{command}")
    if program is None:
        code: int = getattr(module, command)(options)
    else:
        code = getattr(module, f"{command}_program")(tuple(program), options)
    return code


def path_of(given: dict[str, Any]) -> Any:
    """The path that an object of JSON stands for; the only other one is what was asked, which has more."""
    return Path(given["path"]) if list(given) == ["path"] else given


def main() -> None:
    """Run the command line of this process."""

    def run() -> int:
        from hotloop.cli.main import main as run_line

        return run_line(sys.argv[1:])

    run_child(run)


def called() -> None:
    """Run the command that the one word of this process's command line names."""
    call = Call.from_json(sys.argv[1])
    sys.argv[:] = call.argv

    def run() -> int:
        from hotloop.cli.main import coded

        return coded(call.run)

    run_child(run)


def run_child(run: Callable[[], int]) -> None:
    """Run a command, say what it says and its code over the lifeline, and end."""
    global surroundings, err  # noqa: PLW0603 - a process has one
    line = lifeline.attach()
    terminals = os.environ.pop(TERMINALS, "").split(",")
    streams = (RelayStream(line, name, is_terminal=name in terminals) for name in ("out", "err"))
    out, err = (cast("TextIO", each) for each in streams)
    with redirect_stdout(out), redirect_stderr(err):
        surroundings = ProcessState()
        code = run()
    line.flush()
    line.say(end=code)
    left = [each for each in threading.enumerate() if each is not threading.main_thread()]
    if not all(each.daemon for each in left):
        os._exit(0)  # Python would wait for them


@contextmanager
def streams_of_theirs() -> Iterator[None]:
    """Meanwhile what is printed is somebody's code's, and goes to this process's own stdout and stderr."""
    assert sys.__stdout__ is not None
    assert sys.__stderr__ is not None
    with redirect_stdout(sys.__stdout__), redirect_stderr(sys.__stderr__):
        yield


def left_behind() -> list[str]:
    """What somebody's code left behind, in words; it is undone, and nothing more is asked of it."""
    if surroundings is None or lifeline.line is None:
        return []
    left = surroundings.settle()
    lifeline.line.settle()
    return left


def settled(record: "Record") -> "Record":
    """A record that is about to be kept, with what somebody's code left behind, which is undone."""
    from dataclasses import replace

    from hotloop.core.notices import Code, notice

    name, said = record.target.name, []
    if not record.partial:  # what broke it off is still to be told
        lifeline.pulse[lifeline.DOING] = lifeline.Doing.OURS
    if lifeline.unclosed:
        said.append(notice(Code.INTERFACE, target=name, fault=f"close() raised {lifeline.unclosed[0]}"))
        lifeline.unclosed.clear()
    if copies := lifeline.pulse[lifeline.COPIES]:
        fault = f"step() forked this process and came back in {copies} copies, which were ended"
        said.append(notice(Code.INTERFACE, target=name, fault=fault))
    left = left_behind()
    said += [notice(Code.UNTIDY, target=name, what=", ".join(left))] if left else []
    return replace(record, notices=(*record.notices, *said)) if said else record
