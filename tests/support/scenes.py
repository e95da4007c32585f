"""Plays for probes to look at: small programs with something wrong in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.core.registry import Scene

KEPT: list[object] = []


def slow() -> float:
    total = 0.0
    for number in range(400):
        total += number * 0.5
    return total


def quick() -> int:
    return 1


def turn() -> None:
    slow()
    quick()


def leak() -> None:
    quick()
    KEPT.append(bytes(1024))


def hold() -> None:
    """Hold one thing and let go of the one before: memory that does not grow."""
    KEPT[:] = [bytes(4096)]


def tangle() -> None:
    """Leave garbage that only the collector finds."""
    knot: list[object] = [bytes(512)]
    knot.append(knot)


def hold_and_tangle() -> None:
    hold()
    tangle()


def scene(folder: Path, step: Callable[[], Any], *, calls: int = 50, **more: Any) -> Scene:
    """A play that calls a function once a step."""

    def draw(count: int) -> Callable[[], None]:
        def played() -> None:
            for _ in range(count):
                step()

        return played

    return Scene(draw=draw, calls=calls, clean_ns=1_000, env_steps=1, folder=folder, **more)
