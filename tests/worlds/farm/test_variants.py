"""Twin and native stay equal over long runs, by every index, interpolation and keeping of resources."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from support.play import first_difference, tape

import hotloop
from hotloop.cli.main import main
from hotloop.core.errors import InputError
from hotloop.envs.batch import Batch

KINDS = ("grid", "hash", "quadtree", "kdtree", "brute")
WAYS = [{"index": index, "resources": kept} for index, kept in product(KINDS, ("list", "memmap"))]
"""What changes no result."""
both_ways = pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])


def play_beside(twin: Batch, others: list[Batch], actions: NDArray[np.int32]) -> None:
    """Play one tape on all, and hold each against the twin in everything after every step."""
    for batch in (twin, *others):
        batch.reset()
    for step, chosen in enumerate(actions):
        twin.step(chosen)
        shown = twin.answers()
        for other in others:
            other.step(chosen)
            theirs = other.answers()
            assert theirs.keys() == shown.keys()
            unlike = [name for name in shown if not same_bytes(shown[name], theirs[name])]
            assert unlike == [], (step, other.spec.parameters)


def same_bytes(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return one.dtype == other.dtype and np.array_equal(one.view(np.uint8), other.view(np.uint8))


@both_ways
@pytest.mark.parametrize("placement", ["random", "grid", "clustered"])
def test_every_variant_equals_the_twin(interpolation: str, placement: str) -> None:
    keys = {"num_envs": 1, "interpolation": interpolation, "placement": placement, "radius": 3}
    twin = hotloop.make("farm/dev", impl="reference", **keys)
    others = [hotloop.make("farm/dev", impl="native", **keys, **way) for way in WAYS]
    mapped = hotloop.make("farm/dev", impl="reference", resources="memmap", **keys)
    play_beside(twin, [*others, mapped], tape(twin.spec, 25, wild=True))


@both_ways
def test_the_widest_windows_equal_the_twins(interpolation: str) -> None:
    keys = {"num_envs": 1, "interpolation": interpolation, "radius": 20}
    twin, fast = (hotloop.make("farm/dev", impl=impl, **keys) for impl in ("reference", "native"))
    play_beside(twin, [fast], tape(twin.spec, 4))
    with pytest.raises(InputError, match="radius=21"):
        hotloop.make("farm/dev", radius=21)


@pytest.mark.slow
@both_ways
def test_two_thousand_steps_with_births_and_deaths_equal_the_twin(interpolation: str) -> None:
    keys = {"num_envs": 1, "interpolation": interpolation}
    twin = hotloop.make("farm/dev", impl="reference", **keys)
    play_beside(
        twin,
        [hotloop.make("farm/dev", impl="native", **keys, **way) for way in WAYS],
        tape(twin.spec, 2_000),
    )
    counted = twin.counters
    assert min(counted["coverage.birth"], counted["coverage.death.starved"]) > 20


@pytest.mark.parametrize("target", ["farm/dev", "farm/steady"])
def test_an_episode_has_no_more_births_than_it_may_have(target: str) -> None:
    keys = {"num_envs": 1, "agents": 8, "max_births": 3, "perception": False}
    keys |= {"birth_chance": 1.0, "start_resources": 9.0, "strength": 20.0 if target == "farm/dev" else 90.0}
    twin, fast = (hotloop.make(target, impl=impl, **keys) for impl in ("reference", "native"))
    play_beside(twin, [fast], tape(twin.spec, 60))
    assert twin.counters["coverage.failed.barred"] == fast.counters["coverage.failed.barred"] > 0
    assert fast.infos["lives"][0] == 11


@pytest.mark.parametrize("index", KINDS)
def test_every_index_gives_the_same_results_in_a_large_world(index: str) -> None:
    plain = hotloop.make("farm/steady", num_envs=1, agents=1_000, perception=False)
    other = hotloop.make("farm/steady", num_envs=1, agents=1_000, perception=False, index=index)
    assert first_difference(plain, other, tape(plain.spec, 20)) == ""


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_an_env_whose_resources_are_in_a_file_goes_on_as_it_would_have(impl: str, tmp_path: Path) -> None:
    keys = {"resources": "memmap", "memmap_folder": str(tmp_path), "perception": False}
    batch = hotloop.make("farm/dev", num_envs=2, impl=impl, **keys)
    batch.reset()
    actions = tape(batch.spec, 12)
    actions[:, 1] = actions[:, 0]
    for chosen in actions[:6]:
        batch.step(chosen)
    batch.load(1, batch.save(0))
    for chosen in actions[6:]:
        batch.step(chosen)
        assert batch.digest()[0] == batch.digest()[1]
    assert batch.infos["stock"][0] < 300.0
    assert [*tmp_path.iterdir()] == []


def test_an_env_is_not_loaded_where_native_code_keeps_it_otherwise() -> None:
    batches = [hotloop.make("farm/dev", num_envs=1, impl="native", perception=False, **way) for way in WAYS]
    for batch in batches:
        batch.reset()
    saved = [batch.save(0) for batch in batches]
    for (k, batch), (j, one) in product(enumerate(batches), enumerate(saved)):
        if k == j:
            batch.load(0, one)
            continue
        with pytest.raises(InputError, match="other parameters"):
            batch.load(0, one)


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_a_file_that_cannot_be_made_is_refused(
    impl: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="give memmap_folder=DIR"):
        hotloop.make("farm", num_envs=1, impl=impl, resources="memmap", memmap_folder=str(tmp_path / "none"))
    (tmp_path / "file").write_text("")
    keys = [f"impl={impl}", "resources=memmap", f"memmap_folder={tmp_path / 'file'}", "episodes=1", "steps=2"]
    assert main(["sim", "farm/dev", *keys]) == 64
    assert "Not a directory" in capsys.readouterr().err


def test_resources_in_a_file_are_the_same_workload() -> None:
    one, other = (hotloop.make("farm", num_envs=1, resources=kept) for kept in ("list", "memmap"))
    assert one.spec.described.workload_hash == other.spec.described.workload_hash
    assert json.dumps(one.spec.described.variant) != json.dumps(other.spec.described.variant)
