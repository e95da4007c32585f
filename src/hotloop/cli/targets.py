"""Which targets a name on a command line stands for."""

from dataclasses import replace

from hotloop.core.errors import InputError
from hotloop.core.registry import find, presets
from hotloop.core.target import Target, names_callable


def reporting(target: Target, phases: str | None, time: list[str] | None = None) -> Target:
    """Return the target with what finds its phases, and functions to time: both are for others' code."""
    for flag, given in (("--phases", phases), ("--time", time)):
        if given and not target.is_foreign:
            raise InputError(f"{flag} is for others' code: {target.name} has its own phases; leave it out")
    return replace(target, phases=phases, time=tuple(time or ()))


def names_world(name: str) -> bool:
    """Return whether a name stands for all presets of a world."""
    return "/" not in name and not names_callable(name)


def names_several(name: str) -> bool:
    """Return whether a name stands for several targets: all presets of a world, or callables, `my.py:f,g`."""
    return names_world(name) or len(callables_of(name)) > 1


def callables_of(name: str) -> list[str]:
    """Return the callables of one file or module that a name lists."""
    place, _, names = name.rpartition(":")
    several = names.split(",")
    is_list = place and all(each.isidentifier() for each in several)
    return [f"{place}:{each}" for each in several] if is_list else [name]


def targets_of(target: Target) -> list[Target]:
    """Return the targets that one stands for, each with its keys."""
    if target.is_foreign:
        return [replace(target, name=name) for name in callables_of(target.name)]
    found = find(target.name)
    names = [each.target for each in presets(found.world)] if names_world(target.name) else [found.target]
    return [Target(name, target.keys) for name in names]
