"""The prospector world: one ship mines asteroids, survives hazards and pirates, and sells at a station."""

from dataclasses import dataclass

from hotloop.core.settings import parameter
from hotloop.core.world import Array, EpisodeLength, Layout, Narrator, Outcome, Plan, Twin, World
from hotloop.worlds import MemberLoader

AGENTS = 1
NUM_ACTIONS = 69
# Random play leaves out the last action, cash out, which would end every episode within a hundred steps.
RANDOM_ACTIONS = 68
OBSERVATIONS = 260

COUNTERS = (
    *("travel", "scan", "mine", "fracture", "stabilise", "sell", "buy", "overheat", "pirates", "decoy"),
    *("cash_out", "destroyed", "stranded", "time_up", "invalid"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a prospector can be made with."""

    time_max: int = parameter(
        20_000, low=1, high=1_000_000, role="workload", help="Ticks after which an episode is cut off."
    )
    invalid_action_penalty: float = parameter(
        0.01, low=0.0, high=1000.0, role="workload", help="Taken from the reward of an invalid action."
    )
    packing: str = parameter(
        "changed",
        choices=("changed", "full"),
        role="variant",
        help="Write what a step may have changed of its observation, or all of it.",
    )
    generation: str = parameter(
        "lazy",
        choices=("lazy", "eager"),
        role="variant",
        help="Make a node's asteroids when the ship arrives, or all when an episode begins.",
    )
    kernels: str = parameter(
        "auto",
        choices=("auto", "scalar", "avx2", "avx512"),
        role="variant",
        help="How many numbers the long arithmetic works on at a time.",
    )


def plan(parameters: Parameters) -> Plan:
    """What both implementations are built from."""
    return {
        "agents": AGENTS,
        "num_actions": NUM_ACTIONS,
        "random_actions": RANDOM_ACTIONS,
        "time_max": parameters.time_max,
        "invalid_action_penalty": parameters.invalid_action_penalty,
        "packing": parameters.packing,
        "generation": parameters.generation,
        "kernels": parameters.kernels,
    }


def layout(parameters: Parameters) -> Layout:
    """Name the arrays of one env; prospector.h declares the same."""
    from hotloop.worlds.prospector.observe import METRICS

    return Layout(
        agents=AGENTS,
        num_actions=NUM_ACTIONS,
        random_actions=RANDOM_ACTIONS,
        arrays=(
            Array(name="observations", dtype="float32", shape=(AGENTS, OBSERVATIONS)),
            Array(name="rewards", dtype="float32", shape=(AGENTS,)),
            Array(name="terminals", dtype="bool", shape=()),
            Array(name="truncations", dtype="bool", shape=()),
            *(Array(name=name, dtype="float32", shape=()) for name in METRICS),
            Array(name="dt", dtype="int32", shape=()),
            Array(name="invalid", dtype="bool", shape=()),
        ),
    )


def load_twin() -> type[Twin]:
    from hotloop.worlds.prospector.twin import Prospector

    return Prospector


def narrator(parameters: Parameters) -> Narrator:
    from hotloop.worlds.prospector.observe import ProspectorNarrator

    return ProspectorNarrator(parameters.time_max)


world = World(
    name="prospector",
    summary="One ship mines asteroids, survives hazards and pirates, and sells at a station.",
    parameters=Parameters,
    presets={"default": {}, "short": {"time_max": 150}},
    phases=("action", "hazards", "market", "rewards", "observations"),
    plan=plan,
    layout=layout,
    twin=load_twin,
    counters=COUNTERS,
    narrator=narrator,
    episode=EpisodeLength(parameter="time_max", short=150, in_steps=False),
    outcomes={
        "profit": Outcome(info="net_profit", help="Credits earned, less what was spent."),
        "survival": Outcome(info="survival", help="1 unless the ship was destroyed or stranded."),
    },
    players={
        kind.lower(): MemberLoader("prospector.players", kind) for kind in ("Greedy", "Cautious", "Timer")
    },
    mechanics={
        "default": ("travel", "mine", "fracture", "pirates", "sell"),
        "short": ("travel", "mine", "time_up"),
    },
)
