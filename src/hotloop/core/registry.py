"""Worlds, their presets, and probes: what each is, found by folder and file."""

import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.core.errors import InputError, unknown
from hotloop.core.world import World

if TYPE_CHECKING:
    from hotloop.core.record.metadata import Instructions
    from hotloop.core.record.profile import Finding

WORLDS = "hotloop.worlds"
PROBES = "hotloop.probes"
COMPONENTS = "components"
VERSIONED = re.compile(r"-v\d+$")  # How the ids of Gymnasium end


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetTarget:
    """One preset of one world."""

    world: World
    preset: str

    @property
    def target(self) -> str:
        """The name by which `find` finds it: `grid/toy`."""
        return self.world.name if self.world.part_of else f"{self.world.name}/{self.preset}"


def worlds() -> dict[str, World]:
    """Every folder of `hotloop.worlds` that declares a `world`, by name."""
    loaded = ((name, load(name)) for name in modules(WORLDS, packages=True))
    return {name: world for name, world in loaded if world is not None}


def components(world: str) -> dict[str, World]:
    """Return what a world's folder `components` declares as its `components`, by name."""
    folder = f"{WORLDS}.{world}"
    if COMPONENTS not in modules(folder, packages=True):
        return {}
    return {part.name: part for part in import_module(f"{folder}.{COMPONENTS}").components}


def presets(world: World) -> tuple[PresetTarget, ...]:
    """Every preset of a world, in its order."""
    return tuple(PresetTarget(world=world, preset=preset) for preset in world.presets)


def find(target: str) -> PresetTarget:
    """The preset a target names; a bare world's name means its default preset."""
    name, slash, preset = target.partition("/")
    world = load(name) if name in modules(WORLDS, packages=True) else None
    if world and not slash:
        return PresetTarget(world=world, preset=world.default_preset)
    if world and preset in world.presets:
        return PresetTarget(world=world, preset=preset)
    parts = components(name) if world else {}
    if target in parts:
        return PresetTarget(world=parts[target], preset=parts[target].default_preset)
    if target.endswith(".py"):
        raise InputError(f"{target} is a file: say what in it makes the environment, as {target}:make")
    if VERSIONED.search(target):
        raise InputError(f"{target} is no world of ours: write gym:{target} for an id of Gymnasium")
    known = worlds()
    targets = [found.target for world in known.values() for found in presets(world)]
    targets += [part for world in known for part in components(world)]
    raise unknown("target", target, [*known, *targets], "hotloop worlds lists them")


def probe_names() -> tuple[str, ...]:
    """The names of all probes, which are those of their files; imports none of them."""
    return tuple(modules(PROBES, packages=False))


def probes() -> "dict[str, Probe]":
    """Every file of `hotloop.probes` that declares a `probe`, by its name."""
    declared = (
        getattr(import_module(f"{PROBES}.{name}"), "probe", None) for name in modules(PROBES, packages=False)
    )
    return {probe.name: probe for probe in declared if isinstance(probe, Probe)}


def load(name: str) -> World | None:
    """The world a folder declares; None where it declares none."""
    world = getattr(import_module(f"{WORLDS}.{name}"), "world", None)
    return world if isinstance(world, World) else None


def modules(package: str, *, packages: bool) -> Iterator[str]:
    """The names of a package's folders, or of its files, that do not start with `_`; imports none of them."""
    for module in pkgutil.iter_modules(import_module(package).__path__):
        if module.ispkg is packages and not module.name.startswith("_"):
            yield module.name


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

    # Draws the actions of a number of calls, and gives what plays them once.
    draw: Callable[[int], Callable[[], None]]
    calls: int  # Of one pass, as many as take about a second where no probe looks
    clean_ns: int  # What such a pass takes where no probe looks, as far as the warm-up showed
    env_steps: int  # Of one call
    folder: Path  # Where a probe writes its files
    # Name and function of what was asked to be looked at line by line.
    functions: tuple[tuple[str, Any], ...] = ()
    # The words of a Python program that plays the same for a few seconds; none where none can.
    program: tuple[str, ...] = ()
    marker: str = ""  # The function of that program below which it plays
    # Counts the instructions of an env-step; None where no other process can open the target.
    count: "Callable[[], Instructions] | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One way of looking at a running program, in a pass of its own."""

    name: str
    purpose: str  # One line
    why_not: Callable[[], Obstacle | None]  # Why it cannot run here; None where it can
    look: "Callable[[Scene], Finding]"  # Runs the pass; ProbeError where it turns out that it cannot


def nameless() -> ProbeError:
    """What a probe raises that looks at another process, where that could not open the same."""
    return ProbeError(
        "another process could not open what is looked at",
        "name the target and the policy, such as module:callable, instead of handing them over",
    )


def package_missing(package: str) -> Obstacle | None:
    """The obstacle of a package that is not installed."""
    from importlib.util import find_spec

    from hotloop.core.machine import install_line

    if find_spec(package) is not None:
        return None
    return Obstacle(why=f"{package} is not installed", remedy=install_line(package))
