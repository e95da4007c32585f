"""MettaGrid with its own phases in the tree; `pip install mettagrid==0.26.22` in an environment of its own.

    hotloop profile examples/mettagrid.py:make --phases examples/mettagrid.py:engine
    hotloop bench examples/mettagrid.py:make agents=20

Its engine times the phases of a step where METTAGRID_PROFILING=1 was set when it was made. Hotloop sets
HOTLOOP_PROFILING=1 while it makes the side that is watched, so that the clean one stays without a clock.
"""

import logging
import os
from typing import Any

from mettagrid.config.mettagrid_config import (
    ActionsConfig,
    GameConfig,
    MettaGridConfig,
    MoveActionConfig,
    NoopActionConfig,
    ObsConfig,
    WallConfig,
)
from mettagrid.envs.pettingzoo_env import MettaGridPettingZooEnv
from mettagrid.map_builder.random_map import RandomMapBuilder
from mettagrid.simulator import Simulator


def make(agents: int = 20, size: int = 40, max_steps: int = 1_000) -> Any:
    """Their env for PettingZoo, unchanged; episodes are made anew by its simulator."""
    logging.disable(logging.WARNING)
    simulator = Simulator()
    if os.environ.get("HOTLOOP_PROFILING"):
        watch(simulator)
    return MettaGridPettingZooEnv(simulator, config(agents, size, max_steps))


def watch(simulator: Any) -> None:
    """Have every simulation that is made from now on time its phases."""
    make_one = simulator.new_simulation

    def with_clock(*given: Any, **more: Any) -> Any:
        os.environ["METTAGRID_PROFILING"] = "1"
        try:
            return make_one(*given, **more)
        finally:
            del os.environ["METTAGRID_PROFILING"]

    simulator.new_simulation = with_clock


def engine(env: Any) -> Any:
    """What has `step_timing`: the engine behind the simulation of this episode."""
    return env._sim._c_sim


def config(agents: int, size: int, max_steps: int) -> Any:
    walls = {"wall": size * size // 25}
    return MettaGridConfig(
        game=GameConfig(
            num_agents=agents,
            max_steps=max_steps,
            obs=ObsConfig(width=11, height=11, num_tokens=200),
            actions=ActionsConfig(noop=NoopActionConfig(enabled=True), move=MoveActionConfig(enabled=True)),
            objects={"wall": WallConfig()},
            map_builder=RandomMapBuilder.Config(
                width=size, height=size, agents=agents, objects=walls, border_width=1, seed=42
            ),
        )
    )
