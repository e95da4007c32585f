"""What a step leaves for the log, slot by slot; ledger.h has the same.

A row has two halves: who lived in the slot when the step began and what became of its turn, and who lives
there now, which may be another agent. -1 is no agent; rows are written only where there is a log.
"""

from enum import IntEnum
from typing import TYPE_CHECKING

from hotloop.core.world import Array

if TYPE_CHECKING:
    from hotloop.worlds.farm.twin import Farm


class Number(IntEnum):
    """Columns of whole numbers."""

    TURN_AGENT = 0
    TURN_BREED = 1
    TURN_ACTION = 2
    TURN_RESULT = 3
    TURN_TARGET = 4
    TURN_FATE = 5
    NOW_AGENT = 6
    NOW_BREED = 7
    NOW_PARENT = 8
    NOW_GENERATION = 9
    NOW_AGE = 10
    NOW_DEFENDING = 11
    NOW_HUNGER = 12


class Real(IntEnum):
    """Columns of float32."""

    TURN_X = 0
    TURN_Y = 1
    TURN_AMOUNT = 2
    TURN_LEFT = 3
    NOW_X = 4
    NOW_Y = 5
    NOW_RESOURCES = 6
    NOW_HEALTH = 7
    NOW_TOTAL = 8


NOT_ITS_TURN, DONE = -1, 0
# What came of an action, by number; -1 is that its agent was killed first.
RESULTS = (
    *("done", "no_target", "no_food", "too_poor", "blocked", "unlucky", "full", "unheard", "unknown"),
    "barred",
)
FATES = ("lives on", "starved", "killed")

# The arrays, [agents, Number], [agents, Real] and [nodes, 3] of x, y and amount.
NUMBERS, REALS, NODES = "log_numbers", "log_reals", "log_nodes"


def arrays(agents: int, nodes: int) -> tuple[Array, ...]:
    return (
        Array(name=NUMBERS, dtype="int32", shape=(agents, len(Number))),
        Array(name=REALS, dtype="float32", shape=(agents, len(Real))),
        Array(name=NODES, dtype="float32", shape=(nodes, 3)),
    )


class Ledger:
    """One env's rows."""

    def __init__(self, farm: "Farm") -> None:
        self.farm, self.numbers, self.reals = farm, farm.out[NUMBERS], farm.out[REALS]
        self.nodes = farm.out[NODES]

    def open(self) -> None:
        """Begin a step with those who live; a turn may never come."""
        self.numbers[...] = 0
        self.reals[...] = 0
        self.numbers[:, (Number.TURN_AGENT, Number.NOW_AGENT)] = -1
        for slot in self.farm.indexed:
            agent = self.farm.state.agents[slot]
            self.numbers[slot, : Number.TURN_FATE] = (agent.serial, agent.breed, 0, NOT_ITS_TURN, -1)
            self.reals[slot, : Real.TURN_AMOUNT] = (agent.x, agent.y)

    def act(self, slot: int, action: int, failure: str) -> None:
        target, amount, left = self.farm.effect
        result = RESULTS.index(failure) if failure else DONE
        self.numbers[slot, Number.TURN_ACTION : Number.TURN_FATE] = (action, result, target)
        self.reals[slot, Real.TURN_AMOUNT : Real.NOW_X] = (amount, left)

    def bury(self, slot: int) -> None:
        """Who was killed has no health left; who starved has."""
        cause = "killed" if self.farm.state.agents[slot].health <= 0 else "starved"
        self.numbers[slot, Number.TURN_FATE] = FATES.index(cause)

    def close(self) -> None:
        """End a step with those who live now, and what grows."""
        for slot, agent in self.farm.living():
            self.numbers[slot, Number.NOW_AGENT :] = (
                *(agent.serial, agent.breed, agent.parent, agent.generation),
                *(agent.age, agent.defending, agent.hunger),
            )
            self.reals[slot, Real.NOW_X :] = (
                *(agent.x, agent.y, agent.resources, agent.health, agent.total),
            )
        for k, node in enumerate(self.farm.state.nodes):
            self.nodes[k] = (node.x, node.y, node.amount)
