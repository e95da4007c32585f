"""Instructions, counted by valgrind's callgrind: what hardly varies where time varies with everything.

The counted program starts under valgrind once, prepares, and then forks a child for each stretch it is
asked for. Valgrind follows the children and keeps a log of each, so two stretches differ by their own work
and nothing else: the start-up is in both, to the instruction.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from hotloop.core.errors import ExitCode, HotloopError, InputError, MissingError, SetupError
from hotloop.core.process import lifeline
from hotloop.core.process.worker import EndedError, Worker
from hotloop.core.record.profile import Finding
from hotloop.core.registry import Obstacle, Probe, Scene, nameless

COLLECTED = re.compile(r"^==\d+== Collected : (\d+)$", re.MULTILINE)

# Of the environment: no order that is drawn by lot, and no threads that spin while they wait.
FIXED = {
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}

MOST_ASKED = 4096  # Bytes of one request; a pipe passes that many on in one piece

Stretch = Callable[[Any], None]


def require() -> str:
    """The path of valgrind; MissingError where there is none."""
    path = shutil.which("valgrind")
    if path is None:
        raise MissingError("instructions are counted by valgrind, which is not here: apt install valgrind")
    return path


def instructions_of(log: str) -> int:
    """How many instructions a process ran, from its log; SetupError where it does not say."""
    found = COLLECTED.search(log)
    if found is None:
        raise SetupError(f"valgrind counted nothing; it said: {log.strip()[-300:] or 'nothing'}")
    return int(found.group(1))


def under_valgrind(command: Sequence[str], logs: Path) -> list[str]:
    """A command as valgrind runs it, at addresses that are the same each time where the kernel allows it."""
    setarch = shutil.which("setarch")
    if (
        setarch is None
        or subprocess.run([setarch, "-R", "true"], capture_output=True, check=False).returncode
    ):
        fixed = []
    else:
        fixed = [setarch, "-R"]
    callgrind = ["--tool=callgrind", "--callgrind-out-file=/dev/null", f"--log-file={logs}/%p"]
    return [*fixed, require(), *callgrind, *command]


class Counter(Worker):
    """A Python program under valgrind that calls `serve`, asked for one stretch after another."""

    def __init__(
        self, words: Sequence[str], environment: Mapping[str, str] | None = None, folder: Path | None = None
    ) -> None:
        """Start it in a folder; None is the current one."""
        require()
        self._folder = tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True)
        self._logs = Path(self._folder.name)
        super().__init__(
            "",
            under_valgrind([sys.executable, "-P", *words], self._logs),
            {**(os.environ if environment is None else environment), **FIXED},
            folder,
        )
        try:
            self.facts = self.answer()
        except BaseException:
            self.close()
            raise

    def count(self, stretch: Mapping[str, object]) -> int:
        """Return the instructions of a child that ran this stretch, its start-up among them."""
        pid = self.ask(**stretch)["pid"]
        return instructions_of((self._logs / str(pid)).read_text(errors="replace"))

    def close(self, patience_s: float = 0) -> None:
        """End the program and all that it started, at once."""
        super().close(patience_s)
        self._folder.cleanup()

    def explain(self, error: EndedError) -> HotloopError:
        """Return what it means that the program is gone: a fault of valgrind's, or its own."""
        kind = SetupError if error.printed.startswith(("valgrind:", "setarch:")) else InputError
        return kind(f"the program under valgrind ended; its last words: {error.last_words}")


class StretchServer:
    """The counted program's half of the pipes; what it prints itself goes elsewhere."""

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)

    def say(self, **answer: object) -> None:
        os.write(self._out, json.dumps(answer).encode() + b"\n")

    def serve(self, stretch: Stretch) -> None:
        """Run each stretch that is asked for in a child of its own.

        The child does the asking too: whatever this process did between two children would be counted as
        the second one's.
        """
        status = 0
        with lifeline.own_fork():
            while not status:
                pid = os.fork()
                if pid == 0:
                    _run(stretch)
                _, status = os.waitpid(pid, 0)
                if not status:
                    os.write(self._out, b'{"pid": %d}\n' % pid)
        self.say(error=f"the counted steps ended with status {status}", code=ExitCode.USAGE)


def _run(stretch: Stretch) -> NoReturn:
    """Read what is asked for, do it, and never come back into the loop that forked."""
    status = 1
    try:
        stretch(json.loads(os.read(0, MOST_ASKED)))
        status = 0
    finally:
        if status:
            sys.excepthook(*sys.exc_info())
        os._exit(status)


def why_not() -> Obstacle | None:
    if shutil.which("valgrind"):
        return None
    return Obstacle(why="valgrind is not installed", remedy="apt install valgrind")


def look(scene: Scene) -> Finding:
    """Count in a program of its own, on one thread."""
    if scene.count is None:
        raise nameless()
    counted = scene.count()
    runs = [list(run) for run in counted.runs]
    return Finding(
        probe="instructions",
        facts={"per_env_step": counted.per_env_step, "isa": counted.isa, "runs": runs},
    )


probe = Probe(
    name="instructions",
    purpose="instructions of an env-step, counted by valgrind; a busy machine cannot move them",
    why_not=why_not,
    look=look,
)
