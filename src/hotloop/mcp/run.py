"""A command line run for an agent: in a process of its own, heard as it goes, interrupted as by Ctrl-C."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio import to_thread

from hotloop.core.errors import ExitCode
from hotloop.core.files import VARIABLE
from hotloop.core.process.supervisor import STEP_S, ExitReport, StandstillLimits, Supervisor

# The command line, saying what it says over its lifeline.
PROGRAM = ("-P", "-c", "from hotloop.cli.isolated import main; main()")

# A command's time to save its record once it is interrupted: clients kill a server soon after SIGTERM.
STOP_S = 1.5

LOOK_S = 0.1  # Between two looks at how far a command is

# Told how far a command is, of how much, and what it is at.
Moved = Callable[[float, float, str], Awaitable[None]]


@dataclass(slots=True)
class Hearing:
    """What a command says; its own thread writes here, and whoever waits for it reads."""

    out: str = ""
    err: str = ""
    stage: int = 0  # Stretches of work that are done, each with a label of its own
    label: str = ""
    share: float = 0.0
    over: bool = False

    def said(self, stream: str, text: str) -> None:
        if stream == "out":
            self.out += text
        else:
            self.err += text

    def printed(self, text: str) -> None:
        """Somebody's code talks to nobody here."""

    def moved(self, label: str, done: int, total: int) -> None:
        if label != self.label:
            self.stage += bool(self.label)
            self.label, self.share = label, 0.0
        self.share = max(self.share, done / total if total else 0.0)

    @property
    def far(self) -> tuple[float, float, str]:
        """Never less than before, as the protocol wants it."""
        return self.stage + min(self.share, 1.0), self.stage + 1.0, self.label


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of a command."""

    code: int
    out: str
    err: str
    why: str | None = None  # What ended it where it did not end by itself
    rest: Path | None = None  # The file of what a command had measured when its process was ended
    saved: tuple[str, ...] = field(default_factory=tuple)

    @property
    def last_words(self) -> str:
        """The line that says what was wrong."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        return self.why or (lines[-1].removeprefix("hotloop: ") if lines else "it said nothing")


# Saves the record, as JSON, of a process that was ended; it is given the exit code and the reason.
Keep = Callable[[str, ExitCode, str | None], Path]


async def run(words: Sequence[str], moved: Moved, root: Path, keep: Keep) -> Done:
    """Run a command line confined to a folder; a cancellation interrupts it and keeps what it measured."""
    hearing, limits = Hearing(), StandstillLimits(step_s=STEP_S, stop_s=STOP_S)
    environment = {VARIABLE: str(root)}
    supervisor = Supervisor(" ".join(words[:2]), [*PROGRAM, *words], limits, hearing, environment)

    def watched() -> Done:
        try:
            ended = supervisor.run()
        finally:
            hearing.over = True
        return done(hearing, ended, keep)  # in this thread, which a cancellation waits for

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, hearing, supervisor, moved)
        told = await to_thread.run_sync(watched)
        tasks.cancel_scope.cancel()
    return told


async def follow(hearing: Hearing, supervisor: Supervisor, moved: Moved) -> None:
    """Pass on how far it is; where this is cancelled before the command is over, interrupt that."""
    last: tuple[float, float, str] | None = None
    try:
        while not hearing.over:
            if hearing.label and hearing.far != last:
                last = hearing.far
                await moved(*last)
            await anyio.sleep(LOOK_S)
    finally:
        if not hearing.over:
            supervisor.interrupt()


def done(hearing: Hearing, ended: ExitReport, keep: Keep) -> Done:
    """Return what became of a command, and save the record that it could not save itself."""
    code = ExitCode.INTERRUPTED if ended.interrupted else ExitCode.USAGE
    return Done(
        code=code if ended.code is None else ended.code,
        out=hearing.out,
        err=hearing.err,
        why=ended.why if ended.code is None else None,
        rest=None if ended.record is None else keep(ended.record, code, ended.why),
        saved=tuple(re.findall(r"^saved (\S+)$", hearing.err, re.MULTILINE)),
    )
