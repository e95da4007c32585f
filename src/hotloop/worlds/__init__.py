"""The worlds: each a folder with its twin (the specification), its native rules and its registry entry."""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True, slots=True)
class MemberLoader:
    """Returns what a module of a world has under a name; it is imported no earlier than when called."""

    module: str
    name: str

    def __call__(self) -> Any:
        return getattr(import_module(f"hotloop.worlds.{self.module}"), self.name)
