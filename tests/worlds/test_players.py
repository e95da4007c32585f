"""The promises every player of every world keeps; a new player gets these tests by existing."""

import numpy as np
import pytest
from numpy.typing import NDArray
from support.play import TARGETS, is_heavy, many, short_episodes, small

import hotloop
from hotloop.core import registry
from hotloop.core.errors import InputError
from hotloop.envs import native
from hotloop.envs.batch import Batch, OrderError

CASTS = [
    (target, player) for target in TARGETS for player in ("random", *registry.find(target).world.players)
]
every_player = pytest.mark.parametrize(("target", "player"), CASTS)
impls = pytest.mark.parametrize("impl", ["native", "reference"])
pytestmark = pytest.mark.skipif(
    native.why_not(TARGETS[0].split("/")[0]) is not None, reason="the native module is not built"
)


def play(batch: Batch, player: str, steps: int) -> NDArray[np.int32]:
    """Every action a player chooses, and follows, from a reset on."""
    batch.reset()
    chosen = []
    for _ in range(steps):
        actions = batch.choose(player)
        chosen.append(actions.copy())
        batch.step(actions)
    return np.array(chosen)


@every_player
def test_native_and_python_players_choose_the_same_over_several_episodes(target: str, player: str) -> None:
    short = short_episodes(target, 20) | small(target)
    twin = hotloop.make(target, num_envs=2, impl="reference", **short)
    fast = hotloop.make(target, num_envs=2, impl="native", **short)
    assert play(twin, player, 50).tolist() == play(fast, player, 50).tolist()
    assert not short_episodes(target) or twin.counters["resets"] > 2


@every_player
@pytest.mark.parametrize(("threads", "num_envs"), [(1, 1), (2, 3), (2, 64)])
def test_choices_do_not_depend_on_threads_or_batch_size(
    target: str, player: str, threads: int, num_envs: int
) -> None:
    short = short_episodes(target, 60) | small(target)
    wide = hotloop.make(target, num_envs=many(target), impl="native", **short)
    num_envs = min(num_envs, many(target))
    other = hotloop.make(target, num_envs=num_envs, impl="native", threads=threads, **short)
    steps = 70 if is_heavy(target) else 150
    ours = play(wide, player, steps)[:, :num_envs]
    assert ours.tobytes() == play(other, player, steps).tobytes()


@every_player
def test_the_same_seed_gives_the_same_choices(target: str, player: str) -> None:
    one, again = (hotloop.make(target, num_envs=2, seed=5, **small(target)) for _ in range(2))
    assert play(one, player, 40).tobytes() == play(again, player, 40).tobytes()


@every_player
@impls
def test_choices_are_actions_in_an_array_of_the_players_own(target: str, player: str, impl: str) -> None:
    batch = hotloop.make(target, num_envs=2, impl=impl, **small(target))
    batch.reset()
    actions = batch.choose(player)
    assert (actions.shape, actions.dtype) == ((2, batch.spec.agents), np.int32)
    assert actions.min() >= 0
    assert actions.max() < batch.spec.num_actions
    assert batch.choose(player) is actions


@every_player
@impls
def test_a_player_forgets_when_its_env_begins_anew(target: str, player: str, impl: str) -> None:
    if player == "random":
        pytest.skip("it has nothing to forget")
    batch = hotloop.make(target, num_envs=2, impl=impl, **small(target))
    batch.reset(seeds=[1, 2])
    saved = [batch.save(env) for env in range(2)]
    first = batch.choose(player).copy()
    for _ in range(10):
        batch.step(batch.choose(player))
    batch.reset_many([0, 1], seeds=[1, 2])
    assert batch.choose(player).tolist() == first.tolist()
    for _ in range(10):
        batch.step(batch.choose(player))
    for env in range(2):
        batch.load(env, saved[env])
    assert batch.choose(player).tolist() == first.tolist()


@every_player
@impls
def test_decisions_are_counted_when_a_player_is_asked_and_stand_still_when_not(
    target: str, player: str, impl: str
) -> None:
    batch = hotloop.make(target, num_envs=2, impl=impl, **small(target))
    batch.reset()
    actions = batch.choose(player).copy()
    batch.choose(player)
    for _ in range(3):
        batch.step(actions)
    counted = {name: count for name, count in batch.counters.items() if name.startswith("decisions.")}
    assert counted.pop(f"decisions.{player}") == 2 * 2 * batch.spec.agents
    assert not any(counted.values())


@pytest.mark.parametrize("target", TARGETS)
def test_native_declares_the_players_of_the_registry(target: str) -> None:
    for impl in ("native", "reference"):
        batch = hotloop.make(target, num_envs=1, impl=impl)
        assert batch.players == ("random", *batch.spec.world.players)


@impls
def test_the_random_player_uses_every_action_about_equally_often(impl: str) -> None:
    batch = hotloop.make("grid/toy", num_envs=4, impl=impl, agents=50)
    counts = np.bincount(play(batch, "random", 20).ravel(), minlength=9)
    assert len(counts) == 9
    assert abs(counts / counts.sum() - 1 / 9).max() < 0.02


@impls
def test_an_unknown_player_is_refused_with_the_nearest(impl: str) -> None:
    batch = hotloop.make("grid/toy", num_envs=1, impl=impl)
    batch.reset()
    with pytest.raises(InputError, match="did you mean teacher"):
        batch.choose("teachr")


@impls
def test_choosing_before_reset_is_refused(impl: str) -> None:
    batch = hotloop.make("grid/toy", num_envs=1, impl=impl)
    with pytest.raises(OrderError, match="choose before reset"):
        batch.choose("random")
