"""Which targets, and which program, the words of a command line stand for."""

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from hotloop.core.errors import InputError
from hotloop.core.registry import find, presets
from hotloop.core.target import Target, names_callable

if TYPE_CHECKING:
    from hotloop.lab.programs.launch import Metric, Program


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


class MetricOptions(Protocol):
    """Options that name a number which the program prints."""

    @property
    def metric(self) -> str | None:
        """Return it as `NAME=REGEX`."""

    @property
    def less_is_better(self) -> bool:
        """Return whether it is a time."""


def program_of(words: tuple[str, ...]) -> "Program":
    """Return the program of the words after `--`."""
    from hotloop.lab.programs.launch import Program

    if not words:
        raise InputError("nothing stands after --: give a command there, such as -- python train.py")
    return Program(words)


def metric_of(options: MetricOptions) -> "Metric | None":
    """Return the metric that programs are judged by; None if whole runs are."""
    from hotloop.lab.programs.launch import parse_metric

    if options.metric is None:
        return None
    return parse_metric(options.metric, less_is_better=options.less_is_better)
