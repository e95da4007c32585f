"""How an experiment says how far it is, without knowing who listens."""

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Called between measurements with what is done and what there is in all."""


def silent(done: int, total: int) -> None:
    """Listen to nothing."""
