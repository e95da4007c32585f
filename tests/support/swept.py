"""Experiments on cells whose records are made up, so that no test waits for a measurement."""

from dataclasses import replace
from typing import Any

from support.records import BENCH

from hotloop.core.errors import InputError
from hotloop.core.machine import code, machine
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.settings import Target

RAN: list[str] = []
"""The targets that were run, in their order."""


def made_up(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """A record without a measurement; `n=refused` is refused, and `n=stop` is where Ctrl-C is pressed."""
    RAN.append(target.words)
    progress(1, 2)
    if target.keys.get("n") == "refused":
        raise InputError("n=refused does not fit")
    if target.keys.get("n") == "stop":
        raise KeyboardInterrupt
    return replace(
        BENCH,
        target=replace(BENCH.target, name=target.name, keys=dict(target.keys)),
        machine=machine(),
        code=code(None),
        partial=target.keys.get("n") == "half",
        label=asked.get("label"),
    )
