"""Batches in a GPU's memory: the same bytes as on the host, and tensors nobody copied."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.forged import forge

from hotloop.core.errors import DeviceError, InputError
from hotloop.envs import cuda
from hotloop.envs.batch import Batch, OrderError, sealed, unsealed
from hotloop.envs.open import make

WHY_NOT = cuda.why_not("prospector")
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"CUDA IS NOT TESTED HERE: {WHY_NOT}")

ENV_STEPS = 1_000_000

WAYS: list[tuple[str, dict[str, object]]] = [
    ("prospector", {"time_max": 300}),
    ("prospector", {"time_max": 300, "packing": "full", "generation": "eager"}),
    ("grid/toy", {"max_steps": 100}),
    ("grid/toy", {"max_steps": 100, "encoder": "original"}),
    ("grid/arena", {"max_steps": 100}),
    ("grid/arena", {"max_steps": 100, "encoder": "original"}),
    ("grid/guard", {"max_steps": 100}),
    ("grid/guard", {"max_steps": 100, "encoder": "original"}),
    ("cards", {"max_decisions": 40}),
    ("farm/dev", {"max_steps": 40}),
]

QUICK = [WAYS[0], WAYS[2]]


def named(way: tuple[str, dict[str, object]]) -> str:
    return " ".join([way[0], *(f"{key}={value}" for key, value in way[1].items())])


@pytest.fixture(params=QUICK, ids=named)
def batch(request: pytest.FixtureRequest) -> Iterator[Any]:
    target, keys = request.param
    made = make(target, num_envs=33, device="cuda", **keys)
    made.reset()
    yield made
    made.close()


def both(target: str, num_envs: int, **keys: object) -> tuple[Batch, Any]:
    sides = (make(target, num_envs=num_envs, **keys), make(target, num_envs=num_envs, device="cuda", **keys))
    for side in sides:
        side.reset()
    return sides


def actions_for(batch: Batch, random: np.random.Generator) -> NDArray[np.int32]:
    """Mostly such that random play draws, and some that do not exist."""
    shape = (batch.spec.num_envs, batch.spec.agents)
    drawn = random.integers(batch.spec.drawn_actions, size=shape, dtype=np.int32)
    wild = random.integers(-5, batch.spec.num_actions + 5, size=shape, dtype=np.int32)
    return np.where(random.random(shape) < 0.02, wild, drawn)


def assert_same(host: Batch, device: Any, step: int) -> None:
    ours, theirs = host.answers(), device.answers()
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert array.dtype == theirs[name].dtype, name
        assert array.tobytes() == theirs[name].tobytes(), f"{name} after {step} steps"


@pytest.mark.parametrize("num_envs", [1, 31, 1000, 8192])
@pytest.mark.parametrize(("target", "keys"), WAYS, ids=map(named, WAYS))
def test_the_host_and_the_gpu_give_the_same_bytes(
    target: str, keys: dict[str, object], num_envs: int
) -> None:
    host, device = both(target, num_envs, threads=8 if num_envs > 100 else 1, **keys)
    random = np.random.default_rng(num_envs)
    calls = ENV_STEPS // num_envs if num_envs > 1000 else 400
    assert_same(host, device, 0)
    for step in range(calls):
        actions = actions_for(host, random)
        host.step(actions)
        device.step(cuda.upload(actions))
        if step < 20 or step % 10 == 0 or step == calls - 1:
            assert_same(host, device, step + 1)
    counted = device.counters
    assert {name: counted[name] for name in host.counters} == host.counters
    assert counted["resets"] > num_envs


def test_a_million_env_steps_of_prospector_agree_at_every_step() -> None:
    host, device = both("prospector", 4096, time_max=120, threads=8)
    random = np.random.default_rng(7)
    for step in range(ENV_STEPS // 4096 + 1):
        actions = actions_for(host, random)
        host.step(actions)
        device.step(cuda.upload(actions))
        assert_same(host, device, step + 1)
    assert device.counters["resets"] == host.resets > 3 * 4096


def test_its_arrays_are_tensors_on_the_gpu_that_a_step_rewrites_in_place(batch: Any) -> None:
    assert batch.observations.is_cuda
    assert batch.observations.shape[0] == 33
    before = batch.observations.data_ptr()
    seen = batch.observations.clone()
    batch.step(batch.choose("random"))
    batch.wait()
    assert batch.observations.data_ptr() == before
    assert not batch.observations.equal(seen)
    assert batch.counters["actions_converted"] == 0


def test_players_choose_the_same_on_both() -> None:
    for target, player in (("prospector", "greedy"), ("prospector", "random"), ("grid/guard", "teacher")):
        host, device = both(target, 40)
        for step in range(150):
            chosen, theirs = host.choose(player), device.choose(player)
            assert np.array_equal(chosen, theirs.cpu().numpy()), (target, player, step)
            host.step(chosen)
            device.step(theirs)
        assert_same(host, device, 150)


def test_some_envs_can_be_begun_anew_from_seeds() -> None:
    host, device = both("prospector", 10)
    for side in (host, device):
        side.reset_many([7, 2], [5, 6])
        side.reset_many([3])
    assert_same(host, device, 0)
    for side in (host, device):
        side.reset(list(range(10)))
    assert_same(host, device, 0)


def test_an_env_saved_on_one_is_loaded_on_the_other() -> None:
    for target, keys in WAYS:
        host, device = both(target, 5, **keys)
        random = np.random.default_rng(3)
        for _ in range(20):
            host.step(actions_for(host, random))
        device.load(4, host.save(1))
        other = make(target, num_envs=5, **keys)
        other.reset()
        other.load(2, device.save(4))
        assert device.digest()[4] == host.digest()[1] == other.digest()[2]
        resets = host.resets
        for _ in range(15):
            same = np.repeat(actions_for(host, random)[:1], 5, axis=0)
            host.step(same)
            device.step(same)
            if host.resets > resets:  # an env's next episode is its own
                break
            assert device.digest()[4] == host.digest()[1], target


def takes(batch: Batch, env: int, saved: bytes) -> bool:
    try:
        batch.load(env, saved)
    except InputError as error:
        assert str(error).startswith("the saved env is damaged: ")  # noqa: PT017 - what a reader is told
        return False
    return True


@pytest.mark.parametrize(("target", "keys"), WAYS, ids=map(named, WAYS))
def test_a_forged_state_is_refused_where_the_host_refuses_it(target: str, keys: dict[str, object]) -> None:
    host, device = both(target, 2, **keys)
    chance, rng = random.Random(target), np.random.default_rng(5)
    for _ in range(30):
        actions = actions_for(host, rng)
        host.step(actions)
        device.step(actions)
    kept, outcomes = unsealed(device.save(0)), []
    for _ in range(60):
        forged, before = sealed(host._stamp(), forge(kept, chance)), device.save(1)
        outcomes.append(takes(device, 1, forged))
        assert takes(host, 1, forged) == outcomes[-1]
        if outcomes[-1]:
            host.step(actions)
            device.step(actions)
            assert host.digest()[1] == device.digest()[1]
        else:
            assert device.save(1) == before
    assert not all(outcomes)


def test_a_number_that_is_no_envs_is_refused(batch: Any) -> None:
    engine = batch.on_device
    for env in (-1, 33):
        for call in (engine.save, engine.digest, lambda env: engine.load(env, engine.save(0))):
            with pytest.raises(IndexError, match="no such env"):
                call(env)
        with pytest.raises(IndexError, match="no such env"):
            engine.reset_many(np.array([env]), None)
    with pytest.raises(ValueError, match="one seed an env"):
        engine.reset(np.zeros(3, np.uint64))


def test_a_fork_goes_on_as_its_origin_does(batch: Any) -> None:
    batch.fork(3, 7)
    assert batch.digest()[7] == batch.digest()[3]
    for action in range(20):
        batch.step(np.full((33, batch.spec.agents), action % batch.spec.drawn_actions, np.int32))
    assert batch.digest()[7] == batch.digest()[3]


def test_its_phases_add_up_to_its_steps() -> None:
    batch = make("prospector", num_envs=2000, device="cuda", profile=True)
    batch.reset()
    batch.keep_log(10)
    for _ in range(20):
        batch.step(batch.choose("random"))
    totals = batch.phase_totals()
    step = totals.pop("step")
    assert tuple(totals) == batch.spec.phases
    assert sum(totals.values()) == pytest.approx(step, rel=0.01)
    assert len(batch.take_log()) == 10


def test_without_autoreset_a_finished_env_has_to_be_reset() -> None:
    batch = make("grid/toy", num_envs=3, device="cuda", max_steps=5, autoreset=False)
    with pytest.raises(OrderError, match="step before reset"):
        batch.step(batch.draw(np.random.default_rng(1), 1)[0])
    batch.reset()
    for _ in range(5):
        batch.step(batch.choose("random"))
    with pytest.raises(OrderError, match="autoreset off"):
        batch.step(batch.choose("random"))
    batch.reset_many([0, 1, 2])
    batch.step(batch.choose("random"))


def test_a_step_can_be_captured_and_replayed_on_a_stream_of_the_callers() -> None:
    import torch

    host, device = both("prospector", 64)
    chosen = device.draw(np.random.default_rng(1), 1)[0]
    stream = torch.cuda.Stream()
    device.use_stream(stream.cuda_stream)
    device.step(chosen)
    device.wait()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        device.step(chosen)
    for _ in range(20):
        graph.replay()
    torch.cuda.synchronize()
    for _ in range(21):
        host.step(chosen.cpu().numpy())
    assert_same(host, device, 21)
    assert device.counters["env_steps"] == 21 * 64


def test_pictures_are_drawn_of_what_is_on_the_gpu() -> None:
    host, device = both("grid/guard", 2, render_mode="rgb_array")
    assert np.array_equal(host.render(1), device.render(1))


def test_host_views_are_numpy_arrays() -> None:
    host = make("prospector", num_envs=4)
    views = make("prospector", num_envs=4, device="cuda", host_views=True)
    for side in (host, views):
        side.reset()
        for _ in range(30):
            side.step(side.choose("greedy"))
    assert isinstance(views.observations, np.ndarray)
    assert_same(host, views, 30)


def test_wrong_tensors_are_refused_with_one_line(batch: Any) -> None:
    import torch

    right = (33, batch.spec.agents)
    for actions, said in (
        (
            torch.zeros(right, dtype=torch.int64, device="cuda"),
            "torch.int64: expected contiguous torch.int32",
        ),
        (torch.zeros(right, dtype=torch.int32), "on cpu: expected cuda"),
        (torch.zeros((3, 3, 3), dtype=torch.int32, device="cuda"), "the shape"),
        ([1, 2, 3], "not list"),
    ):
        with pytest.raises(InputError, match=said):
            batch.step(actions)


def test_actions_on_the_host_are_copied_and_counted(batch: Any) -> None:
    batch.step(np.zeros((33, batch.spec.agents), np.int32))
    assert batch.counters["actions_converted"] == 1


def test_too_many_envs_are_refused_with_what_one_needs() -> None:
    with pytest.raises(DeviceError, match=r"envs of \d+ bytes need .* use num_envs=\d+ or fewer"):
        make("grid/toy", num_envs=1 << 20, tokens=1000, agents=200, device="cuda")


def test_a_hundred_thousand_ships_fit_into_six_gigabytes() -> None:
    batch = make("prospector", num_envs=100_000, device="cuda")
    assert batch.on_device.bytes_an_env() * 100_000 < 6e9
