"""A command line whose targets live in processes of their own, as tests run it."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
