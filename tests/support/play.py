"""What the tests play with: tapes of actions, and snapshots of everything a batch shows."""

import hashlib
from collections.abc import Iterator
from math import prod

import numpy as np
from numpy.typing import NDArray

import hotloop
from hotloop.core import registry
from hotloop.core.exact_math import Draws
from hotloop.core.settings import apply, describe
from hotloop.envs.batch import Batch
from hotloop.envs.spec import BatchSpec

TARGETS = [found.target for world in registry.worlds().values() for found in registry.presets(world)]
"""Every preset of every world: contract tests run over all of them."""


HEAVY = 256 * 1024
"""Bytes of one env's observations, from which on a batch of many is slow to compare."""


def is_heavy(target: str) -> bool:
    """Whether to look at everything an env shows takes long."""
    world = registry.find(target).world
    layout = world.layout(apply(world.parameters, world.presets[registry.find(target).preset]))
    return np.dtype(layout.observation.dtype).itemsize * prod(layout.observation.shape) >= HEAVY


def many(target: str, envs: int = 64) -> int:
    """So many envs, or an eighth of them where their observations are heavy."""
    return max(envs // 8, 1) if is_heavy(target) else envs


def short_episodes(target: str, steps: int = 7) -> dict[str, object]:
    """Parameters that end episodes soon, where the world has a length to set in steps or in ticks."""
    names = [info.name for info in describe(registry.find(target).world.parameters)]
    return {name: steps for name in ("max_steps", "time_max") if name in names}


def small(target: str) -> dict[str, object]:
    """Parameters that make players think less, where the world has one that decides how much."""
    names = [info.name for info in describe(registry.find(target).world.parameters)]
    return {"search_rollouts": 2, "max_decisions": 16} if "search_rollouts" in names else {}


def tape(spec: BatchSpec, steps: int, seed: int = 1, *, wild: bool = False) -> NDArray[np.int32]:
    """Random actions, the same on every machine; a wild tape has some that are out of range.

    Each env's actions depend on the env alone, so that batches of different sizes play alike.
    """
    low, high = (-2, spec.num_actions + 3) if wild else (0, spec.num_actions)
    streams = [np.random.Generator(np.random.PCG64([seed, env])) for env in range(spec.num_envs)]
    rows = [stream.integers(low, high, (steps, spec.agents), dtype=np.int32) for stream in streams]
    return np.ascontiguousarray(np.stack(rows, axis=1))


def snapshot(batch: Batch) -> dict[str, NDArray[np.generic]]:
    """Copies of everything a step can change."""
    shown = {
        "observations": batch.observations,
        "rewards": batch.rewards,
        "terminals": batch.terminals,
        "truncations": batch.truncations,
        "final_observations": batch.final_observations,
        **({} if batch.masks is None else {"masks": batch.masks}),
        **{f"infos.{name}": array for name, array in batch.infos.items()},
    }
    return {name: array.copy() for name, array in shown.items()} | {"digest": batch.digest()}


def play(batch: Batch, actions: NDArray[np.int32]) -> Iterator[dict[str, NDArray[np.generic]]]:
    """Reset, then step through a tape; a snapshot after each."""
    batch.reset()
    yield snapshot(batch)
    for chosen in actions:
        batch.step(chosen)
        yield snapshot(batch)


def difference(
    ours: dict[str, NDArray[np.generic]], theirs: dict[str, NDArray[np.generic]], envs: int | None = None
) -> str:
    """The first array that differs, and where; empty when all are equal to the byte."""
    for name, array in ours.items():
        one, other = array[:envs], theirs[name][:envs]
        if one.tobytes() != other.tobytes():
            places = np.argwhere(one != other)
            place = tuple(map(int, places[0]))
            return f"{name} at {place}: {one[place]} != {other[place]}"
    return ""


def first_difference(one: Batch, other: Batch, actions: NDArray[np.int32], envs: int | None = None) -> str:
    """Play one tape on both, and say where they first differ."""
    width = other.spec.num_envs
    pairs = zip(play(one, actions), play(other, np.ascontiguousarray(actions[:, :width])), strict=True)
    for step, (ours, theirs) in enumerate(pairs):
        if found := difference(ours, theirs, envs):
            return f"step {step}: {found}"
    return ""


def golden_hash(target: str, impl: str) -> str:
    """A hash over everything shown in 100 steps of 4 envs, or of one where observations are heavy.

    Its tape needs no library's generator.
    """
    batch = hotloop.make(target, num_envs=many(target, 4), impl=impl)
    shape = (batch.spec.num_envs, batch.spec.agents)
    bound = batch.spec.num_actions
    steps = range(100)
    draws = [Draws(7, step) for step in steps]
    actions = [[d.below(lane, bound) for lane in range(shape[0] * shape[1])] for d in draws]
    total = hashlib.sha256()
    for shown in play(batch, np.array(actions, np.int32).reshape(100, *shape)):
        for array in shown.values():
            total.update(array.tobytes())
    return total.hexdigest()
