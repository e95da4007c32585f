"""The farm world in plain Python: its specification. farm.h must agree to the byte.

Agents of three types live in continuous space: they move, gather, share, fight, defend, breed and starve, and
resources regrow. A row is a slot of the population, which may be free. All arithmetic is float32 in the order
written. Where this file and the native rules differ, this file is right.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from struct import pack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.exact_math import Draws, f32, mix
from hotloop.core.world import Plan
from hotloop.worlds.farm.actions import ACTIONS, NAMES, PASS, die
from hotloop.worlds.farm.ledger import Ledger
from hotloop.worlds.farm.observe import Still, body, look, picture, planes, standing
from hotloop.worlds.farm.state import (
    ALIVE,
    BLOCK,
    BREEDS,
    DECAY,
    DYING,
    FAINT,
    FREE,
    LANE_LUCK,
    LANE_NODES,
    LANE_TERRAIN,
    LANES,
    FarmAgent,
    FarmState,
    FoodNode,
    Mapped,
    begin,
    cell,
    settle,
)

NO_EFFECT = (-1, 0.0, 0.0)


class Farm:
    """One env of the farm world."""

    def __init__(self, plan: Plan, out: Mapping[str, Any]) -> None:
        self.plan, self.out = plan, out
        self.chosen: Sequence[int] = ()
        self.counters: dict[str, int] = {}
        self.lived = 0
        self.width, self.height = float(plan["width"]), float(plan["height"])
        self.stride: int = plan["width"] + 2 * plan["radius"]
        self.node_cap, self.regrowth_amount = f32(plan["node_cap"]), f32(plan["regrowth"])
        self.start_resources, self.consumption = f32(plan["start_resources"]), f32(plan["consumption"])
        self.max_gather, self.max_movement = f32(plan["max_gather"]), f32(plan["max_movement"])
        self.strength = f32(plan["strength"])
        self.birth_cost, self.birth_minimum = f32(plan["birth_cost"]), f32(plan["birth_minimum"])
        self.still = Still(self)
        cells = self.still.inside.size if plan["perception"] else 0
        self.mapped = Mapped(plan["memmap_folder"], cells, plan["nodes"]) if plan["memmap"] else None
        self.state = FarmState()
        self.indexed: list[int] = []
        """The slots whose positions the index knows."""
        self.terrain: dict[int, float] = {}
        self.acted: list[bool] = []
        self.before: list[tuple[float, float]] = []
        self.effect: tuple[int, float, float] = NO_EFFECT
        """What the turn under way did: to whom or what, how much, and what it left there."""
        self.ledger = Ledger(self) if plan["logged"] else None

    def restart(self, episode_seed: int) -> None:
        self.take(begin(self.plan, episode_seed))
        self.terrain = self.ground()
        self.out["observations"][...] = 0
        self.update_index()
        self.show_agents()
        self.perception()

    def take(self, state: FarmState) -> None:
        """Go on from a state; what grows is kept in the file where there is one."""
        self.state = state
        if self.mapped:
            state.nodes = self.mapped.keep(state.nodes)

    def ground(self) -> dict[int, float]:
        """What each cell costs those who walk there."""
        draws = Draws(self.state.episode_seed, 0)
        blocks = -(-self.plan["width"] // BLOCK)
        rough = {
            (row, col)
            for row in range(-(-self.plan["height"] // BLOCK))
            for col in range(blocks)
            if draws.word(LANE_TERRAIN + row * blocks + col) >> 62 == 0  # a quarter of the blocks
        }
        return {
            self.cell_at(col, row): 2.0 if (row // BLOCK, col // BLOCK) in rough else 1.0
            for row in range(self.plan["height"])
            for col in range(self.plan["width"])
        }

    @property
    def draws(self) -> Draws:
        return Draws(self.state.episode_seed, self.state.tick)

    def cell_at(self, col: int, row: int) -> int:
        """A cell's number; the margin around the world has numbers too."""
        radius: int = self.plan["radius"]
        return (row + radius) * self.stride + col + radius

    def cell_of(self, agent: FarmAgent) -> int:
        return self.cell_at(cell(agent.x, self.plan["width"]), cell(agent.y, self.plan["height"]))

    def living(self) -> Iterator[tuple[int, FarmAgent]]:
        return ((slot, agent) for slot, agent in enumerate(self.state.agents) if agent.state == ALIVE)

    # The phases, in the order that __init__.py gives them.

    def actions(self) -> None:
        """Those who lived when the step began act in turn; who is killed before its turn does not."""
        self.state.tick += 1
        agents = self.state.agents
        self.before = [(agent.resources, agent.health) for agent in agents]
        self.acted = [False] * len(agents)
        self.lived += len(self.indexed)
        self.state.lived += len(self.indexed)
        if self.ledger:
            self.ledger.open()
        for slot in self.indexed:
            if agents[slot].state == ALIVE:
                self.act(slot)
                self.live(agents[slot])

    def act(self, slot: int) -> None:
        action = self.chosen[slot]
        self.effect = NO_EFFECT
        failure = ACTIONS[action](self, slot) if 0 <= action < len(ACTIONS) else "unknown"
        self.acted[slot] = action != PASS and not failure
        if self.ledger:
            self.ledger.act(slot, action, failure)
        self.count(f"failed.{failure}" if failure else NAMES[action])

    def live(self, agent: FarmAgent) -> None:
        """Eat, and starve after too many steps with nothing to eat."""
        agent.resources = max(f32(agent.resources - self.consumption), 0.0)
        agent.hunger = agent.hunger + 1 if agent.resources == 0 else 0
        if agent.hunger >= self.plan["hunger_limit"]:
            die(self, agent, "starved")

    def rewards(self) -> None:
        """Reward the agents that lived when the step began."""
        out = self.out["rewards"]
        out[...] = 0
        for slot in self.indexed:
            agent, (resources, health) = self.state.agents[slot], self.before[slot]
            reward = f32(self.weight("resources") * f32(agent.resources - resources))
            reward = f32(reward + f32(self.weight("health") * f32(agent.health - health)))
            reward = f32(reward + self.weight("alive" if agent.state == ALIVE else "death"))
            if self.acted[slot]:
                reward = f32(reward + self.weight("action"))
            agent.total = f32(agent.total + reward)
            out[slot] = reward

    def weight(self, name: str) -> float:
        return f32(self.plan[f"reward_{name}"])

    def environment(self) -> None:
        """Regrowth, then the population as it is now, then fields and the end of the episode."""
        self.regrow()
        for slot, agent in enumerate(self.state.agents):
            self.out["died"][slot] = agent.state == DYING
            if agent.state == DYING:
                if self.ledger:
                    self.ledger.bury(slot)
                self.bury(slot)
            elif agent.state == ALIVE:
                agent.x, agent.y = agent.to_x, agent.to_y
                agent.age += 1
                agent.defending = max(agent.defending - 1, 0)
        self.update_index()
        if self.ledger:
            self.ledger.close()
        for k, values in enumerate(self.state.fields):
            faded = ((at, f32(value * DECAY[k])) for at, value in values.items())
            self.state.fields[k] = {at: value for at, value in faded if value >= FAINT}
        self.show_agents()
        self.show_census()
        extinct, limit = not self.indexed, self.plan["max_steps"]
        self.out["terminals"][...] = extinct
        self.out["truncations"][...] = not extinct and 0 < limit <= self.state.tick
        if extinct:
            self.count("extinction")

    def regrow(self) -> None:
        draws, chance = self.draws, self.plan["regrowth_chance"]
        for k, node in enumerate(self.state.nodes):
            if node.amount < self.node_cap and draws.word(LANE_NODES + k) >> 32 < chance:
                node.amount = min(f32(node.amount + self.regrowth_amount), self.node_cap)
                self.count("regrowth")

    def bury(self, slot: int) -> None:
        """Free the slot, or where the population is held begin a new life in it elsewhere, if one may be."""
        breed = self.state.agents[slot].breed
        self.state.agents[slot] = FarmAgent()
        self.out["observations"][slot] = 0
        if self.plan["held"] and self.is_barred():
            self.count("failed.barred")
        elif self.plan["held"]:
            settle(self.plan, self.state, slot, self.draws, breed)
            self.count("rebirth")

    def is_barred(self) -> bool:
        """Whether the episode has had all the agents it may have."""
        most: int = self.plan["most_lives"]
        return 0 < most <= self.state.serials

    def update_index(self) -> None:
        self.indexed = [slot for slot, _ in self.living()]
        self.count("index.rebuilds")

    def show_agents(self) -> None:
        """Who lives in which slot, and a random number for those who like to be led by chance."""
        out, draws = self.out, self.draws
        for slot, agent in enumerate(self.state.agents):
            alive = agent.state == ALIVE
            out["alive"][slot], out["breeds"][slot] = alive, agent.breed
            out["serials"][slot] = agent.serial
            out["luck"][slot] = draws.word(slot * LANES + LANE_LUCK) >> 33 if alive else 0

    def show_census(self) -> None:
        """How many live, came and went, and what is left; an episode's last stays till the next step."""
        out, state = self.out, self.state
        breeds = [0] * BREEDS
        for _, agent in self.living():
            breeds[agent.breed] += 1
        out["population"][...] = sum(breeds)
        out["systems"][...], out["independents"][...], out["controls"][...] = breeds
        out["births"][...], out["starved"][...] = state.births, state.starved
        out["killed"][...] = state.killed
        out["lives"][...] = state.serials
        out["lifetime"][...] = f32(f32(state.lived) / f32(state.serials))
        stock = 0.0
        for node in state.nodes:
            stock = f32(stock + node.amount)
        out["stock"][...] = stock

    def perception(self) -> None:
        rows = self.out["observations"]
        if not self.plan["perception"]:
            for slot, agent in self.living():
                rows[slot] = body(self, agent)
            return
        side = 2 * self.plan["radius"] + 1
        windows = rows.reshape(len(rows), -1, side, side)
        shown, there = planes(self, self.still), standing(self)
        for slot, _ in self.living():
            look(self, slot, shown, there, windows[slot])

    # What the batch asks of every twin.

    def count(self, name: str) -> None:
        self.counters[name] = self.counters.get(name, 0) + 1

    def picture(self) -> NDArray[np.uint8]:
        return picture(self)

    def digest(self) -> int:
        state = self.state
        h = mix(state.episode_seed, state.tick, state.serials, state.births, state.starved, state.killed)
        for slot, agent in enumerate(state.agents):
            if agent.state != FREE:
                h = mix(h, slot, *words(agent))
        for node in state.nodes:
            h = mix(h, bits(node.x, node.y), bits(node.amount, 0.0))
        for values in state.fields:
            for at, value in sorted(values.items()):
                h = mix(h, at, bits(value, 0.0))
        return h

    def save(self) -> bytes:
        nodes = [FoodNode(node.x, node.y, node.amount) for node in self.state.nodes]
        return json.dumps(asdict(replace(self.state, nodes=nodes))).encode()

    def load(self, saved: bytes) -> None:
        row = json.loads(saved)
        row["agents"] = [FarmAgent(**agent) for agent in row["agents"]]
        row["nodes"] = [FoodNode(**node) for node in row["nodes"]]
        row["fields"] = [{int(at): value for at, value in values.items()} for values in row["fields"]]
        self.take(FarmState(**row))
        self.terrain = self.ground()
        self.indexed = [slot for slot, _ in self.living()]


def bits(one: float, other: float) -> int:
    """Two float32 as the 64 bits they are."""
    return int.from_bytes(pack("<ff", one, other), "little")


def words(agent: FarmAgent) -> tuple[int, ...]:
    """An agent as numbers of 64 bits, in the order that farm.h has."""
    small = agent.breed | agent.defending << 8 | agent.hunger << 16 | agent.state << 24
    return (
        bits(agent.x, agent.y),
        bits(agent.resources, agent.health),
        bits(agent.total, 0.0),
        agent.goal & 0xFFFFFFFF | agent.serial << 32,
        agent.parent & 0xFFFFFFFF | agent.generation << 32,
        agent.age | small << 32,
    )
