"""Command lines in processes of their own, each a fork of one that has imported everything already.

Torch alone takes two seconds to import. The one that forks does nothing else: it has no threads, and what a
command does to its own process is gone with it. Measurements are as short as they can be.
"""

import gc
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, Self

from pytest import MonkeyPatch  # noqa: PT013 - the name is all that is needed

IMPORTED = (
    "hotloop.train.trainer",
    "torch._dynamo",
    "gymnasium",
    "hotloop.cli.app",
    "hotloop.lab.bench",
    "hotloop.lab.compare.compare",
    "hotloop.lab.profile.profile",
    "hotloop.lab.training.run",
    "hotloop.cli.results",
    "hotloop.report.terminal",
    "pydantic",
)
"""First ours that says how torch's threads wait; an optimiser imports torch's compiler, typer pydantic."""


class Commands:
    """Runs command lines of Hotloop one after another, in the folder and environment of the caller."""

    def __init__(self, kept: Path) -> None:
        self.out, self.err = kept / "out", kept / "err"
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def run(self, words: Sequence[str], script: Path | None = None) -> CompletedProcess[str]:
        """Run one to its end, of a Python file if one is named, with nothing on its stdin."""
        asked = {
            "words": words,
            "script": script and str(script),
            "folder": str(Path.cwd()),
            "environment": dict(os.environ),
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        json.dump(asked | {"out": str(self.out), "err": str(self.err)}, self.process.stdin)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        return CompletedProcess(words, code, self.out.read_text(), self.err.read_text())


def serve() -> None:
    """Fork for each line of stdin, and answer with the exit code."""
    sys.path[0] = str(Path(__file__).parent.parent)
    for module in IMPORTED:
        import_module(module)
    import_module("support.boxes").shorten(MonkeyPatch())
    sys.path[0] = str(Path(sys.executable).parent)  # as for the installed script
    gc.freeze()  # what is never collected is never written to, and stays shared
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(**json.loads(line))
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def become(
    *, words: Sequence[str], script: str | None, folder: str, environment: dict[str, str], out: str, err: str
) -> Any:
    """Be the process of a command line, to its end."""
    from hotloop.cli.main import main

    for number, name, flags in ((0, os.devnull, os.O_RDONLY), (1, out, os.O_WRONLY), (2, err, os.O_WRONLY)):
        os.dup2(os.open(name, flags | (os.O_CREAT | os.O_TRUNC if number else 0)), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = [script or "hotloop", *words]
    if script is None:
        sys.exit(main())
    sys.path[0] = str(Path(script).parent)
    runpy.run_path(script, run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    serve()
