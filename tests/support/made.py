"""Envs that know which one they are, and collide where two are given one file."""

from pathlib import Path
from typing import Any

from support.theirs import Env

MADE: list[int] = []
"""The numbers that were given, in order."""


class Numbered(Env):
    """Holds a file open that nobody else may have."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = Path(path)
        self.path.touch(exist_ok=False)

    def close(self) -> None:
        self.path.unlink()


def make(instance: int) -> Env:
    MADE.append(instance)
    return Env()


def with_file(path: str) -> Any:
    return Numbered(path)
