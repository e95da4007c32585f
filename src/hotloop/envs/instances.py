"""Numbers of the environments that are made, so that the files and ports of several do not collide."""

import os
from collections.abc import Mapping
from typing import Any

VARIABLE = "HOTLOOP_FIRST_INSTANCE"
"""Where the numbers of this process begin."""

KEY, PLACE = "instance", "{instance}"
"""The argument that a callable may have, and what is replaced in the values of keys."""

LENT = 1_000
"""Numbers that another process gets."""


class Numbers:
    """Numbers one after another, of which a process that is started meanwhile gets none that is taken."""

    def __init__(self, first: int) -> None:
        self._next = first

    def take(self, count: int = 1) -> int:
        """The first of so many that nobody else gets."""
        first, self._next = self._next, self._next + count
        os.environ[VARIABLE] = str(self._next)
        return first


NUMBERS = Numbers(int(os.environ.get(VARIABLE, "0")))


def lent() -> dict[str, str]:
    """The environment variable that gives a process numbers of its own."""
    return {VARIABLE: str(NUMBERS.take(LENT))}


def is_numbered(value: object) -> bool:
    """Whether a key's value has the number in it."""
    return isinstance(value, str) and PLACE in value


def numbered(keys: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Keys with the number in place of `{instance}`."""
    spelled = str(number)
    return {
        key: value.replace(PLACE, spelled) if isinstance(value, str) else value for key, value in keys.items()
    }
