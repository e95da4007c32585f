"""Opening targets for measurement: the instrument is the experiment's to decide."""

from collections.abc import Mapping, Sequence

from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.envs.targets import make

Given = Mapping[str, object]
"""Key to value, as it was typed."""


def open_batch(target: str, given: Given, *, profile: bool) -> Batch:
    """Make a batch of a target, with the instrument or without."""
    if "profile" in given:
        raise InputError("leave out profile=: bench runs with every probe off, profile with and without one")
    return make(target, profile=profile, **given)


def check(targets: Sequence[str], given: Given) -> None:
    """Refuse what cannot be built before the first target is measured, not after."""
    for target in targets:
        open_batch(target, given, profile=False).close()
