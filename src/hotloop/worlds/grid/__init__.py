"""The grid world: many agents on one map, token observations, nine timed phases."""

from dataclasses import dataclass
from itertools import chain

from hotloop.core.errors import InputError
from hotloop.core.settings import parameter
from hotloop.core.world import Array, Drawer, EpisodeLength, Layout, Plan, Rival, Twin, World
from hotloop.worlds import MemberLoader
from hotloop.worlds.grid.briefing import brief
from hotloop.worlds.grid.maps import LEGEND, MapCell, bordered, parse_size, read_map
from hotloop.worlds.grid.rules import flatten, read_rules


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a grid can be made with."""

    agents: int = parameter(20, low=1, high=1000, role="workload", help="Agents in one world.")
    map_size: str = parameter("40x40", role="workload", help="HEIGHTxWIDTH of a seeded map, border included.")
    density: float = parameter(
        0.04, low=0.0, high=1.0, role="workload", help="Walls of a seeded map, as a share of all its cells."
    )
    map: str = parameter(
        "",
        role="workload",
        help="A text map, its file or its name: # wall, . free, @ spawn; else seeded.",
    )
    rules: str = parameter(
        "toy",
        role="workload",
        help="Table of stations, events, rewards: toy, arena, guard or a TOML file.",
    )
    teams: int = parameter(0, low=0, high=255, role="workload", help="Teams the agents are dealt into.")
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
    kernels: str = parameter(
        "auto",
        choices=("auto", "scalar", "avx512"),
        role="variant",
        help="How many tokens the native teacher reads at a time: one, or many.",
    )


# What can happen, and is counted.
COUNTERS = (
    "move",
    "move.blocked",
    "noop",
    "action.invalid",
    "vibe",
    "use",
    "use.refused",
    "use.helped",
    "claim",
    "attack.hit",
    "attack.absorbed",
    "loot",
    "swap",
    "event.spawn",
    "event.drain",
    "event.clip",
    "event.team",
    "area.enter",
    "area.leave",
)


def plan(parameters: Parameters) -> Plan:
    """Check the parameters together and work out the map."""
    rules = read_rules(parameters.rules)
    if parameters.window % 2 == 0:
        raise InputError(f"window={parameters.window}: must be odd, so that an agent stands in its middle")
    if parameters.teams > parameters.agents:
        raise InputError(f"teams={parameters.teams}: more than there are agents ({parameters.agents})")
    briefing = brief(rules)
    if parameters.map:
        symbols = [rules.first(kind).symbol for kind in rules.kinds]
        stations = {symbol: MapCell.STATION + index for index, symbol in enumerate(symbols) if symbol}
        cells = read_map(parameters.map, {**LEGEND, **stations})
    else:
        cells = bordered(*parse_size(parameters.map_size))
    height, width = len(cells), len(cells[0])
    walls = 0 if parameters.map else int(height * width * parameters.density)
    drawn = {} if parameters.map else rules.place
    placed = [rules.kinds.index(kind) for kind, count in drawn.items() for _ in range(count)]
    flat = list(chain.from_iterable(cells))
    room = flat.count(MapCell.EMPTY) + flat.count(MapCell.SPAWN) - walls - len(placed)
    if parameters.agents > room:
        raise InputError(
            f"agents={parameters.agents}: the map has {max(room, 0)} free cells; "
            "use fewer agents, a larger map or a lower density"
        )
    return {
        "rules": rules,
        "height": height,
        "width": width,
        "agents": parameters.agents,
        "teams": parameters.teams,
        "directions": parameters.directions,
        "window": parameters.window,
        "tokens": parameters.tokens,
        "max_steps": parameters.max_steps,
        "walls": walls,
        "placed": placed,
        "num_actions": 1 + parameters.directions + rules.vibes,
        "encoder": parameters.encoder,
        "shadow": int(parameters.shadow),
        "kernels": parameters.kernels,
        "map": flat,
        **flatten(rules),
        "briefing": briefing,
        **briefing.flatten(),
    }


def layout(parameters: Parameters) -> Layout:
    """Name the arrays of one env; grid.h declares the same."""
    agents, teams = parameters.agents, parameters.teams
    return Layout(
        agents=agents,
        num_actions=1 + parameters.directions + read_rules(parameters.rules).vibes,
        arrays=(
            Array(name="observations", dtype="uint8", shape=(agents, parameters.tokens, 3), kind="tokens"),
            Array(name="rewards", dtype="float32", shape=(agents,)),
            Array(name="terminals", dtype="bool", shape=()),
            Array(name="truncations", dtype="bool", shape=()),
            Array(name="success", dtype="bool", shape=(agents,)),
            Array(name="episode_length", dtype="int32", shape=()),
            Array(name="episode_return", dtype="float32", shape=(agents,)),
            Array(name="team_members", dtype="int32", shape=(teams,)),
            Array(name="team_stations", dtype="int32", shape=(teams,)),
            Array(name="team_held", dtype="int32", shape=(teams,)),
        ),
    )


def load_twin() -> type[Twin]:
    from hotloop.worlds.grid.twin import Grid

    return Grid


def load_drawer(parameters: Parameters) -> Drawer:
    from hotloop.worlds.grid.drawer import GridDrawer

    return GridDrawer(read_rules(parameters.rules))


world = World(
    name="grid",
    summary="Many agents on one map, token observations, nine timed phases.",
    parameters=Parameters,
    sizes={
        # One agent in fifty cells, whatever the size; then a hundred of them on ever less ground.
        "agents": {
            agents: {"agents": agents, "map_size": f"{edge}x{edge}"}
            for agents, edge in ((10, 23), (20, 32), (50, 50), (100, 71), (200, 100), (500, 158), (1000, 224))
        },
        "crowding": {
            round(10_000 / edge**2, 2): {"agents": 100, "map_size": f"{edge}x{edge}"}
            for edge in (160, 100, 64, 40, 26, 18)
        },
    },
    presets={
        "arena": {
            "rules": "arena",
            "agents": 24,
            "teams": 2,
            "map_size": "27x27",
            "density": 0.04,
            "max_steps": 10_000,
        },
        "guard": {"rules": "guard", "map": "guard", "agents": 8, "teams": 2, "max_steps": 1_000},
        "toy": {},
    },
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
    twin=load_twin,
    counters=COUNTERS,
    players={"teacher": MemberLoader("grid.teacher", "Teacher")},
    episode=EpisodeLength(parameter="max_steps", short=50, endless=0),
    rivals={
        "original": Rival(
            parameter="encoder",
            reference="original",
            candidate="optimized",
            phase="observations",
            old_way="the plain encoder",
            removal="git grep -n encode_original",
            shadow="shadow",
        )
    },
    drawer=load_drawer,
    channels={
        "tag": "1 + the tag of what stands there; 0 is nothing",
        "team": "whose it is; 0 is nobody's",
        "still": "ticks it is frozen or clipped for, up to 255",
        "vibe": "an agent's",
    },
    board={"teams": {"members": "team_members", "stations": "team_stations", "held": "team_held"}},
    mechanics={
        "arena": ("attack.hit", "attack.absorbed", "swap", "loot", "use"),
        "guard": (
            "use.helped",
            "event.clip",
            "area.enter",
            "area.leave",
            "claim",
            "event.team",
            "event.spawn",
        ),
        "toy": ("move", "move.blocked", "noop"),
    },
)
