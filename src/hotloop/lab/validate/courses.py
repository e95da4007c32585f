"""Courses: the tapes a validation plays, from the usual to the nasty."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core import registry
from hotloop.core.machine import usable_cores
from hotloop.core.target import Target
from hotloop.envs.subject import Subject, WholeNumbers
from hotloop.lab.measure.policy import RANDOM, RandomPlay, acting

ADVERSARIAL = "adversarial"
RESET_ONE, RESET_ALL = 37, 101
"""Every so many steps an adversarial tape begins one env anew, and all of them."""

FIRST_RESET = 64
"""The other tapes begin all envs anew before this step, and before twice as many, and so on."""

CHUNK = 64
"""Calls whose actions are drawn at a time."""

WILD = 5
"""How far beyond the actions there are an adversarial tape goes."""

EXTREMES = (np.iinfo(np.int32).min, np.iinfo(np.int32).max, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """A kind of tape and how much of it is played."""

    tape: str
    share: float
    """Of all steps."""
    keys: dict[str, object]
    """What both sides are made with beside their own keys."""


def courses_for(subject: Subject, target: Target, policy: str | None = None) -> list[Course]:
    """The tapes that a subject can be played by: random, its players' or a policy's instead, adversarial."""
    players = [policy] if policy else [name for name in subject.players if name != RANDOM]
    scripted = [Course(tape=player, share=0.25 / len(players), keys={}) for player in players]
    nasty = Course(tape=ADVERSARIAL, share=0.25, keys=short_episodes(target))
    return [Course(tape=RANDOM, share=0.5 if players else 0.75, keys={}), *scripted, nasty]


def short_episodes(target: Target) -> dict[str, object]:
    """Keys that end episodes soon, unless somebody has said how long they are."""
    if target.is_foreign:
        return {}
    episode = registry.find(target.name).world.episode
    return {episode.parameter: episode.short} if episode and episode.parameter not in target.keys else {}


def actions_of(tape: str, subject: Subject) -> Iterator[Any]:
    """The actions of a tape, one call after another; a player looks at the subject when it is asked."""
    if tape not in (RANDOM, ADVERSARIAL):
        yield from acting(tape, subject)
    play = Adversarial(subject) if tape == ADVERSARIAL else RandomPlay(subject)
    while True:
        yield from (subject.settle(each) for each in play.draw(CHUNK)[:CHUNK])


def resets_before(tape: str, step: int, num_envs: int) -> list[int]:
    """The envs that a tape begins anew before a step.

    Every tape does, because what an episode leaves behind shows in the next one: after longer and longer
    stretches, so that episodes grow old first.
    """
    if step == 0:
        return []
    if tape != ADVERSARIAL:
        is_power_of_two = step & (step - 1) == 0
        return list(range(num_envs)) if step >= FIRST_RESET and is_power_of_two else []
    if step % RESET_ALL == 0:
        return list(range(num_envs))
    return [step // RESET_ONE % num_envs] if step % RESET_ONE == 0 else []


class Adversarial:
    """Every action in turn by every agent, then actions that do not exist among those that do."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._random = np.random.default_rng([subject.spec.seed, 1])
        self._calls = 0

    def draw(self, calls: int) -> Sequence[Any]:
        first, self._calls = self._calls, self._calls + calls
        known = self._subject.whole_numbers
        if known is None:
            return self._subject.draw(self._random, calls)
        in_turn = [self._subject.unfold(self._row(known, call)) for call in range(first, first + calls)]
        return self._subject.legal(self._random, in_turn)

    def _row(self, known: WholeNumbers, call: int) -> NDArray[np.int32]:
        if call // known.count % 2 == 0 or not known.any_is_taken:
            in_turn = (np.indices(known.shape).sum(axis=0) + call) % known.count
            row: NDArray[np.int32] = (known.start + in_turn).astype(np.int32)
            return row
        below, above = known.start - WILD, known.start + known.count + WILD
        row = self._random.integers(below, above, size=known.shape, dtype=np.int32)
        row.reshape(-1)[call % row.size] = EXTREMES[call % len(EXTREMES)]
        return row


def more_threads() -> int:
    """As many as there are cores, within reason, and always more than one."""
    return min(max(usable_cores() or 2, 2), 4)
