"""The grid world: many agents on one map, token observations, nine timed phases."""

from dataclasses import dataclass
from itertools import chain

from hotloop.core.errors import InputError
from hotloop.core.settings import parameter
from hotloop.core.world import Array, Layout, Plan, Twin, World
from hotloop.worlds.grid.maps import Cell, bordered, parse_size, read_map


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a grid can be made with."""

    agents: int = parameter(20, low=1, high=1000, role="workload", help="Agents in one world.")
    map_size: str = parameter("40x40", role="workload", help="HEIGHTxWIDTH of a seeded map, border included.")
    density: float = parameter(
        0.04, low=0.0, high=1.0, role="workload", help="Walls of a seeded map, as a share of all its cells."
    )
    map: str = parameter(
        "", role="workload", help="A text map or its file: # wall, . free, @ spawn; instead of a seeded one."
    )
    window: int = parameter(
        11, low=1, high=15, role="workload", help="Side of the square an agent sees; odd."
    )
    tokens: int = parameter(200, low=1, high=1000, role="workload", help="Tokens of one observation.")
    directions: int = parameter(8, choices=(4, 8), role="workload", help="Ways to move.")
    max_steps: int = parameter(
        0, low=0, high=2**31 - 1, role="workload", help="Length of an episode; 0 is endless."
    )
    encoder: str = parameter(
        "optimized",
        choices=("optimized", "original"),
        role="variant",
        env="HOTLOOP_OBS_USE_OPTIMIZED",
        env_values={"1": "optimized", "0": "original"},
        help="How native code writes observations.",
    )
    shadow: bool = parameter(
        False, role="variant", env="HOTLOOP_OBS_VALIDATION", help="Run both encoders and compare every byte."
    )


def plan(parameters: Parameters) -> Plan:
    """Check the parameters together and work out the map."""
    if parameters.window % 2 == 0:
        raise InputError(f"window={parameters.window}: must be odd, so that an agent stands in its middle")
    cells = read_map(parameters.map) if parameters.map else bordered(*parse_size(parameters.map_size))
    height, width = len(cells), len(cells[0])
    walls = 0 if parameters.map else int(height * width * parameters.density)
    flat = [int(cell) for cell in chain.from_iterable(cells)]
    room = len(flat) - flat.count(Cell.WALL) - walls
    if parameters.agents > room:
        raise InputError(
            f"agents={parameters.agents}: the map of {height}x{width} has {max(room, 0)} free cells; "
            "use fewer agents, a larger map or a lower density"
        )
    return {
        "height": height,
        "width": width,
        "agents": parameters.agents,
        "window": parameters.window,
        "tokens": parameters.tokens,
        "max_steps": parameters.max_steps,
        "walls": walls,
        "num_actions": num_actions(parameters),
        "encoder": parameters.encoder,
        "shadow": int(parameters.shadow),
        "map": flat,
    }


def num_actions(parameters: Parameters) -> int:
    """Noop and the moves."""
    return 1 + parameters.directions


def layout(parameters: Parameters) -> Layout:
    """Name the arrays of one env; grid.h declares the same."""
    agents = parameters.agents
    return Layout(
        agents=agents,
        num_actions=num_actions(parameters),
        arrays=(
            Array(name="observations", dtype="uint8", shape=(agents, parameters.tokens, 3)),
            Array(name="rewards", dtype="float32", shape=(agents,)),
            Array(name="terminals", dtype="bool", shape=()),
            Array(name="truncations", dtype="bool", shape=()),
            Array(name="success", dtype="bool", shape=(agents,)),
            Array(name="episode_length", dtype="int32", shape=()),
            Array(name="episode_return", dtype="float32", shape=(agents,)),
        ),
    )


def twin() -> type[Twin]:
    from hotloop.worlds.grid.twin import Grid

    return Grid


world = World(
    name="grid",
    summary="Many agents on one map, token observations, nine timed phases.",
    parameters=Parameters,
    presets={"toy": {}},
    phases=(
        "reset",
        "events",
        "actions",
        "on_tick",
        "aoe",
        "collectives",
        "observations",
        "rewards",
        "truncation",
    ),
    plan=plan,
    layout=layout,
    twin=twin,
    counters=("move", "move.blocked", "noop", "action.invalid"),
)
