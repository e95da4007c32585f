"""What a suite came to: each item with its record, or why there is none."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.core.errors import ExitCode, worst
from hotloop.core.record.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One item of a suite."""

    do: str
    target: str
    """As it would be typed."""
    against: str | None = None
    record: Record | None = None
    refused: str = ""
    """Why there is no record."""
    code: ExitCode = ExitCode.FINE
    """What it says to the shell."""
    kept: bool = False
    """Whether it was measured before, by the run that this one goes on with."""

    def plain(self) -> Mapping[str, Any]:
        return {
            "do": self.do,
            "target": self.target,
            "against": self.against,
            "code": int(self.code),
            "refused": self.refused,
            "record": None if self.record is None else json.loads(self.record.to_json()),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRan:
    """All of them."""

    name: str
    created: str
    items: tuple[Ran, ...]
    asked: int
    """How many there are in the suite; fewer were run where it was interrupted."""
    interrupted: bool = False

    @property
    def code(self) -> ExitCode:
        """What the suite says to the shell: the gravest of its items."""
        stopped = [ExitCode.INTERRUPTED] if self.interrupted else []
        return worst([*(item.code for item in self.items), *stopped])

    def to_json(self) -> str:
        facts = {
            "suite": self.name,
            "created": self.created,
            "interrupted": self.interrupted,
            "asked": self.asked,
            "code": int(self.code),
            "items": [item.plain() for item in self.items],
        }
        return json.dumps(facts, indent=1) + "\n"
