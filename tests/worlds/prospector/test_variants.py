"""Fast ways and plain ways to the same bytes: packing, generation, kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.play import difference, first_difference, snapshot, tape

import hotloop
from hotloop.core.errors import InputError

PLAIN = {"packing": "full", "generation": "eager", "kernels": "scalar"}
VARIANTS: list[dict[str, Any]] = [
    {},
    {"packing": "changed"},
    {"generation": "lazy"},
    {"kernels": "avx2"},
    {"kernels": "avx512"},
]
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)


def needs(variant: dict[str, Any], has_kernels: Callable[[str], bool]) -> dict[str, Any]:
    """The plain settings but for what a variant changes; an empty one is everything fast."""
    if not has_kernels(variant.get("kernels", "auto")):
        pytest.skip(f"this processor has no {variant['kernels']}")
    return PLAIN | variant if variant else {}


@every_variant
@pytest.mark.parametrize("time_max", [40, 20_000])
def test_random_and_wild_play_gives_the_same_bytes(
    variant: dict[str, Any], time_max: int, has_kernels: Callable[[str], bool]
) -> None:
    given = needs(variant, has_kernels)
    plain = hotloop.make("prospector", num_envs=8, time_max=time_max, **PLAIN)
    other = hotloop.make("prospector", num_envs=8, time_max=time_max, **given)
    assert first_difference(plain, other, tape(plain.spec, 400, wild=True)) == ""
    assert plain.counters["resets"] > (40 if time_max == 40 else 8)


@every_variant
@pytest.mark.parametrize("player", ["greedy", "cautious", "timer"])
def test_scripted_play_gives_the_same_bytes(
    variant: dict[str, Any], player: str, has_kernels: Callable[[str], bool]
) -> None:
    given = needs(variant, has_kernels)
    plain = hotloop.make("prospector", num_envs=4, **PLAIN)
    other = hotloop.make("prospector", num_envs=4, **given)
    plain.reset()
    other.reset()
    for step in range(1500):
        chosen = plain.choose(player)
        assert np.array_equal(chosen, other.choose(player)), step
        plain.step(chosen)
        other.step(chosen)
        if step % 25 == 0:
            assert difference(snapshot(plain), snapshot(other)) == "", step


def test_what_a_step_did_not_change_is_kept_when_an_env_is_loaded() -> None:
    """A loaded env brings its observations, which the next step completes and does not write anew."""
    batch = hotloop.make("prospector", num_envs=2)
    batch.reset(seeds=[1, 2])
    actions = np.zeros((2, 1), np.int32)
    for _ in range(3):
        batch.step(actions)
    batch.load(1, batch.save(0))
    batch.step(np.full((2, 1), 6, np.int32))
    assert batch.observations[0].tobytes() == batch.observations[1].tobytes()


def test_kernels_a_processor_has_not_are_refused_and_so_are_unknown_ones() -> None:
    with pytest.raises(InputError, match="avx512"):
        hotloop.make("prospector", kernels="avx513")
