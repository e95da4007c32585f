"""MettaGrid on its equivalent of grid/toy, in a worker process and an environment of its own.

Its C++ core is stepped directly through the core's own action buffer, which is its fastest way: the Python
layers above cost 5 to 40% more.
"""

import logging
import os
from importlib.metadata import version

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

from interleaved.stepping import Stepper, tokens_used
from interleaved.worker import serve, settings

DIRECTIONS = ["north", "south", "east", "west", "northeast", "northwest", "southeast", "southwest"]
DENSITY = 0.04
ENCODER = "0"
"""Its original observation encoder, which is faster on this map than the one it takes by default."""


def toy(agents: int, edge: int) -> MettaGridConfig:
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


def main() -> None:
    logging.disable(logging.WARNING)
    os.environ["METTAGRID_OBS_USE_OPTIMIZED"] = ENCODER
    given = settings()
    simulation = Simulation(toy(given["agents"], given["edge"]), seed=42)
    core = simulation._c_sim
    buffer = core.actions()
    observations = core.observations()

    def step(actions: object) -> None:
        buffer[:] = actions
        core.step()

    stepper = Stepper(
        step,
        shape=(given["agents"],),
        num_actions=len([name for name in simulation.action_names if not name.startswith("change_vibe")]),
        dtype=buffer.dtype.name,
        count_tokens=lambda: tokens_used(observations),
    )
    stepper.warm_up(given["warmup_calls"])
    serve(stepper.measure, {"version": version("mettagrid"), "worlds": 1, "optimized_encoder": ENCODER})


if __name__ == "__main__":
    main()
