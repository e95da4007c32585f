"""What a world declares of itself is so."""

from contextlib import closing
from itertools import count

import numpy as np
import pytest

from hotloop.core import registry, settings
from hotloop.core.world import World
from hotloop.envs.open import make
from hotloop.envs.reference import ReferenceEngine
from hotloop.envs.spec import BatchSettings

WORLDS = tuple(registry.worlds().values())


@pytest.fixture(params=WORLDS, ids=lambda world: world.name)
def world(request: pytest.FixtureRequest) -> World:
    declared: World = request.param
    return declared


def names(world: World) -> dict[str, settings.ParameterInfo]:
    return {info.name: info for info in settings.describe(world.parameters)}


def infos(world: World) -> set[str]:
    parameters = settings.apply(world.parameters, world.presets[world.default_preset])
    return {array.name for array in world.layout(parameters).arrays[4:]}


def test_short_episodes_end_soon(world: World) -> None:
    assert world.episode is not None
    with closing(make(world.name, num_envs=4, **{world.episode.parameter: world.episode.short})) as batch:
        batch.reset()
        for step in count(1):
            batch.step(batch.choose("random"))
            if np.any(batch.truncations):
                break
            assert step <= world.episode.short
        most = world.most_steps(batch.spec.parameters)
        assert most == (world.episode.short if world.episode.in_steps else 0)
        assert not world.is_endless(batch.spec.parameters)


def test_only_the_value_that_is_said_to_be_endless_is(world: World) -> None:
    assert world.episode is not None
    for length in (world.episode.endless, world.episode.short):
        if length is not None:
            parameters = settings.apply(world.parameters, {world.episode.parameter: length})
            assert world.is_endless(parameters) == (length == world.episode.endless)


def test_rivals_are_two_ways_of_a_phase(world: World) -> None:
    for rival in world.rivals.values():
        assert {rival.reference, rival.candidate} <= set(names(world)[rival.parameter].choices or ())
        assert names(world)[rival.parameter].role == "variant"
        assert rival.phase in world.phases
        assert rival.shadow is None or rival.shadow in names(world)


def test_a_shadow_runs_only_where_it_is_asked_for(world: World) -> None:
    parameters = settings.apply(world.parameters, {})
    assert world.shadowed(parameters) is None
    for rival in world.rivals.values():
        if rival.shadow:
            assert world.shadowed(settings.apply(world.parameters, {rival.shadow: True})) is rival


def test_outcomes_and_the_board_are_infos(world: World) -> None:
    assert {outcome.info for outcome in world.outcomes.values()} <= infos(world)
    assert {info for line in world.board.values() for info in line.values()} <= infos(world)


def test_a_picture_has_the_channels_that_are_named(world: World) -> None:
    assert bool(world.channels) == (world.drawer is not None)
    if world.channels:
        parameters = settings.apply(world.parameters, {})
        engine = ReferenceEngine(world, world.plan(parameters), parameters, BatchSettings(num_envs=1))
        engine.reset(None)
        assert engine.picture(0).shape[-1] == len(world.channels)
