"""Opening targets for measurement: the instrument is the experiment's to decide."""

from collections.abc import Callable, Sequence
from pathlib import Path

from hotloop.core.errors import InputError, unknown
from hotloop.core.settings import Target
from hotloop.core.turn_clock import FAMILY
from hotloop.envs import tapes
from hotloop.envs.open import open_target
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import LIVE, RANDOM, TAPE, Trained, is_live, load
from hotloop.probes.instructions import require

SEAT_KEYS = {"hero", "villain"}  # Keys that name the players of a game's two seats


def open_subject(target: Target, *, profile: bool) -> Subject:
    """Open a target, with the instrument or without."""
    if "profile" in target.keys:
        raise InputError("leave out profile=: bench runs with every probe off, profile with and without one")
    return open_with_players(target, profile=profile)


def open_with_players(target: Target, *, profile: bool) -> Subject:
    """Open a target, with players in its two seats if its keys name them."""
    if SEAT_KEYS & target.keys.keys():
        from hotloop.lab.sim.seated import is_seated, open_seated

        if is_seated(target):
            return open_seated(target, profile)
    return open_target(target, profile=profile)


class Opener:
    """Opens targets without the instrument, and hands on what is open already.

    To make a user environment may take long, and what was checked should be what is measured. A subject
    that was played is handed on only if its reset goes back to its seed: its next user resets it first.
    """

    def __init__(self, opens: Callable[..., Subject] | None = None) -> None:
        """`opens` opens what the names of targets do not; None opens them by their names."""
        self._opens = opens or open_subject
        self.by_name = opens is None
        """Whether another process could open the same."""
        self._spares: list[tuple[Target, Subject]] = []

    def watched(self, target: Target) -> Subject:
        """One with the instrument, which is the caller's to close."""
        return self._opens(target, profile=True)

    def open(self, target: Target) -> Subject:
        """One that was kept, or a new one; it is the caller's to close or to give back."""
        for spare in self._spares:
            if spare[0] == target:
                self._spares.remove(spare)
                return spare[1]
        children = list[int]()
        with FAMILY.noting(children):
            subject = self._opens(target, profile=False)
        FAMILY.claim(children, id(subject))
        return subject

    def keep(self, target: Target, subject: Subject, *, played: bool = True) -> None:
        """Take a subject back for the next who asks; one that cannot begin again is closed."""
        if played and not subject.restarts:
            subject.close()
        else:
            self._spares.append((target, subject))

    def close(self) -> None:
        """Close what is left."""
        while self._spares:
            self._spares.pop()[1].close()


def check(
    targets: Sequence[Target],
    policy: str,
    *,
    instructions: bool = False,
    opener: Opener | None = None,
) -> None:
    """Refuse what cannot be built, played, looked into or counted before the first target is measured.

    The first one is left to the opener, for it is measured next; of several, which are presets of ours, each
    other one is opened again when its turn comes.
    """
    if instructions:
        require()
    for target in targets:
        subject = open_subject(target, profile=False)
        try:
            check_player(subject, policy)
        except BaseException:
            subject.close()
            raise
        if opener is not None and target == targets[0]:
            opener.keep(target, subject, played=False)
        else:
            subject.close()


def check_player(subject: Subject, player: str) -> None:
    """Refuse a player that a subject does not know; all can be played at random, or by user code."""
    seated = getattr(subject, "policy", None)
    if seated and player != RANDOM:
        raise InputError(
            f"{seated} play already: leave out the policy {player}, or leave out hero= and villain="
        )
    if player.startswith(TAPE):
        tapes.read_for(Path(player.removeprefix(TAPE)), subject)
    elif player.startswith(LIVE):
        check_player(subject, player.removeprefix(LIVE))
    elif is_live(player):
        choose = load(player)
        if isinstance(choose, Trained):
            choose.sit(subject)
    elif player not in subject.players:
        players = subject.players
        raise unknown("player", player, players, f"{subject.spec.name} has {', '.join(players)}")
