"""The two native encoders and the twin write the same bytes, whatever the world looks like."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.play import first_difference, tape

import hotloop


@st.composite
def grids(draw: st.DrawFn) -> dict[str, object]:
    height, width = draw(st.integers(4, 40)), draw(st.integers(4, 90))
    density = draw(st.floats(0, 0.6))
    room = (height - 2) * (width - 2) - int(height * width * density)
    return {
        "map_size": f"{height}x{width}",
        "density": density,
        "agents": draw(st.integers(1, max(1, min(room, 40)))) if room > 0 else 1,
        "window": draw(st.sampled_from([1, 3, 5, 7, 9, 11, 13, 15])),
        "tokens": draw(st.integers(1, 260)),
        "directions": draw(st.sampled_from([4, 8])),
        "max_steps": draw(st.integers(0, 12)),
        "seed": draw(st.integers(0, 2**64 - 1)),
    }


def fits(grid: dict[str, object]) -> bool:
    try:
        hotloop.make("grid/toy", num_envs=1, **grid)
    except ValueError:
        return False
    return True


@settings(max_examples=60, deadline=None)
@given(grid=grids().filter(fits))
def test_all_three_agree_on_any_grid(grid: dict[str, object]) -> None:
    for encoder in ("optimized", "original"):
        twin = hotloop.make("grid/toy", num_envs=2, impl="reference", **grid)
        fast = hotloop.make("grid/toy", num_envs=2, impl="native", encoder=encoder, **grid)
        assert first_difference(twin, fast, tape(twin.spec, 15, wild=True)) == ""


@pytest.mark.parametrize("encoder", ["optimized", "original"])
def test_the_shadow_compares_every_observation_and_changes_nothing(encoder: str) -> None:
    plain = hotloop.make("grid/toy", num_envs=4, impl="native", encoder=encoder)
    shadowed = hotloop.make("grid/toy", num_envs=4, impl="native", encoder=encoder, shadow=True)
    assert first_difference(plain, shadowed, tape(plain.spec, 50)) == ""
    counters = shadowed.counters
    assert counters["shadow.comparisons"] == 51 * 4 * 20
    assert counters["shadow.mismatches"] == 0
    assert {k: v for k, v in counters.items() if not k.startswith("shadow")} == {
        k: v for k, v in plain.counters.items() if not k.startswith("shadow")
    }


def test_the_encoder_that_ran_is_the_one_that_counted() -> None:
    for encoder, other in (("optimized", "original"), ("original", "optimized")):
        batch = hotloop.make("grid/toy", num_envs=2, impl="native", encoder=encoder)
        batch.reset()
        counters = batch.counters
        assert (counters[f"{encoder}_encodes"], counters[f"{other}_encodes"]) == (40, 0)


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["optimized", "original"])
def test_twin_and_native_agree_over_2000_steps(encoder: str) -> None:
    twin = hotloop.make("grid/toy", num_envs=2, impl="reference")
    fast = hotloop.make("grid/toy", num_envs=64, impl="native", encoder=encoder, threads=2)
    assert first_difference(fast, twin, tape(fast.spec, 2000), envs=2) == ""
