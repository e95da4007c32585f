"""Courses: the tapes a validation plays, from the usual to the nasty."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core import registry
from hotloop.core.machine import usable_cores
from hotloop.core.target import Target
from hotloop.envs.batch import Batch
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import RANDOM, RandomPlay

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


def courses_for(subject: Subject, target: Target) -> list[Course]:
    """The tapes that a subject can be played by: random, its players', adversarial."""
    players = [name for name in subject.players if name != RANDOM] if isinstance(subject, Batch) else []
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
    while isinstance(subject, Batch) and tape not in (RANDOM, ADVERSARIAL):
        yield subject.choose(tape)
    play = Adversarial(subject) if tape == ADVERSARIAL else RandomPlay(subject)
    while True:
        yield from play.draw(CHUNK)[:CHUNK]


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
        if isinstance(self._subject, Batch):
            return [self._row(self._subject, call) for call in range(first, first + calls)]
        count = every_action(self._subject)
        if count is None:
            return self._subject.draw(self._random, calls)
        start, size = count
        return [start + call % size for call in range(first, first + calls)]

    def _row(self, batch: Batch, call: int) -> NDArray[np.int32]:
        spec = batch.spec
        shape, actions = (spec.num_envs, spec.agents), spec.num_actions
        if call // actions % 2 == 0 or spec.settings.strict:
            return (np.add.outer(np.arange(shape[0]), np.arange(shape[1]) + call) % actions).astype(np.int32)
        row = self._random.integers(-WILD, actions + WILD, size=shape, dtype=np.int32)
        row.reshape(-1)[call % row.size] = EXTREMES[call % len(EXTREMES)]
        return row


def every_action(subject: Subject) -> tuple[int, int] | None:
    """The first action and how many there are, of an env that takes one whole number; else None."""
    env = getattr(subject, "env", None)
    space = getattr(env, "action_space", None)
    count = getattr(space, "n", None) or (getattr(env, "num_actions", None) if space is None else None)
    if subject.spec.num_envs > 1 or callable(space) or not isinstance(count, (int, np.integer)):
        return None
    return int(getattr(space, "start", 0)), int(count)


def more_threads() -> int:
    """As many as there are cores, within reason, and always more than one."""
    return min(max(usable_cores() or 2, 2), 4)
