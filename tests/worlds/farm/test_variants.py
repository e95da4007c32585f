"""Twin and native stay equal over long runs, with every index and both interpolations."""

import pytest
from support.play import first_difference, tape

import hotloop

KINDS = ("grid", "hash", "quadtree", "kdtree")


@pytest.mark.parametrize("index", KINDS)
@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
@pytest.mark.parametrize("placement", ["random", "grid", "clustered"])
def test_every_variant_equals_the_twin(index: str, interpolation: str, placement: str) -> None:
    keys = {"index": index, "interpolation": interpolation, "placement": placement, "radius": 3}
    twin = hotloop.make("farm/dev", num_envs=1, impl="reference", **keys)
    fast = hotloop.make("farm/dev", num_envs=1, impl="native", **keys)
    assert first_difference(twin, fast, tape(twin.spec, 25, wild=True)) == ""


@pytest.mark.slow
@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_two_thousand_steps_with_births_and_deaths_equal_the_twin(interpolation: str) -> None:
    twin = hotloop.make("farm/dev", num_envs=1, impl="reference", interpolation=interpolation)
    fasts = [
        hotloop.make("farm/dev", num_envs=1, impl="native", interpolation=interpolation, index=index)
        for index in KINDS
    ]
    for batch in (twin, *fasts):
        batch.reset()
    for step, chosen in enumerate(tape(twin.spec, 2_000)):
        twin.step(chosen)
        shown = {name: array.tobytes() for name, array in twin.answers().items()}
        for fast in fasts:
            fast.step(chosen)
            theirs = {name: array.tobytes() for name, array in fast.answers().items()}
            assert theirs == shown, (step, fast.spec.parameters.index)
    counted = twin.counters
    assert min(counted["coverage.birth"], counted["coverage.death.starved"]) > 20


@pytest.mark.parametrize("index", KINDS)
def test_every_index_gives_the_same_results_in_a_large_world(index: str) -> None:
    plain = hotloop.make("farm/steady", num_envs=1, agents=1_000, perception=False)
    other = hotloop.make("farm/steady", num_envs=1, agents=1_000, perception=False, index=index)
    assert first_difference(plain, other, tape(plain.spec, 20)) == ""
