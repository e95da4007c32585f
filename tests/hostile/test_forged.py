"""Saved states that were forged, their checksums too: refused in a line, or they can be stepped."""

import random
from collections.abc import Iterator
from itertools import cycle, islice

import pytest
from support.forged import forge

from hotloop.core.errors import InputError
from hotloop.core.registry import worlds
from hotloop.envs.batch import Batch, sealed, unsealed
from hotloop.envs.open import make

FORGED, MANY = 60, 3_000
"""States of each world, in the tests and in `./check hostile`."""

SMALL = {"farm/dev": {"agents": 8, "nodes": 8, "width": 16, "height": 16}}
TARGETS = [*worlds(), "grid/arena", "grid/guard", "cards/keywords", "farm/dev"]
LARGE = ("farm",)
"""Worlds whose own size would take a test too long."""


def played(target: str, seed: int = 3) -> Batch:
    batch = make(target, impl="native", num_envs=1, seed=seed, **SMALL.get(target, {}))
    batch.reset()
    return batch


def play(batch: Batch, calls: int) -> None:
    """Every player in turn; one that looks ahead once."""
    players = [each for each in batch.players if each not in batch.spec.world.looks_ahead]
    for player in [*batch.spec.world.looks_ahead, *islice(cycle(players), calls)]:
        batch.step(batch.choose(player))
    batch.digest()


def states(target: str, count: int) -> Iterator[bytes]:
    """States of one game, some steps apart."""
    batch = played(target)
    for _ in range(count):
        play(batch, 7)
        yield unsealed(batch.save(0))


def check_forged(target: str, count: int) -> tuple[int, int]:
    """Load and step forged states; returns how many were refused and how many taken."""
    batch, chance, refused = played(target), random.Random(target), 0
    kept = list(states(target, 6))
    for number in range(count):
        before = batch.save(0)
        try:
            batch.load(0, sealed(batch._stamp(), forge(chance.choice(kept), chance)))
        except InputError as error:
            assert str(error).startswith("the saved env is damaged: ")  # noqa: PT017 - what a reader is told
            assert batch.save(0) == before
            refused += 1
        else:
            play(batch, 4)
        if number % 8 == 0:
            batch.reset()
    return refused, count - refused


@pytest.mark.parametrize("target", [each for each in TARGETS if each not in LARGE])
def test_a_forged_state_is_refused_or_can_be_stepped(target: str) -> None:
    refused, taken = check_forged(target, FORGED)
    assert refused > 0
    assert refused + taken == FORGED


@pytest.mark.hostile
@pytest.mark.parametrize("target", [each for each in TARGETS if each not in LARGE])
def test_many_forged_states_are_refused_or_can_be_stepped(target: str) -> None:
    check_forged(target, MANY)


@pytest.mark.parametrize("target", [each for each in TARGETS if each not in LARGE])
@pytest.mark.parametrize("autoreset", [True, False])
def test_every_state_that_was_saved_is_taken_back(target: str, autoreset: bool) -> None:
    batch = make(target, impl="native", num_envs=2, autoreset=autoreset, **SMALL.get(target, {}))
    batch.reset()
    for player in islice(cycle(batch.players), 30):
        for env in range(2):
            saved = batch.save(env)
            batch.load(1 - env, saved)
            assert batch.save(1 - env) == saved
        batch.step(batch.choose(player))
        batch.reset_some([env for env in range(2) if batch.terminals[env] | batch.truncations[env]])
