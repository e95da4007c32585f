"""Probes: what each is, what it is given to look at, and why it may not run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.core.packages import install_line
from hotloop.core.record.metadata import Instructions
from hotloop.core.record.profile import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """Why a probe cannot run here, and what to do about it."""

    why: str
    remedy: str


class ProbeError(Exception):
    """A probe could not do its work; the others go on."""

    def __init__(self, why: str, remedy: str) -> None:
        super().__init__(f"{why}: {remedy}")
        self.obstacle = Obstacle(why=why, remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What a probe looks at: the play of a target, in this process or in one of its own."""

    draw: Callable[[int], Callable[[], None]]
    """Draws the actions of a number of calls, and gives what plays them once."""
    calls: int
    """Of one pass, as many as take about a second where no probe looks."""
    clean_ns: int
    """What such a pass takes where no probe looks, as far as the warm-up showed."""
    env_steps: int
    """Of one call."""
    folder: Path
    """Where a probe writes its files."""
    functions: tuple[tuple[str, Any], ...] = ()
    """Name and function of what was asked to be looked at line by line."""
    program: tuple[str, ...] = ()
    """The words of a Python program that plays the same for a few seconds; none where none can."""
    marker: str = ""
    """The function of that program below which it plays."""
    count: Callable[[], Instructions] | None = None
    """Counts the instructions of an env-step; None where no other process can open the target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One way of looking at a running program, in a pass of its own."""

    name: str
    purpose: str
    """One line."""
    why_not: Callable[[], Obstacle | None]
    """Why it cannot run here; None where it can."""
    look: Callable[[Scene], Finding]
    """Runs the pass; ProbeError where it turns out that it cannot."""


def nameless() -> ProbeError:
    """What a probe raises that looks at another process, where that could not open the same."""
    return ProbeError(
        "another process could not open what is looked at",
        "name the target and the policy, such as module:callable, instead of handing them over",
    )


def package_missing(package: str) -> Obstacle | None:
    """The obstacle of a package that is not installed."""
    from importlib.util import find_spec

    if find_spec(package) is not None:
        return None
    return Obstacle(why=f"{package} is not installed", remedy=install_line(package))
