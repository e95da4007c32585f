"""A command line whose targets live in processes of their own, as tests run it."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

MARK = "HOTLOOP_TEST_MARK"
"""A variable that everything below a command inherits."""

PATIENCE_S = 60.0
"""For what was ended to be gone."""


@dataclass(frozen=True)
class Said:
    """What one command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def line(self) -> str:
        """The one line of what went wrong."""
        (line,) = [line for line in self.err.splitlines() if line.startswith("hotloop: ")]
        return line


Command = Callable[..., Said]


def running() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdecimal()]


def marked(mark: str) -> list[int]:
    """Processes that come from a command and still run."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for name in running():
        with suppress(OSError):
            if wanted in Path(f"/proc/{name}/environ").read_bytes():
                found.append(int(name))
    return [pid for pid in found if pid != os.getpid()]


def check_no_orphan(mark: str) -> None:
    """Nothing is left of a command, at the latest after a while."""
    until = monotonic() + PATIENCE_S
    while (left := marked(mark)) and monotonic() < until:
        sleep(0.02)
    assert not left
