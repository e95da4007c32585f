"""The farm world: an ecology of agents in continuous space, which gather, fight, breed and starve."""

from dataclasses import dataclass
from math import isqrt
from tempfile import gettempdir

from hotloop.core.errors import InputError
from hotloop.core.settings import parameter
from hotloop.core.world import (
    Array,
    Drawer,
    EpisodeLength,
    Layout,
    LoggedRun,
    Outcome,
    Part,
    Plan,
    RunLog,
    Twin,
    World,
)
from hotloop.worlds import MemberLoader
from hotloop.worlds.farm import ledger

NUM_ACTIONS = 8
CHANNELS = 13
TYPES = ("system", "independent", "control")
BODY = 8  # Numbers of an observation without perception: the agent's own state
HELD_AREA = 100  # Units of area an agent has where the population is held
MOST_AGENTS = 10_000

COUNTERS = (
    *("defend", "attack", "gather", "share", "move", "reproduce", "pass", "communicate"),
    *("failed.no_target", "failed.no_food", "failed.too_poor", "failed.blocked", "failed.unlucky"),
    *("failed.full", "failed.unheard", "failed.unknown", "failed.barred"),
    *("birth", "rebirth", "death.starved", "death.killed", "regrowth", "extinction"),
    *("index.rebuilds", "index.queries", "index.stale"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a farm can be made with."""

    agents: int = parameter(
        30, low=1, high=MOST_AGENTS, role="workload", help="Agents at the start, of the three types in turn."
    )
    max_agents: int = parameter(
        300, low=1, high=MOST_AGENTS, role="workload", help="The population's cap: rows of a step."
    )
    width: int = parameter(100, low=1, high=4096, role="workload", help="Units from west to east.")
    height: int = parameter(100, low=1, high=4096, role="workload", help="Units from north to south.")
    nodes: int = parameter(20, low=0, high=100_000, role="workload", help="Resource nodes.")
    held: bool = parameter(
        False,
        role="workload",
        help="Hold the population: who dies is born again; area, nodes and cap follow from agents.",
    )
    placement: str = parameter(
        "random", choices=("random", "grid", "clustered"), role="workload", help="Where the nodes are."
    )
    max_steps: int = parameter(
        0, low=0, high=2**31 - 1, role="workload", help="Steps of an episode; 0 is without end."
    )
    perception: bool = parameter(
        True, role="workload", help="Show agents 13 channels of what is around them; else their own state."
    )
    radius: int = parameter(6, low=1, high=20, role="workload", help="Cells seen in each direction.")
    interpolation: str = parameter(
        "bilinear",
        choices=("bilinear", "nearest"),
        role="workload",
        help="Spread what a node holds over four cells, or show it in its own.",
    )
    start_resources: float = parameter(
        5.0, low=0.0, high=1e6, role="workload", help="What an agent is born with."
    )
    node_cap: float = parameter(30.0, low=0.001, high=1e6, role="workload", help="What a node holds at most.")
    regrowth: float = parameter(2.0, low=0.0, high=1e6, role="workload", help="What a node regrows at once.")
    regrowth_chance: float = parameter(
        0.1, low=0.0, high=1.0, role="workload", help="How likely a node regrows in a step."
    )
    consumption: float = parameter(
        0.15, low=0.0, high=1e6, role="workload", help="What an agent eats in a step."
    )
    hunger_limit: int = parameter(
        10, low=1, high=255, role="workload", help="Steps at zero resources that are death."
    )
    max_gather: float = parameter(
        2.0, low=0.0, high=1e6, role="workload", help="What is gathered at once at most."
    )
    max_movement: float = parameter(
        8.0, low=0.0, high=4096.0, role="workload", help="Units of a move on even ground."
    )
    strength: float = parameter(
        6.0, low=0.0, high=1e6, role="workload", help="Damage of an attack by whoever is in full health."
    )
    birth_chance: float = parameter(
        0.5, low=0.0, high=1.0, role="workload", help="How likely an attempt to reproduce succeeds."
    )
    birth_cost: float = parameter(3.0, low=0.0, high=1e6, role="workload", help="What a child costs.")
    birth_minimum: float = parameter(
        8.0, low=0.0, high=1e6, role="workload", help="Resources that whoever reproduces needs."
    )
    max_births: int = parameter(
        0, low=0, high=100_000, role="workload", help="Births of an episode at most; 0 is without end."
    )
    reward_resources: float = parameter(
        0.1, low=-1e6, high=1e6, role="workload", help="For each unit of resources gained."
    )
    reward_health: float = parameter(
        0.5, low=-1e6, high=1e6, role="workload", help="For each point of health gained."
    )
    reward_alive: float = parameter(0.1, low=-1e6, high=1e6, role="workload", help="For living.")
    reward_death: float = parameter(-10.0, low=-1e6, high=1e6, role="workload", help="For dying.")
    reward_action: float = parameter(
        0.05, low=-1e6, high=1e6, role="workload", help="For an action that is no pass."
    )
    index: str = parameter(
        "grid",
        choices=("grid", "hash", "quadtree", "kdtree", "brute"),
        role="variant",
        help="How neighbours are found; all find the same.",
    )
    resources: str = parameter(
        "list",
        choices=("list", "memmap"),
        role="variant",
        help="Keep nodes and food in memory, or in a memory-mapped file; results are the same.",
    )
    memmap_folder: str = parameter(
        "", role="variant", help="Where that file is made; empty is the system's folder for such files."
    )
    log: str = parameter(
        "", role="variant", help="The database that everything is written to, or a folder for one a run."
    )
    overwrite: bool = parameter(False, role="variant", help="Replace a log that is there already.")
    log_profile: str = parameter(
        "balanced",
        choices=("balanced", "performance", "safety", "memory"),
        role="variant",
        help="How SQLite weighs speed, safety and memory.",
    )
    log_buffer: int = parameter(
        5_000,
        low=1,
        high=1_000_000,
        role="variant",
        help="Rows of one transaction at least; 1 is each its own.",
    )
    log_writer: str = parameter(
        "thread",
        choices=("thread", "caller"),
        role="variant",
        help="Who writes: a thread of the log's own, or whoever steps.",
    )
    log_queue: int = parameter(
        4, low=1, high=1_000, role="variant", help="Transactions that may wait for the thread."
    )
    log_storage: str = parameter(
        "disk",
        choices=("disk", "memory"),
        role="variant",
        help="Where the database grows; from memory it is copied to its place at the end.",
    )
    log_pages: int = parameter(
        0, low=0, high=2**31 - 1, role="variant", help="Pages the database may have; 0 is what fits the disk."
    )
    log_patience: float = parameter(
        5.0, low=0.0, high=3600.0, role="variant", help="Seconds to wait for whoever has locked the database."
    )
    log_trouble: str = parameter(
        "stop",
        choices=("stop", "go_on"),
        role="variant",
        help="Where the log cannot be written: end the run, or go on without it.",
    )


def sizes(parameters: Parameters) -> dict[str, int]:
    """Cap, sides and nodes, which follow from the agents where the population is held."""
    if not parameters.held:
        return {
            "agents": parameters.max_agents,
            "width": parameters.width,
            "height": parameters.height,
            "nodes": parameters.nodes,
        }
    side = isqrt(HELD_AREA * parameters.agents)
    eaten = parameters.consumption * parameters.agents
    grown = parameters.regrowth * parameters.regrowth_chance
    nodes = int(2 * eaten / grown) + 1 if grown > 0 else parameters.nodes
    return {"agents": parameters.agents, "width": side, "height": side, "nodes": min(nodes, 100_000)}


def chance(share: float) -> int:
    """A probability as a bound for 32 random bits."""
    return round(share * 2**32)


REALS = (
    *("start_resources", "node_cap", "regrowth", "consumption", "max_gather", "max_movement", "strength"),
    *("birth_cost", "birth_minimum", "reward_resources", "reward_health", "reward_alive", "reward_death"),
    "reward_action",
)


def plan(parameters: Parameters) -> Plan:
    """What both implementations are built from; `agents` are the rows, `settlers` who is there first."""
    if not parameters.held and parameters.agents > parameters.max_agents:
        raise InputError(
            f"agents={parameters.agents} are more than the cap: give max_agents={parameters.agents} or more"
        )
    return {
        **sizes(parameters),
        "settlers": parameters.agents,
        "most_lives": parameters.agents + parameters.max_births if parameters.max_births else 0,
        "num_actions": NUM_ACTIONS,
        "held": int(parameters.held),
        "placement": parameters.placement,
        "max_steps": parameters.max_steps,
        "perception": int(parameters.perception),
        "radius": parameters.radius,
        "bilinear": int(parameters.interpolation == "bilinear"),
        "hunger_limit": parameters.hunger_limit,
        "regrowth_chance": chance(parameters.regrowth_chance),
        "birth_chance": chance(parameters.birth_chance),
        "index": parameters.index,
        "memmap": int(parameters.resources == "memmap"),
        "memmap_folder": parameters.memmap_folder or gettempdir(),
        "logged": int(bool(parameters.log)),
        "layered": 0,
        **{name: float(getattr(parameters, name)) for name in REALS},
    }


def names(parameters: Parameters) -> tuple[str, ...]:
    """Whom an episode may have: the settlers, and a child with each next number, of whichever type."""
    first, births = parameters.agents, parameters.max_births
    settlers = (f"{TYPES[slot % len(TYPES)]}_{slot}" for slot in range(first if births else 0))
    children = (f"{of}_{serial}" for serial in range(first, first + births) for of in TYPES)
    return (*settlers, *children)


def layout(parameters: Parameters) -> Layout:
    """Name the arrays of one env; farm.h declares the same."""
    agents, side = sizes(parameters)["agents"], 2 * parameters.radius + 1
    row = CHANNELS * side * side if parameters.perception else BODY
    shown = Part(name="around", shape=(CHANNELS, side, side), kind="image")
    whole = (
        *("population", "systems", "independents", "controls"),
        *("births", "starved", "killed", "lives"),
    )
    return Layout(
        agents=agents,
        num_actions=NUM_ACTIONS,
        parts=(shown,) if parameters.perception else (),
        types=TYPES,
        names=names(parameters),
        arrays=(
            Array(name="observations", dtype="float32", shape=(agents, row)),
            Array(name="rewards", dtype="float32", shape=(agents,)),
            Array(name="terminals", dtype="bool", shape=()),
            Array(name="truncations", dtype="bool", shape=()),
            Array(name="alive", dtype="bool", shape=(agents,)),
            Array(name="luck", dtype="int32", shape=(agents,)),
            Array(name="breeds", dtype="uint8", shape=(agents,)),
            Array(name="serials", dtype="int32", shape=(agents,)),
            Array(name="died", dtype="bool", shape=(agents,)),
            *(Array(name=name, dtype="int32", shape=()) for name in whole),
            Array(name="lifetime", dtype="float32", shape=()),
            Array(name="stock", dtype="float32", shape=()),
            *(ledger.arrays(agents, sizes(parameters)["nodes"]) if parameters.log else ()),
        ),
    )


def load_twin() -> type[Twin]:
    from hotloop.worlds.farm.twin import Farm

    return Farm


def run_log(parameters: Parameters, run: LoggedRun) -> RunLog | None:
    """What writes a run down, where that is asked for."""
    if not parameters.log:
        return None
    from hotloop.worlds.farm.log import FarmLog

    return FarmLog(parameters, run)


def load_drawer(parameters: Parameters) -> Drawer:
    from hotloop.worlds.farm.observe import FarmDrawer

    return FarmDrawer()


world = World(
    name="farm",
    summary="An ecology of agents in continuous space, which gather, share, fight, breed and starve.",
    parameters=Parameters,
    sizes={
        # The population is held: the ground grows with it; then a hundred on ever less ground.
        "agents": {agents: {"agents": agents, "held": True} for agents in (10, 20, 50, 100, 200, 500, 1000)},
        "crowding": {
            round(1e6 / edge**2, 1): {"agents": 100, "width": edge, "height": edge}
            for edge in (800, 400, 200, 100, 50)
        },
    },
    presets={
        "default": {},
        "dev": {"agents": 15, "max_agents": 50, "width": 50, "height": 50, "nodes": 10},
        "steady": {"agents": 100, "held": True},
    },
    phases=("actions", "rewards", "environment", "perception"),
    plan=plan,
    layout=layout,
    twin=load_twin,
    counters=COUNTERS,
    players={"weighted": MemberLoader("farm.actions", "Weighted")},
    episode=EpisodeLength(parameter="max_steps", short=50, endless=0),
    drawer=load_drawer,
    log=run_log,
    channels={
        "breed": "0 nobody, else 1 system, 2 independent, 3 control",
        "health": "of who is there, 0 to 100",
        "food": "share of a full node, 0 to 255",
        "trail": "how fresh a track is, 0 to 255",
    },
    board={
        "people": {
            "population": "population",
            "system": "systems",
            "independent": "independents",
            "control": "controls",
        },
        "lives": {"births": "births", "starved": "starved", "killed": "killed"},
    },
    history={
        "population": {
            "all": "population",
            "system": "systems",
            "independent": "independents",
            "control": "controls",
        },
        "resources": {"in the nodes": "stock"},
    },
    kept_by=("index", "resources"),
    rules_end="nobody is left",
    outcomes={
        "population": Outcome(info="population", help="Agents alive at the end."),
        "systems": Outcome(info="systems", help="Of them, those of type system."),
        "independents": Outcome(info="independents", help="Of them, those of type independent."),
        "controls": Outcome(info="controls", help="Of them, those of type control."),
        "births": Outcome(info="births", help="Agents born in the episode."),
        "starved": Outcome(info="starved", help="Deaths by hunger."),
        "killed": Outcome(info="killed", help="Deaths by attack."),
        "lifetime": Outcome(info="lifetime", help="Steps that those of the episode lived, on average."),
        "stock": Outcome(info="stock", help="Resources left in the nodes."),
    },
    mechanics={
        "default": ("attack", "gather", "share", "move", "reproduce", "birth", "death.starved"),
        "dev": ("attack", "gather", "move", "reproduce"),
        "steady": ("attack", "gather", "share", "move", "failed.full", "regrowth"),
    },
)
