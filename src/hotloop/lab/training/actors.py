"""Ray actors that collect for a training: connected to meanwhile, and what they told of their episodes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.core.cluster import check_address, connected
from hotloop.core.machine import usable_cores
from hotloop.lab.training.settings import RunSettings
from hotloop.train.settings import HERE

if TYPE_CHECKING:
    from hotloop.train.processes.actors import Crew


@contextmanager
def hired(settings: RunSettings) -> "Iterator[Crew | None]":
    """Who collects for a training elsewhere; None where it collects itself."""
    train = settings.train
    if train.collect == HERE:
        yield None
        return
    address = check_address(train.collect)
    carry = Path.cwd() if settings.target.is_foreign else None
    with connected(address, carry=carry, cores=usable_cores()) as ray:
        from hotloop.train.processes.actors import Crew

        yield Crew(ray=ray, target=settings.target, actors=train.actors, staleness=train.staleness)
