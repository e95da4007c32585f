"""The grid world in plain Python: its specification. grid.h must agree to the byte.

Many agents on one map of at most one object a cell. A step is nine phases in a fixed order, one method
each. Where this file and the native rules differ, this file is right.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hotloop.core.random import Draws, mix
from hotloop.core.world import Plan
from hotloop.worlds.grid.features import GLOBAL, UNUSED, Feature, Tag
from hotloop.worlds.grid.maps import Cell

DIRECTIONS = ((-1, 0), (1, 0), (0, 1), (0, -1), (-1, 1), (-1, -1), (1, 1), (1, -1))
"""(row, col) by move: north, south, east, west, then the diagonals."""

WALL = -1
"""What `objects` holds for a wall; an agent is its index."""


@dataclass(slots=True)
class Agent:
    """One agent's state."""

    row: int
    col: int
    spawn_row: int
    spawn_col: int
    last_action: int = 0
    last_reward: int = 0
    team: int = 0
    group: int = 0
    vibe: int = 0
    frozen: int = 0
    total: float = 0.0


class Grid:
    """One env of the grid world."""

    def __init__(self, plan: Plan, out: Mapping[str, Any]) -> None:
        self.plan = plan
        self.out = out
        self.height, self.width = plan["height"], plan["width"]
        self.chosen: Sequence[int] = ()
        self.counters: dict[str, int] = {}
        self.objects: dict[tuple[int, int], int] = {}
        self.agents: list[Agent] = []
        self.episode_seed = 0
        self.tick = 0
        self.wall_words: list[int] = []
        self.window = list(window_cells(plan["window"] // 2))

    def restart(self, episode_seed: int) -> None:
        self.episode_seed = episode_seed
        self.tick = 0
        self.objects = {}
        self.agents = []
        self.fill_map()
        self.wall_words = self.pack_walls()
        self.observations()

    def pack_walls(self) -> list[int]:
        """The walls as bits, 64 columns a word, row by row; walls never move, so once an episode."""
        words = []
        for row in range(self.height):
            for start in range(0, self.width, 64):
                cols = range(start, min(start + 64, self.width))
                words.append(sum(1 << (col - start) for col in cols if self.objects.get((row, col)) == WALL))
        return words

    def fill_map(self) -> None:
        """Put the map's walls and spawns, then draw free cells for the other walls and agents."""
        free = []
        for index, content in enumerate(self.plan["map"]):
            cell = divmod(index, self.width)
            if content == Cell.WALL:
                self.objects[cell] = WALL
            elif content == Cell.SPAWN and len(self.agents) < self.plan["agents"]:
                self.place_agent(cell)
            else:
                free.append(cell)
        draws = Draws(self.episode_seed, 0)
        walls = self.plan["walls"]
        for k in range(walls + self.plan["agents"] - len(self.agents)):
            j = k + draws.below(k, len(free) - k)
            free[k], free[j] = free[j], free[k]
            if k < walls:
                self.objects[free[k]] = WALL
            else:
                self.place_agent(free[k])

    def place_agent(self, cell: tuple[int, int]) -> None:
        self.objects[cell] = len(self.agents)
        self.agents.append(Agent(*cell, *cell))

    # The nine phases.

    def reset(self) -> None:
        """Rewards, success and flags to zero."""
        self.out["rewards"][...] = 0
        self.out["success"][...] = False
        self.out["terminals"][...] = False
        self.out["truncations"][...] = False

    def events(self) -> None:
        self.tick += 1

    def actions(self) -> None:
        """Let the agents act, in an order shuffled anew each step."""
        for index in self.shuffled():
            action = self.chosen[index]
            done = self.perform(index, action)
            self.out["success"][index] = done
            self.agents[index].last_action = action if done else 0

    def shuffled(self) -> list[int]:
        """Insert each agent at a random place among those before it, whose holder moves to the end."""
        draws = Draws(self.episode_seed, self.tick)
        order: list[int] = []
        for i in range(len(self.agents)):
            j = draws.below(i, i + 1)
            order.append(i)
            order[i], order[j] = order[j], i
        return order

    def perform(self, index: int, action: int) -> bool:
        """Do one agent's action, and say whether it succeeded."""
        if not 0 <= action < self.plan["num_actions"]:
            self.count("action.invalid")
            return False
        if action == 0:
            self.count("noop")
            return True
        moved = self.move(index, *DIRECTIONS[action - 1])
        self.count("move" if moved else "move.blocked")
        return moved

    def move(self, index: int, rows: int, cols: int) -> bool:
        agent = self.agents[index]
        here, there = (agent.row, agent.col), (agent.row + rows, agent.col + cols)
        inside = 0 <= there[0] < self.height and 0 <= there[1] < self.width
        if not inside or agent.frozen or there in self.objects:
            return False
        del self.objects[here]
        self.objects[there] = index
        agent.row, agent.col = there
        return True

    def on_tick(self) -> None:
        """Nothing regenerates in a world of walls."""

    def aoe(self) -> None:
        """No sources of area effects yet."""

    def collectives(self) -> None:
        """No teams yet."""

    def observations(self) -> None:
        """Write every agent's tokens: global ones, then cell by cell, what does not fit is dropped."""
        limit = self.plan["tokens"]
        for index, agent in enumerate(self.agents):
            tokens = [*self.global_tokens(agent), *self.window_tokens(agent)]
            kept = tokens[:limit]
            self.count("tokens", len(kept))
            self.count("tokens.dropped", len(tokens) - len(kept))
            row = [byte for token in kept for byte in token] + [UNUSED] * 3 * (limit - len(kept))
            self.out["observations"][index] = np.array(row, np.uint8).reshape(limit, 3)

    def rewards(self) -> None:
        self.out["episode_length"][...] = self.tick

    def truncation(self) -> None:
        limit = self.plan["max_steps"]
        self.out["truncations"][...] = limit != 0 and self.tick >= limit

    # Tokens: (location, feature, value).

    def global_tokens(self, agent: Agent) -> Iterator[tuple[int, int, int]]:
        limit = self.plan["max_steps"]
        yield GLOBAL, Feature.COMPLETION, min(255, self.tick * 255 // limit) if limit else 0
        yield GLOBAL, Feature.LAST_ACTION, agent.last_action
        yield GLOBAL, Feature.LAST_REWARD, agent.last_reward
        east, south = agent.col - agent.spawn_col, agent.row - agent.spawn_row
        if east:
            yield GLOBAL, Feature.EAST if east > 0 else Feature.WEST, abs(east)
        if south:
            yield GLOBAL, Feature.SOUTH if south > 0 else Feature.NORTH, abs(south)

    def window_tokens(self, agent: Agent) -> Iterator[tuple[int, int, int]]:
        objects = self.objects
        for rows, cols, location in self.window:
            found = objects.get((agent.row + rows, agent.col + cols))
            if found is not None:
                for feature, value in self.object_tokens(found):
                    yield location, feature, value

    def object_tokens(self, found: int) -> Iterator[tuple[int, int]]:
        if found == WALL:
            yield Feature.TAG, Tag.WALL
            return
        agent = self.agents[found]
        if agent.team:
            yield Feature.TEAM, agent.team
        yield Feature.TAG, Tag.AGENT
        if agent.vibe:
            yield Feature.VIBE, agent.vibe
        yield Feature.GROUP, agent.group
        yield Feature.FROZEN, min(agent.frozen, 255)
        yield Feature.AGENT_ID, found & 0xFF

    # What the batch asks of every twin.

    def count(self, name: str, by: int = 1) -> None:
        self.counters[name] = self.counters.get(name, 0) + by

    def digest(self) -> int:
        words = [self.episode_seed, self.tick, *self.wall_words]
        for a in self.agents:
            places = (a.row, a.col, a.spawn_row, a.spawn_col, a.last_action, a.last_reward, a.team, a.group)
            words.append(int.from_bytes(bytes(places), "little"))
            words.append(a.vibe | a.frozen << 8 | int(np.float32(a.total).view(np.uint32)) << 32)
        return mix(*words)

    def save(self) -> bytes:
        walls = [cell for cell, found in self.objects.items() if found == WALL]
        agents = [asdict(agent) for agent in self.agents]
        state = {"episode_seed": self.episode_seed, "tick": self.tick, "walls": walls, "agents": agents}
        return json.dumps(state).encode()

    def load(self, saved: bytes) -> None:
        state = json.loads(saved)
        self.episode_seed, self.tick = state["episode_seed"], state["tick"]
        self.agents = [Agent(**agent) for agent in state["agents"]]
        self.objects = dict.fromkeys(map(tuple, state["walls"]), WALL)
        self.wall_words = self.pack_walls()
        self.objects |= {(agent.row, agent.col): index for index, agent in enumerate(self.agents)}


def window_cells(radius: int) -> Iterator[tuple[int, int, int]]:
    """Yield (row, col, location) of a window's cells in token order.

    By growing Manhattan distance; at one distance rows from -d to +d, in each the left column first.
    """
    for distance in range(2 * radius + 1):
        for row in range(-distance, distance + 1):
            reach = distance - abs(row)
            for col in (-reach, reach) if reach else (0,):
                if abs(row) <= radius and abs(col) <= radius:
                    yield row, col, (row + radius) * 16 + col + radius
