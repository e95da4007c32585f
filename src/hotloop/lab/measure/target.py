"""Opening targets for measurement: the instrument is the experiment's to decide."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from hotloop.core.errors import InputError, unknown
from hotloop.core.target import Target
from hotloop.envs import tapes
from hotloop.envs.batch import Batch
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import TAPE, is_live, load
from hotloop.probes.instructions import require


def open_subject(target: Target, *, profile: bool) -> Subject:
    """Open a target, with the instrument or without."""
    if "profile" in target.keys:
        raise InputError("leave out profile=: bench runs with every probe off, profile with and without one")
    return open_target(target, profile=profile)


def open_batch(target: Target, *, profile: bool) -> Batch:
    """Open a target that is one of our presets."""
    subject = open_subject(target, profile=profile)
    if isinstance(subject, Batch) and subject.spec.origin is None:
        return subject
    name = target.name
    raise InputError(f"{name} has no phases of ours to look at: hotloop profile {name} shows its loop")


def check(
    targets: Sequence[Target], policy: str, *, phases: bool = False, instructions: bool = False
) -> None:
    """Refuse what cannot be built, played, looked into or counted before the first target is measured."""
    if instructions:
        require()
    opener = open_batch if phases else open_subject
    for target in targets:
        with closing(opener(target, profile=False)) as subject:
            check_player(subject, policy)


def check_player(subject: Subject, player: str) -> None:
    """Refuse a player that a subject does not know; all can be played at random, or by somebody's code."""
    if player.startswith(TAPE):
        tapes.read_for(Path(player.removeprefix(TAPE)), subject)
        return
    if is_live(player):
        load(player)
        return
    players = subject.players if isinstance(subject, Batch) else ("random",)
    if player not in players:
        raise unknown("player", player, players, f"{subject.spec.name} has {', '.join(players)}")
