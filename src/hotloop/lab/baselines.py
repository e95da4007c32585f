"""Baselines: records kept by name, each under the machine that it was measured on."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotloop.core.errors import InputError, unknown
from hotloop.core.record import Record, read
from hotloop.lab.likeness import hardware, unequal
from hotloop.stats.metrics import with_metrics

FOLDER = Path("baselines")
NAME = re.compile(r"\w[\w.-]*")


def names_file(word: str) -> bool:
    """Whether a baseline is given as a file rather than by the name it was saved under."""
    return word.endswith(".json") or Path(word).name != word


def baseline_path(name: str, fingerprint: str) -> Path:
    """Where a baseline of that name is kept for a machine; refuses what cannot be a name."""
    if names_file(name) or not NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name for a baseline: use letters, digits, '-', '_' and '.'")
    return FOLDER / fingerprint / f"{name}.json"


def check_free(name: str, fingerprint: str) -> Path:
    """The path of a baseline that is yet to be; refuses one that is there, and says how to replace it."""
    path = baseline_path(name, fingerprint)
    if path.exists():
        raise InputError(f"baseline {name} exists and is never overwritten: to replace it, first rm {path}")
    return path


def find(word: str, machine: Mapping[str, Any]) -> Record:
    """The record that a file's path or a saved baseline's name stands for."""
    path = Path(word) if names_file(word) else saved(word, machine)
    return with_metrics(read(path))


def saved(name: str, machine: Mapping[str, Any]) -> Path:
    """Where a baseline of this machine is; refuses one of another with what differs."""
    path = baseline_path(name, machine["fingerprint"])
    if path.exists():
        return path
    elsewhere = sorted(FOLDER.glob(f"*/{path.name}"))
    if elsewhere:
        other = unequal(hardware(read(elsewhere[-1]).machine), hardware(machine))
        raise InputError(f"baseline {name} is of another machine ({other}): save one of this machine")
    known = sorted(each.stem for each in path.parent.glob("*.json"))
    has = f"this machine has {', '.join(known)}" if known else f"save one with --save-baseline {name}"
    raise unknown("baseline", name, known, has)
