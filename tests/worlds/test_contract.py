"""The promises every world keeps; a new world gets these tests by existing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.play import (
    TARGETS,
    difference,
    first_difference,
    golden_hash,
    is_heavy,
    many,
    play,
    short_episodes,
    snapshot,
    tape,
)

import hotloop
from hotloop.core.errors import InputError
from hotloop.envs import native

GOLDEN = Path(__file__).parent / "golden"
every_target = pytest.mark.parametrize("target", TARGETS)
pytestmark = pytest.mark.skipif(
    native.why_not(TARGETS[0].split("/")[0]) is not None, reason="the native module is not built"
)


@every_target
def test_native_equals_the_twin_in_everything_every_step(target: str) -> None:
    twin = hotloop.make(target, num_envs=3, impl="reference")
    fast = hotloop.make(target, num_envs=3, impl="native")
    assert first_difference(twin, fast, tape(twin.spec, 60, wild=True)) == ""


@every_target
def test_native_equals_the_twin_over_many_episodes(target: str) -> None:
    short, envs = short_episodes(target, 70), many(target, 4)
    twin = hotloop.make(target, num_envs=envs, impl="reference", **short)
    fast = hotloop.make(target, num_envs=envs, impl="native", **short)
    assert first_difference(twin, fast, tape(twin.spec, 150)) == ""
    if short:
        assert twin.counters["resets"] >= 3 * envs


@every_target
@pytest.mark.parametrize(("threads", "num_envs"), [(1, 1), (1, 3), (2, 3), (2, 64)])
def test_results_do_not_depend_on_threads_or_batch_size(target: str, threads: int, num_envs: int) -> None:
    short = short_episodes(target, 50)
    wide = hotloop.make(target, num_envs=many(target), impl="native", threads=1, **short)
    num_envs = min(num_envs, many(target))
    other = hotloop.make(target, num_envs=num_envs, impl="native", threads=threads, **short)
    steps = 60 if is_heavy(target) else 200
    assert first_difference(wide, other, tape(wide.spec, steps), num_envs) == ""


@every_target
def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_game(target: str) -> None:
    first, again, other = (hotloop.make(target, num_envs=2, seed=seed) for seed in (5, 5, 6))
    actions = tape(first.spec, 30)
    assert first_difference(first, again, actions) == ""
    *_, ours = play(first, actions)
    *_, theirs = play(other, actions)
    assert (ours["digest"] != theirs["digest"]).all()


@every_target
def test_every_episode_is_another_one(target: str) -> None:
    batch = hotloop.make(target, num_envs=2)
    batch.reset()
    first = batch.digest()
    batch.reset()
    assert len({*first.tolist(), *batch.digest().tolist()}) == 4


@every_target
def test_given_seeds_decide_the_episode_whatever_came_before(target: str) -> None:
    batch = hotloop.make(target, num_envs=3)
    batch.reset(seeds=[2**64 - 1, 1, 2])
    before = snapshot(batch)
    for chosen in tape(batch.spec, 5):
        batch.step(chosen)
    batch.reset_many([2, 0, 1], seeds=[2, 2**64 - 1, 1])
    assert difference(before, snapshot(batch)) == ""


@every_target
@pytest.mark.parametrize("impl", ["native", "reference"])
def test_a_saved_env_goes_on_in_any_place_as_it_would_have(target: str, impl: str) -> None:
    batch = hotloop.make(target, num_envs=2, impl=impl)
    batch.reset()
    actions = tape(batch.spec, 16)
    actions[:, 1] = actions[:, 0]
    for chosen in actions[:10]:
        batch.step(chosen)
    batch.load(1, batch.save(0))
    shown = [snapshot(batch)]
    for chosen in actions[10:]:
        batch.step(chosen)
        shown.append(snapshot(batch))
    assert len({after["digest"][0] for after in shown}) == 7
    for after in shown:
        for name, array in after.items():
            assert array[0].tobytes() == array[1].tobytes() or name == "final_observations"


@every_target
def test_profiling_changes_no_result_and_names_every_phase(target: str) -> None:
    plain = hotloop.make(target, num_envs=5, profile=False)
    timed = hotloop.make(target, num_envs=5, profile=True)
    assert first_difference(plain, timed, tape(plain.spec, 30)) == ""
    assert plain.step_timing == {}
    timing = timed.step_timing
    assert tuple(timing) == (*timed.spec.phases, "step")
    assert 0 < sum(ns for phase, ns in timing.items() if phase != "step") <= timing["step"]
    assert timed.phase_totals()["step"] > timing["step"]


@every_target
@pytest.mark.parametrize("impl", ["native", "reference"])
def test_drag_changes_no_result_and_is_a_phase_of_its_own(target: str, impl: str) -> None:
    short = short_episodes(target)
    plain = hotloop.make(target, num_envs=3, impl=impl, **short)
    slowed = hotloop.make(target, num_envs=3, impl=impl, profile=True, drag=1000, **short)
    assert first_difference(plain, slowed, tape(plain.spec, 20)) == ""
    assert slowed.counters == plain.counters
    timing = slowed.step_timing
    assert tuple(timing) == (*plain.spec.phases, "drag", "step")
    assert 0 < timing["drag"] < sum(ns for phase, ns in timing.items() if phase != "step") <= timing["step"]


@every_target
@pytest.mark.parametrize("impl", ["native", "reference"])
def test_arrays_are_as_the_layout_says(target: str, impl: str) -> None:
    batch = hotloop.make(target, num_envs=2, impl=impl)
    spec = batch.spec
    shown = snapshot(batch)
    for array in spec.world.layout(spec.parameters).arrays:
        found = shown.get(array.name, shown.get(f"infos.{array.name}"))
        assert found is not None
        assert (found.dtype, found.shape) == (np.dtype(array.dtype), (2, *array.shape))


@every_target
@pytest.mark.parametrize("drag", [0, 1])
def test_native_declares_the_phases_of_the_registry(target: str, drag: int) -> None:
    batch = hotloop.make(target, num_envs=1, impl="native", drag=drag)
    assert tuple(batch._engine.phase_names()) == batch.spec.phases


@every_target
def test_native_counts_every_mechanic_of_the_registry(target: str) -> None:
    world = hotloop.make(target, num_envs=1).spec.world
    counted = [name for name, _ in hotloop.make(target, num_envs=1, impl="native")._engine.counters()]
    assert [name for name in counted if name in world.counters] == list(world.counters)
    assert all(set(names) <= set(world.counters) for names in world.mechanics.values())


@every_target
def test_both_implementations_count_the_same_work(target: str) -> None:
    counted = []
    for impl in ("native", "reference"):
        batch = hotloop.make(target, num_envs=2, impl=impl)
        *_, _ = play(batch, tape(batch.spec, 50, wild=True))
        counted.append({name: count for name, count in batch.counters.items() if count})
    assert counted[0].pop("native_steps") == counted[1].pop("reference_steps") == 100
    assert {name: counted[0].get(name, 0) for name in counted[1]} == counted[1]


@every_target
@pytest.mark.parametrize("impl", ["native", "reference"])
def test_actions_that_cannot_be_taken_are_refused(target: str, impl: str) -> None:
    batch = hotloop.make(target, num_envs=3, impl=impl)
    batch.reset()
    good = tape(batch.spec, 1)[0]
    before = snapshot(batch)
    for wrong in (
        good.astype(np.float32),
        good.astype(np.int16),
        good[:2],
        np.zeros((3, batch.spec.agents + 1), np.int32),
        np.zeros((6, batch.spec.agents), np.int32)[::2],
        good.astype(np.int64) + 2**40,
        good.tolist(),
        None,
    ):
        with pytest.raises(InputError):
            batch.step(wrong)
    assert difference(before, snapshot(batch)) == ""


@every_target
@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
def test_int64_and_uint8_actions_are_converted_and_counted(target: str, dtype: type) -> None:
    one, other = hotloop.make(target, num_envs=2), hotloop.make(target, num_envs=2)
    actions = tape(one.spec, 3)
    assert first_difference(one, other, actions) == ""
    for chosen in actions:
        one.step(chosen)
        other.step(chosen.astype(dtype))
    assert difference(snapshot(one), snapshot(other)) == ""
    assert (one.counters["actions_converted"], other.counters["actions_converted"]) == (0, 3)


@every_target
@pytest.mark.parametrize("impl", ["native", "reference"])
def test_the_golden_hash_has_not_moved(target: str, impl: str) -> None:
    world, preset = target.split("/")
    file = GOLDEN / f"{world}.json"
    if not file.exists():
        pytest.skip(f"no golden hash of {world}: record it with python tests/worlds/record_golden.py {world}")
    assert golden_hash(target, impl) == json.loads(file.read_text())[preset]


COUNT_ALLOCATIONS = """
import ctypes, gc, sys
import numpy as np
import hotloop

count = ctypes.CDLL(None).hotloop_test_allocations
count.restype = ctypes.c_long

def allocated(num_envs):
    batch = hotloop.make(sys.argv[1], num_envs=num_envs, impl="native", **eval(sys.argv[2]))
    batch.reset()
    actions = np.ones((num_envs, batch.spec.agents), np.int32)
    gc.disable()
    for _ in range(50):
        batch.step(actions)
    before = count()
    for _ in range(200):
        batch.step(actions)
    return count() - before

allocated(1)
print(allocated(1), allocated(int(sys.argv[3])))
"""


@pytest.mark.slow
@every_target
def test_a_step_allocates_nothing(target: str, tmp_path: Path) -> None:
    source = Path(__file__).parent / "count_allocations.c"
    library = tmp_path / "count.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    short = repr(short_episodes(target))
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONMALLOC": "pymalloc"}
    command = [sys.executable, "-c", COUNT_ALLOCATIONS, target, short, str(many(target))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    one, several = map(int, done.stdout.split())
    # What the binding itself needs for a call is the same for one env and for many.
    assert several <= one
