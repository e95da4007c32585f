"""MettaGrid on its equivalent of grid/toy, and its arena, opened by a worker in an environment of its own.

Its C++ core is stepped directly through the core's own action buffer, which is its fastest way: the Python
layers above cost 5 to 40% more.
"""

import logging
import os
from typing import Any

from mettagrid.builder import envs  # type: ignore[import-not-found]
from mettagrid.config.mettagrid_config import (  # type: ignore[import-not-found]
    ActionsConfig,
    GameConfig,
    MettaGridConfig,
    MoveActionConfig,
    NoopActionConfig,
    ObsConfig,
    WallConfig,
)
from mettagrid.map_builder.random_map import RandomMapBuilder  # type: ignore[import-not-found]
from mettagrid.simulator import Simulation  # type: ignore[import-not-found]

from peer_batch import PeerBatch, PeerSpec

DIRECTIONS = ["north", "south", "east", "west", "northeast", "northwest", "southeast", "southwest"]
DENSITY = 0.04
ENCODER = "0"
"""Its original observation encoder, which is faster on these maps than the one it takes by default."""


def toy_config(agents: int, edge: int) -> MettaGridConfig:
    """Describe walls and agents on a square map, noop and eight moves, without an end."""
    walls = int(edge * edge * DENSITY)
    map_builder = RandomMapBuilder.Config(
        width=edge,
        height=edge,
        agents=agents,
        objects={"wall": walls},
        border_width=1,
        border_object="wall",
        seed=42,
    )
    actions = ActionsConfig(
        noop=NoopActionConfig(enabled=True),
        move=MoveActionConfig(enabled=True, allowed_directions=DIRECTIONS),
    )
    game = GameConfig(
        num_agents=agents,
        max_steps=0,
        obs=ObsConfig(width=11, height=11, num_tokens=200),
        actions=actions,
        objects={"wall": WallConfig()},
        map_builder=map_builder,
    )
    return MettaGridConfig(game=game)


def tokens_used(observations: Any) -> float:
    """Count the used tokens per agent in [agents, tokens, 3] bytes; an unused token starts with 0xFF."""
    return float((observations[..., 0] != 0xFF).sum(axis=-1).mean())


def batch_of(config: MettaGridConfig, agents: int, *, with_vibes: bool) -> PeerBatch:
    """One world as a batch, with all of its actions or without those that only change a vibe."""
    logging.disable(logging.WARNING)
    os.environ["METTAGRID_OBS_USE_OPTIMIZED"] = ENCODER
    simulation = Simulation(config, seed=42)
    names = [name for name in simulation.action_names if with_vibes or not name.startswith("change_vibe")]
    core = simulation._c_sim
    buffer, observations = core.actions(), core.observations()

    def step(actions: Any) -> None:
        buffer[:] = actions[0]
        core.step()

    spec = PeerSpec(num_envs=1, agents=agents, num_actions=len(names))
    return PeerBatch(step, spec, owned=simulation, tokens=lambda: tokens_used(observations))


def toy(agents: int, edge: int) -> PeerBatch:
    return batch_of(toy_config(agents, edge), agents, with_vibes=False)


def arena(agents: int) -> PeerBatch:
    return batch_of(envs.make_arena(num_agents=agents, combat=True), agents, with_vibes=True)
