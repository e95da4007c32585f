"""A batch's own promises: order of calls, seeds, saved envs, settings, closing."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from support.play import tape

import hotloop
from hotloop.core.errors import InputError, SetupError
from hotloop.envs import native
from hotloop.envs import open as opening
from hotloop.envs.batch import Batch, OrderError

impls = pytest.mark.parametrize("impl", ["native", "reference"])


def small(impl: str = "auto", **given: object) -> Batch:
    return hotloop.make("grid/toy", num_envs=2, impl=impl, **given)


@impls
def test_a_step_before_reset_is_refused(impl: str) -> None:
    batch = small(impl)
    with pytest.raises(OrderError, match="step before reset"):
        batch.step(np.zeros((2, 20), np.int32))
    with pytest.raises(OrderError, match="reset_many before reset"):
        batch.reset_many([0])


@impls
def test_without_autoreset_a_finished_env_must_be_reset_before_the_next_step(impl: str) -> None:
    batch = small(impl, max_steps=3, autoreset=False)
    batch.reset()
    actions = tape(batch.spec, 1)[0]
    for _ in range(3):
        batch.step(actions)
    assert batch.truncations.all()
    with pytest.raises(OrderError, match="autoreset off"):
        batch.step(actions)
    batch.reset_many([0])
    with pytest.raises(OrderError, match="autoreset off"):
        batch.step(actions)
    batch.reset_many([1])
    batch.step(actions)
    assert batch.infos["episode_length"].tolist() == [1, 1]


@impls
def test_a_closed_batch_says_so_and_its_arrays_stay_readable(impl: str) -> None:
    batch = small(impl)
    batch.reset()
    shown = batch.observations
    before = shown.copy()
    batch.close()
    assert (shown == before).all()
    for call in (
        batch.reset,
        lambda: batch.step(np.zeros((2, 20), np.int32)),
        batch.digest,
        lambda: batch.counters,
    ):
        with pytest.raises(OrderError, match="closed"):
            call()


@impls
@pytest.mark.parametrize(
    ("seeds", "said"),
    [([1], "1 seeds for 2 envs"), ([1, -1], "seed -1 is out of range"), ([1, 2**64], "out of range")],
)
def test_wrong_seeds_are_refused(impl: str, seeds: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        small(impl).reset(seeds=seeds)


@impls
@pytest.mark.parametrize("env", [-1, 2])
def test_an_env_that_does_not_exist_is_refused(impl: str, env: int) -> None:
    batch = small(impl)
    batch.reset()
    for call in (lambda: batch.save(env), lambda: batch.load(env, b""), lambda: batch.reset_many([env])):
        with pytest.raises(InputError):
            call()


@impls
def test_saved_by_something_else_is_refused(impl: str) -> None:
    batch = small(impl)
    batch.reset()
    saved = batch.save(0)
    other = small(impl, agents=5)
    other.reset()
    for wrong in (
        other.save(0),
        b"",
        b"nonsense",
        saved[:20],
        saved[:-1],
        saved.replace(b"hotloop 2", b"hotloop 1"),
    ):
        with pytest.raises(InputError):
            batch.load(0, wrong)
    batch.load(0, saved)


@impls
def test_strict_refuses_an_action_out_of_range_before_anything_moves(impl: str) -> None:
    batch = small(impl, strict=True)
    batch.reset()
    before = batch.digest()
    actions = np.zeros((2, 20), np.int32)
    actions[1, 3] = 9
    with pytest.raises(InputError, match=r"action 9 at \[1, 3\] is out of range: expected 0 to 8"):
        batch.step(actions)
    assert (batch.digest() == before).all()


def test_a_step_writes_into_the_same_memory() -> None:
    batch = small("native")
    batch.reset()
    address = batch.observations.ctypes.data
    batch.step(tape(batch.spec, 1)[0])
    assert batch.observations.ctypes.data == address
    assert batch.observations.base is not None


def test_arrays_outlive_their_batch() -> None:
    batch = small("native")
    batch.reset()
    shown, before = batch.observations, batch.observations.copy()
    del batch
    again = small("native")
    again.reset()
    assert (shown == before).all()


def test_what_ran_is_counted_by_the_side_that_ran() -> None:
    for impl, other in (("native", "reference"), ("reference", "native")):
        batch = small(impl)
        batch.reset()
        batch.step(tape(batch.spec, 1)[0])
        assert (batch.counters[f"{impl}_steps"], batch.counters[f"{other}_steps"]) == (2, 0)


def test_auto_without_a_native_module_falls_back_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_load", lambda: ImportError("no module"))
    batch = small("auto")
    assert batch.spec.impl == "reference"
    assert [notice.code for notice in batch.spec.notices] == ["fell-back"]
    assert small("reference").spec.notices == ()
    with pytest.raises(SetupError, match="impl=reference"):
        small("native")


def test_what_this_processor_lacks_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(*_: object) -> None:
        raise RuntimeError("this processor has no avx512: kernels=auto takes the best that it has")

    module = SimpleNamespace(WORLDS=["grid"], COMPILER="", FLAGS="", ISA="", clock_name=str, make=make)
    monkeypatch.setattr(native, "_load", lambda: module)
    with pytest.raises(SetupError, match=r"no avx512: kernels=auto"):
        small("native")


def test_profiling_is_decided_by_the_key_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not small().spec.settings.profile
    monkeypatch.setenv("HOTLOOP_PROFILING", "1")
    assert small().spec.settings.profile
    assert small().spec.decided_by["profile"] == "environment HOTLOOP_PROFILING"
    assert not small(profile=False).spec.settings.profile


def test_a_bare_world_means_its_default_preset() -> None:
    assert opening.make("grid", num_envs=1).spec.target == "grid/arena"


@impls
def test_a_picture_before_reset_of_no_env_or_of_a_closed_batch_is_refused(impl: str) -> None:
    batch = small(impl, render_mode="rgb_array")
    with pytest.raises(OrderError, match="picture before reset"):
        batch.render()
    batch.reset()
    with pytest.raises(InputError, match="env 2 does not exist"):
        batch.render(2)
    batch.close()
    with pytest.raises(OrderError, match="closed"):
        batch.render()


def test_render_says_which_setting_it_needs() -> None:
    batch = small()
    batch.reset()
    with pytest.raises(InputError, match="render_mode=rgb_array or ansi"):
        batch.render()
    with pytest.raises(InputError, match="one of none, rgb_array, ansi"):
        small(render_mode="human")


def test_a_world_that_draws_no_picture_says_so() -> None:
    batch = small(render_mode="ansi")
    unseen = replace(batch.spec, world=replace(batch.spec.world, drawer=None))
    with pytest.raises(InputError, match="render_mode=ansi: grid draws no picture"):
        Batch(batch._engine, unseen)


@impls
def test_rendering_changes_nothing(impl: str) -> None:
    plain, drawn = small(impl), small(impl, render_mode="rgb_array")
    actions = tape(plain.spec, 5)
    for batch in (plain, drawn):
        batch.reset()
    for chosen in actions:
        plain.step(chosen)
        drawn.step(chosen)
        drawn.render(1)
    assert (plain.digest() == drawn.digest()).all()


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_seed_step_leads_from_one_episode_to_the_next(impl: str) -> None:
    given = {"num_envs": 2, "impl": impl, "max_steps": 2}
    walking = hotloop.make("grid/guard", **given, seed_step=1000)
    told = hotloop.make("grid/guard", **given)
    still = np.zeros((2, 8), np.int32)
    last = 2**64 - 500
    walking.reset(seeds=[7, last])
    for _ in range(4):
        walking.step(still)
    told.reset(seeds=[2007, (last + 2000) % 2**64])
    assert walking.digest().tolist() == told.digest().tolist()
    walking.reset_many([1])
    told.reset_many([1], seeds=[(last + 3000) % 2**64])
    assert walking.digest().tolist() == told.digest().tolist()


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_a_saved_env_keeps_the_seed_it_steps_from(impl: str) -> None:
    batch = hotloop.make("grid/guard", num_envs=2, impl=impl, max_steps=2, seed_step=1000)
    batch.reset(seeds=[7, 90])
    batch.load(1, batch.save(0))
    for _ in range(2):
        batch.step(np.zeros((2, 8), np.int32))
    assert batch.digest()[0] == batch.digest()[1]


@pytest.mark.parametrize("impl", ["native", "reference"])
def test_the_first_episodes_of_stepped_seeds_are_the_engines_mix(impl: str) -> None:
    walking, mixed = (hotloop.make("grid/guard", num_envs=3, impl=impl, seed_step=step) for step in (1000, 0))
    walking.reset()
    mixed.reset()
    assert walking.digest().tolist() == mixed.digest().tolist()
