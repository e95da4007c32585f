"""Digests: hashes of all that a target shows in a short play, so that two records can be held together."""

import hashlib
import random
from collections.abc import Iterator

import numpy as np

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import RandomPlay
from hotloop.lab.validate.equal import field_hashes
from hotloop.lab.validate.streams import put, taken

STEPS = 32

# Steps after which a hash is kept, so that a play of a slow env is a part of a longer one.
MARKS = (0, 1, 2, 4, 8, 16, STEPS)

FEWEST = 4  # Steps that a play must reach within its time to be played again
BOX_NS = 1_000_000_000  # For the first reset, and for all steps after the first, which may compile

# Kinds of targets whose reset makes another one, or whose step may be a whole program.
NOT_ENVS = ("function", "step alone")

HASH_BYTES = 8


def play_digest(subject: Subject) -> dict[str, str] | None:
    """Return hashes of what a foreign env shows by its number of steps; None if a second play differs.

    The play is random, with the seed of the target. The subject has to be reset afterwards.
    """
    if not subject.restarts or subject.spec.interface in NOT_ENVS:
        return None
    before = taken()
    try:
        first = dict(play_short(subject, STEPS))
        steps = max(first, default=0)
        if steps < FEWEST or first != dict(play_short(subject, steps)):
            return None
    except InputError:  # the run itself says what is wrong, or comes to its end before that
        return None
    finally:
        put(before)
    return {str(number): told for number, told in first.items()}


def play_short(subject: Subject, steps: int) -> Iterator[tuple[int, str]]:
    """Yield the hash of all that was shown so far at each mark; nothing once the time is over."""
    random.seed(subject.spec.seed)
    np.random.seed(subject.spec.seed % 2**32)  # noqa: NPY002 - the env's own code may draw from it
    total = hashlib.blake2b(digest_size=HASH_BYTES)
    begin = now_ns()
    subject.reset()
    add_shown(total, subject)
    yield 0, total.hexdigest()
    actions = RandomPlay(subject).draw(steps)
    for number in range(1, steps + 1):
        if now_ns() - begin > BOX_NS:
            return
        subject.step(subject.settle(actions[(number - 1) % len(actions)]))
        begin = now_ns() if number == 1 else begin
        add_shown(total, subject)
        if number in MARKS:
            yield number, total.hexdigest()


def add_shown(total: hashlib.blake2b, subject: Subject) -> None:
    """Add a hash of each field that can be compared."""
    for name, told in sorted(field_hashes(subject).items()):
        total.update(f"{name}={told};".encode())
