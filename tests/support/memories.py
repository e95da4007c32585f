"""A look at a play's memory, to be taken in a process of its own."""

import gc
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from support.scenes import scene

from hotloop.core.record.profile import Finding
from hotloop.probes.memory import look


def looked_apart(folder: Path, step: Callable[[], None], calls: int, *, collecting: bool) -> Finding:
    """Where no other test has been: memray goes through every library that is loaded, and torch has many."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
        return apart.submit(looked, folder, step, calls, collecting).result()


def looked(folder: Path, step: Callable[[], None], calls: int, collecting: bool) -> Finding:
    if not collecting:
        gc.disable()
    return look(scene(folder, step, calls=calls))
