"""The cards world: two players, decks, a stack and combat; whole games a second."""

from dataclasses import dataclass

from hotloop.core.settings import parameter
from hotloop.core.world import (
    Array,
    Contest,
    EpisodeLength,
    Layout,
    Narrator,
    Outcome,
    Plan,
    Twin,
    World,
)
from hotloop.worlds import MemberLoader

AGENTS = 1
# What is counted, in the order of state.Count: the events first.
COUNTERS = (
    *("cards_drawn", "lands_played", "spells_cast", "abilities_used", "triggers_put", "things_resolved"),
    *("spells_countered", "attacks_made", "blocks_made", "damages_dealt", "creatures_died", "cards_returned"),
    *("ended_by_life", "ended_by_library", "ended_drawn", "ended_by_timeout"),
    *("decisions_made", "options_refused", "options_truncated", "permanents_truncated"),
)
VILLAINS = ("random", "simple", "passive", "first", "search", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a game of cards can be made with."""

    deck: str = parameter(
        "mirror", role="workload", help="The deck of both: mirror, ramp, keywords, or 20*crag+20*brute."
    )
    villain_deck: str = parameter(
        "same", role="workload", help="The villain's deck, where it is not the hero's: as deck, or same."
    )
    villain: str = parameter(
        "random",
        choices=VILLAINS,
        role="workload",
        help="Who plays against the hero inside a step; none leaves both seats to the caller.",
    )
    max_decisions: int = parameter(
        2_000, low=1, high=1_000_000, role="workload", help="Decisions after which a game is stopped."
    )
    search_rollouts: int = parameter(
        64, low=1, high=4_096, role="workload", help="Games that `search` plays out for a decision."
    )
    max_actions: int = parameter(
        20, low=2, high=128, role="workload", help="Options of a decision at most; more are left out."
    )
    max_permanents: int = parameter(
        30, low=1, high=60, role="workload", help="Permanents a side that an observation has room for."
    )
    encode: bool = parameter(
        True, role="workload", help="Write observations; without them only masks say what can be chosen."
    )


def plan(parameters: Parameters) -> Plan:
    """What both implementations are built from."""
    from hotloop.worlds.cards.table import CARDS, read_deck

    other = parameters.villain_deck
    return {
        "agents": AGENTS,
        "num_actions": parameters.max_actions,
        "max_permanents": parameters.max_permanents,
        "max_decisions": parameters.max_decisions,
        "search_rollouts": parameters.search_rollouts,
        "villain": parameters.villain,
        "encode": int(parameters.encode),
        "cards": [number for card in CARDS for number in card.numbers],
        "deck": read_deck(parameters.deck),
        "villain_deck": read_deck(parameters.deck if other == "same" else other),
    }


def layout(parameters: Parameters) -> Layout:
    """Name the arrays of one env; cards.h declares the same."""
    from hotloop.worlds.cards.observe import RowLimits

    limits = RowLimits(actions=parameters.max_actions, permanents=parameters.max_permanents)
    return Layout(
        agents=AGENTS,
        num_actions=parameters.max_actions,
        parts=limits.parts,
        arrays=(
            Array(name="observations", dtype="float32", shape=(AGENTS, limits.row)),
            Array(name="rewards", dtype="float32", shape=(AGENTS,), low=-1, high=1),
            Array(name="terminals", dtype="bool", shape=()),
            Array(name="truncations", dtype="bool", shape=()),
            Array(name="masks", dtype="bool", shape=(AGENTS, parameters.max_actions)),
            Array(name="seat", dtype="int32", shape=()),
            Array(name="seat_rewards", dtype="float32", shape=(2,)),
            Array(name="won", dtype="float32", shape=()),
            Array(name="began", dtype="bool", shape=()),
            Array(name="end_reason", dtype="int32", shape=()),
            Array(name="turn_count", dtype="int32", shape=()),
            Array(name="decision_count", dtype="int32", shape=()),
            Array(name="refused", dtype="bool", shape=()),
        ),
    )


def load_twin() -> type[Twin]:
    from hotloop.worlds.cards.twin import Cards

    return Cards


def narrator(parameters: Parameters) -> Narrator:
    from hotloop.worlds.cards.observe import CardsNarrator, RowLimits

    made = plan(parameters)
    limits = RowLimits(actions=parameters.max_actions, permanents=parameters.max_permanents)
    return CardsNarrator(limits, (made["deck"], made["villain_deck"]))


world = World(
    name="cards",
    summary="Two players, decks, a stack and combat: whole games a second.",
    parameters=Parameters,
    presets={"mirror": {}, "ramp": {"deck": "ramp"}, "keywords": {"deck": "keywords"}},
    phases=("rules", "observations"),
    plan=plan,
    layout=layout,
    twin=load_twin,
    counters=COUNTERS,
    episode=EpisodeLength(parameter="max_decisions", short=20, in_steps=False),
    outcomes={
        "won": Outcome(info="won", help="1 where the hero won, 0 where it lost, 0.5 where nobody did."),
        "began": Outcome(info="began", help="1 where the hero had the first turn."),
        "end_reason": Outcome(info="end_reason", help="1 life, 2 an empty library, 3 a draw, 4 stopped."),
        "decision_count": Outcome(info="decision_count", help="Decisions of both players."),
    },
    contest=Contest(
        player="hero",
        episodes="num_games",
        won="won",
        began="began",
        decisions="decision_count",
        reason="end_reason",
        reasons=("nothing", "life", "library", "draw", "timeout"),
        encoding="observations",
        seat="seat",
        seat_rewards="seat_rewards",
        both_outside={"villain": "none"},
    ),
    narrator=narrator,
    players={
        kind.lower(): MemberLoader("cards.players", kind) for kind in ("Simple", "Passive", "First", "Search")
    },
    looks_ahead=("search",),
    mechanics={
        "mirror": ("lands_played", "spells_cast", "attacks_made", "ended_by_life"),
        "ramp": ("lands_played", "spells_cast", "attacks_made"),
        "keywords": ("lands_played", "spells_cast", "triggers_put", "attacks_made"),
    },
)
