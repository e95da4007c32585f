"""Ray actors that collect for a training: connected to meanwhile, and what they told of their episodes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hotloop.core.cluster import check_address
from hotloop.lab.on_ray import on_ray
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
    with on_ray(check_address(train.collect), timed=False, carry=settings.carried) as there:
        from hotloop.train.processes.actors import Crew

        yield Crew(
            ray=there.ray,
            target=settings.target,
            actors=train.actors,
            cores=[node.cores for node in there.nodes],
            staleness=train.staleness,
        )
