"""The native teacher reads an observation token by token or many at a time, and chooses the same."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.grids import crowded, table

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch
from hotloop.worlds.grid.features import Feature


@pytest.fixture(autouse=True)
def _needs_avx512(has_kernels: Callable[[str], bool]) -> None:
    if not has_kernels("avx512"):
        pytest.skip("this processor has no avx512: there is one way to read")


def both(target: str, **parameters: object) -> tuple[Batch, Batch]:
    given = {"num_envs": 3, "impl": "native", "threads": 1} | parameters
    closely, quickly = (hotloop.make(target, kernels=k, **given) for k in ("scalar", "avx512"))
    closely.reset()
    quickly.reset()
    return closely, quickly


def first_disagreement(closely: Batch, quickly: Batch, steps: int) -> int | None:
    """Teacher play with a random step now and then; the step at which they choose differently."""
    drawn = np.random.default_rng(5)
    for step in range(steps):
        chosen = closely.choose("teacher")
        if not np.array_equal(chosen, quickly.choose("teacher")):
            return step
        strays = drawn.random(chosen.shape) < 0.1
        played = np.where(strays, drawn.integers(0, closely.spec.num_actions, chosen.shape), chosen)
        closely.step(played.astype(np.int32))
        quickly.step(played.astype(np.int32))
    return None


@pytest.mark.parametrize("target", ["grid/toy", "grid/arena", "grid/guard"])
@pytest.mark.parametrize("window", [1, 5, 11, 15])
@pytest.mark.parametrize("tokens", [3, 40, 63, 64, 126, 127, 200, 1000])
def test_presets_are_played_alike(target: str, window: int, tokens: int) -> None:
    closely, quickly = both(target, window=window, tokens=tokens)
    assert first_disagreement(closely, quickly, 250) is None


@pytest.mark.parametrize("target", ["grid/arena", "grid/guard"])
def test_long_games_are_played_alike(target: str) -> None:
    closely, quickly = both(target, num_envs=8)
    assert first_disagreement(closely, quickly, 2_500) is None
    assert closely.counters["coverage.use"] > 1_000


@settings(max_examples=40, deadline=None)
@given(
    window=st.sampled_from([1, 3, 5, 7, 9, 11, 13, 15]),
    tokens=st.integers(1, 400),
    directions=st.sampled_from([4, 8]),
    agents=st.integers(1, 60),
    side=st.integers(16, 30),
    seed=st.integers(0, 2**32),
)
def test_any_crowd_is_played_alike(
    tmp_path_factory: pytest.TempPathFactory,
    window: int,
    tokens: int,
    directions: int,
    agents: int,
    side: int,
    seed: int,
) -> None:
    rules = table(tmp_path_factory.mktemp("table"), crowded())
    closely, quickly = both(
        "grid/toy",
        rules=rules,
        window=window,
        tokens=tokens,
        directions=directions,
        agents=agents,
        map_size=f"{side}x{side}",
        seed=seed,
    )
    assert first_disagreement(closely, quickly, 120) is None


def test_the_crowd_has_what_is_hard_to_read(tmp_path: Path) -> None:
    """A comparison of easy observations would show little."""
    rules = table(tmp_path, crowded())
    batch = hotloop.make("grid/toy", num_envs=2, rules=rules, agents=40, tokens=400, map_size="24x24")
    batch.reset()
    seen: set[tuple[int, int]] = set()
    for _ in range(150):
        batch.step(batch.choose("teacher"))
        seen |= {(feature, value) for _, feature, value in batch.observations.reshape(-1, 3).tolist()}
    features = {feature for feature, _ in seen}
    assert {Feature.COOLDOWN, Feature.USES, Feature.CLIPPED} <= features
    assert {Feature.INVENTORY + 2 * k for k in (0, 1, 15)} | {Feature.INVENTORY + 3} <= features
    assert (Feature.USES, 0) in seen, "a station is spent"
    assert max(value for feature, value in seen if feature == Feature.TAG) > 64, "tags fill two registers"
    assert batch.counters["coverage.use"] > 500


def test_kernels_that_do_not_exist_are_refused() -> None:
    with pytest.raises(InputError, match="avx512"):
        hotloop.make("grid/guard", kernels="avx513")
