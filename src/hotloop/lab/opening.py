"""Opening targets for measurement: the instrument is the experiment's to decide."""

from collections.abc import Mapping, Sequence
from contextlib import closing

from hotloop.core.errors import InputError, unknown
from hotloop.envs.batch import Batch
from hotloop.envs.targets import make

Given = Mapping[str, object]
"""Key to value, as it was typed."""


def open_batch(target: str, given: Given, *, profile: bool) -> Batch:
    """Make a batch of a target, with the instrument or without."""
    if "profile" in given:
        raise InputError("leave out profile=: bench runs with every probe off, profile with and without one")
    return make(target, profile=profile, **given)


def check(targets: Sequence[str], given: Given, policy: str) -> None:
    """Refuse what cannot be built or played before the first target is measured, not after."""
    for target in targets:
        with closing(open_batch(target, given, profile=False)) as batch:
            check_player(batch, policy)


def check_player(batch: Batch, player: str) -> None:
    """Refuse a player that a batch does not know."""
    if player not in batch.players:
        known = f"{batch.spec.target} has {', '.join(batch.players)}"
        raise unknown("player", player, batch.players, known)
