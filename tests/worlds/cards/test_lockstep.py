"""Whole games played by native code and by the twin, compared to the byte after every step."""

import pytest

import hotloop
from hotloop.envs.batch import Batch

LOCKSTEP = [
    ("mirror", "random", "random"),
    ("ramp", "none", "random"),
    ("keywords", "random", "random"),
    ("keywords", "simple", "random"),
    ("keywords", "none", "simple"),
]


@pytest.mark.parametrize(("deck", "villain", "player"), LOCKSTEP)
def test_native_equals_the_twin_over_whole_games(deck: str, villain: str, player: str) -> None:
    twin, fast = (
        hotloop.make(f"cards/{deck}", num_envs=3, impl=impl, villain=villain)
        for impl in ("reference", "native")
    )
    lockstep(twin, fast, player, games=6)


@pytest.mark.slow
@pytest.mark.parametrize(("deck", "villain", "player"), LOCKSTEP)
def test_native_equals_the_twin_over_hundreds_of_games(deck: str, villain: str, player: str) -> None:
    twin, fast = (
        hotloop.make(f"cards/{deck}", num_envs=8, impl=impl, villain=villain, seed=7)
        for impl in ("reference", "native")
    )
    lockstep(twin, fast, player, games=400)


@pytest.mark.long
@pytest.mark.parametrize(("deck", "villain", "player"), LOCKSTEP)
def test_native_equals_the_twin_over_thousands_of_games(deck: str, villain: str, player: str) -> None:
    twin, fast = (
        hotloop.make(f"cards/{deck}", num_envs=8, impl=impl, villain=villain, seed=8)
        for impl in ("reference", "native")
    )
    lockstep(twin, fast, player, games=4_000)


def lockstep(twin: Batch, fast: Batch, player: str, *, games: int) -> None:
    """Play both alike, and compare every byte after every step."""
    twin.reset()
    fast.reset()
    while games > 0:
        actions = fast.choose(player)
        assert twin.choose(player).tolist() == actions.tolist()
        twin.step(actions)
        fast.step(actions)
        theirs = fast.answers()
        for name, array in twin.answers().items():
            assert array.tobytes() == theirs[name].tobytes(), name
        games -= int((fast.terminals | fast.truncations).sum())
