"""MettaGrid with its own phases in the tree; `pip install mettagrid==0.26.22` in an environment of its own.

    hotloop profile examples/mettagrid.py:make --phases examples/mettagrid.py:engine
    hotloop compare "examples/mettagrid.py:make encoder=original" examples/mettagrid.py:make \
        --profile --phases examples/mettagrid.py:engine
    hotloop bench examples/mettagrid.py:make validate=true

Its engine reads its environment variables when it is made, which is at every reset. It times the phases of a
step with METTAGRID_PROFILING=1. Hotloop sets HOTLOOP_PROFILING=1 while it makes the side that is watched, so
that the clean one stays without a clock.
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

ENCODERS = {
    "": {},
    "original": {"METTAGRID_OBS_USE_OPTIMIZED": "0"},
    "optimized": {"METTAGRID_OBS_USE_OPTIMIZED": "1"},
}


def make(
    agents: int = 20, size: int = 40, max_steps: int = 1_000, encoder: str = "", validate: bool = False
) -> Any:
    """Their env for PettingZoo, unchanged; episodes are made anew by its simulator."""
    logging.disable(logging.WARNING)
    simulator = Simulator()
    variables = dict(ENCODERS[encoder])
    if os.environ.get("HOTLOOP_PROFILING"):
        variables["METTAGRID_PROFILING"] = "1"
    if validate:
        variables["METTAGRID_OBS_VALIDATION"] = "1"
    engines = made_with(simulator, variables)
    env = MettaGridPettingZooEnv(simulator, config(agents, size, max_steps))
    if validate:
        env.counters = lambda: counters(engines)
    return env


def made_with(simulator: Any, variables: dict[str, str]) -> list[Any]:
    """Have every simulation that is made from now on find these variables; returns their engines."""
    make_one, engines = simulator.new_simulation, []

    def make_simulation(*given: Any, **more: Any) -> Any:
        os.environ.update(variables)
        try:
            simulation = make_one(*given, **more)
        finally:
            for name in variables:
                del os.environ[name]
        engines.append(simulation._c_sim)
        return simulation

    simulator.new_simulation = make_simulation
    return engines


def counters(engines: list[Any]) -> dict[str, int]:
    """What the engines of all episodes counted while they compared both encoders."""
    found = [each.obs_validation_stats for each in engines]
    return {
        "comparison_count": sum(each.comparison_count for each in found),
        "mismatch_count": sum(each.mismatch_count for each in found),
    }


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
