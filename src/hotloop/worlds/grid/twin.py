"""The grid world in plain Python: its specification. grid.h must agree to the byte.

Many agents on one map of at most one object a cell. A step is nine phases in a fixed order, one method
each. Where this file and the native rules differ, this file is right.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.exact_math import Draws, f32
from hotloop.core.world import Plan
from hotloop.worlds.grid.events import add, fire, meet, radiate, use, value_of
from hotloop.worlds.grid.features import UNUSED
from hotloop.worlds.grid.maps import fill_map
from hotloop.worlds.grid.observe import global_tokens, picture, window_cells, window_tokens
from hotloop.worlds.grid.rules import Rules
from hotloop.worlds.grid.state import WALL, Agent, Station, digest, pack_walls

# (row, col) by move: north, south, east, west, then the diagonals.
DIRECTIONS = ((-1, 0), (1, 0), (0, 1), (0, -1), (-1, 1), (-1, -1), (1, 1), (1, -1))


class Grid:
    """One env of the grid world."""

    def __init__(self, plan: Plan, out: Mapping[str, Any]) -> None:
        self.plan = plan
        self.rules: Rules = plan["rules"]
        self.out = out
        self.height, self.width = plan["height"], plan["width"]
        self.recipes = [[row for row in self.rules.stations if row.kind == kind] for kind in self.rules.kinds]
        self.events_by_name = {event.name: event for event in self.rules.events}
        self.window = list(window_cells(plan["window"] // 2))
        self.chosen: Sequence[int] = ()
        self.counters: dict[str, int] = {}
        self.clear()

    def clear(self) -> None:
        """An empty world."""
        self.episode_seed = self.tick = 0
        self.objects: dict[tuple[int, int], int] = {}
        self.agents: list[Agent] = []
        self.stations: list[Station] = []
        self.held = [0] * self.plan["teams"]
        self.spawned = [0] * len(self.rules.events)
        self.wall_words: list[int] = []

    def restart(self, episode_seed: int) -> None:
        self.clear()
        self.episode_seed = episode_seed
        fill_map(self)
        self.wall_words = pack_walls(self)
        self.observations()

    # The nine phases.

    def reset(self) -> None:
        """Rewards, success and flags to zero."""
        self.out["rewards"][...] = 0
        self.out["success"][...] = False
        self.out["terminals"][...] = False
        self.out["truncations"][...] = False

    def events(self) -> None:
        """The clock goes on; the events of this tick happen, in the order of their table."""
        self.tick += 1
        for event in self.rules.events:
            if event.at == self.tick or (event.every and self.tick % event.every == 0):
                fire(self, event)

    def actions(self) -> None:
        """Let the agents act in an order shuffled anew: first who changes its vibe, then all others."""
        draws = Draws(self.episode_seed, self.tick)
        order: list[int] = []
        for i in range(len(self.agents)):  # at a random place, whose holder moves to the end
            j = draws.below(i, i + 1)
            order.append(i)
            order[i], order[j] = order[j], i
        first_vibe = 1 + self.plan["directions"]
        for vibes in (True, False):
            for index in order:
                action = self.chosen[index]
                if (first_vibe <= action < self.plan["num_actions"]) == vibes:
                    done = self.perform(index, action)
                    self.out["success"][index] = done
                    self.agents[index].last_action = action if done else 0

    def perform(self, index: int, action: int) -> bool:
        """Do one agent's action, and say whether it succeeded."""
        if not 0 <= action < self.plan["num_actions"]:
            return self.miss("action.invalid")
        if action == 0:
            return self.count("noop")
        if action > self.plan["directions"]:
            self.agents[index].vibe = action - self.plan["directions"] - 1
            return self.count("vibe")
        return self.move(index, *DIRECTIONS[action - 1]) or self.miss("move.blocked")

    def move(self, index: int, rows: int, cols: int) -> bool:
        """Walk, or use the station, or meet the agent that stands there."""
        agent = self.agents[index]
        there = agent.row + rows, agent.col + cols
        inside = 0 <= there[0] < self.height and 0 <= there[1] < self.width
        found = self.objects.get(there)
        if not inside or agent.frozen or found == WALL:
            return False
        if found is None:
            return self.pay_move(agent) and self.go(index, there) and self.count("move")
        if found >= len(self.agents):
            return use(self, agent, self.stations[found - len(self.agents)])
        return meet(self, index, found)

    def pay_move(self, agent: Agent) -> bool:
        if not self.rules.move_price:
            return True
        resource = self.rules.resources.index(self.rules.move_costs)
        if agent.inventory[resource] < self.rules.move_price:
            return False
        agent.inventory[resource] -= self.rules.move_price
        return True

    def go(self, index: int, there: tuple[int, int]) -> bool:
        agent = self.agents[index]
        del self.objects[agent.row, agent.col]
        self.objects[there] = index
        agent.came_row, agent.came_col = agent.row, agent.col
        agent.row, agent.col = there
        return True

    def on_tick(self) -> None:
        """Resources that come and go by themselves, then what counts down."""
        for agent in self.agents:
            for change in self.rules.changes:
                if self.tick % change.every == 0:
                    add(self, agent, change.resource, change.amount)
            agent.frozen = max(0, agent.frozen - 1)
        for station in self.stations:
            station.cooldown = max(0, station.cooldown - 1)
            station.clipped = max(0, station.clipped - 1)

    def aoe(self) -> None:
        """Areas of stations by their index, then those agents carry; entering and leaving are seen."""
        inside = [False] * len(self.agents)
        for station in self.stations:
            area = self.recipes[station.kind][0].area
            if area:
                radiate(self, area, station, inside)
        for agent in self.agents:
            if self.rules.mobile and agent.vibe == self.rules.mobile_vibe:
                radiate(self, self.rules.mobile, agent, inside)
        for agent, now in zip(self.agents, inside, strict=True):
            self.count("area.enter", now and not agent.inside)
            self.count("area.leave", agent.inside and not now)
            agent.inside = now

    def collectives(self) -> None:
        """Each team's members, the stations it holds, and for how long it held how many."""
        for team in range(self.plan["teams"]):
            stations = sum(station.team == team + 1 for station in self.stations)
            self.held[team] += stations
            self.out["team_members"][team] = sum(agent.team == team + 1 for agent in self.agents)
            self.out["team_stations"][team] = stations
            self.out["team_held"][team] = self.held[team]

    def observations(self) -> None:
        """Write every agent's tokens: global ones, then cell by cell, what does not fit is dropped."""
        limit = self.plan["tokens"]
        known: dict[int, tuple[tuple[int, int], ...]] = {}
        for index, agent in enumerate(self.agents):
            tokens = [*global_tokens(self, agent), *window_tokens(self, agent, known)]
            kept = tokens[:limit]
            self.count("tokens", len(kept))
            self.count("tokens.dropped", len(tokens) - len(kept))
            row = [byte for token in kept for byte in token] + [UNUSED] * 3 * (limit - len(kept))
            self.out["observations"][index] = np.array(row, np.uint8).reshape(limit, 3)

    def rewards(self) -> None:
        """Weigh what changed since the last tick."""
        self.out["episode_length"][...] = self.tick
        for index, agent in enumerate(self.agents):
            total = 0.0
            for k, reward in enumerate(self.rules.rewards):
                value = value_of(self, agent, k)
                total = f32(total + f32(f32(reward.weight) * (value - agent.counted[k])))
                agent.counted[k] = value
            agent.total = f32(agent.total + total)
            # The token's byte: hundredths, rounded to nearest, in -128..127.
            agent.last_reward = max(-128, min(127, math.floor(total * 100.0 + 0.5))) & 0xFF
            self.out["rewards"][index] = total
            self.out["episode_return"][index] = agent.total

    def truncation(self) -> None:
        limit = self.plan["max_steps"]
        self.out["truncations"][...] = limit != 0 and self.tick >= limit

    # What the batch asks of every twin.

    def count(self, name: str, by: int = 1) -> bool:
        """Count a mechanic, and say yes."""
        self.counters[name] = self.counters.get(name, 0) + by
        return True

    def miss(self, name: str) -> bool:
        """Count what did not work, and say no."""
        return not self.count(name)

    def picture(self) -> NDArray[np.uint8]:
        return picture(self)

    def digest(self) -> int:
        return digest(self)

    def save(self) -> bytes:
        state = {
            "episode_seed": self.episode_seed,
            "tick": self.tick,
            "held": self.held,
            "spawned": self.spawned,
            "walls": [cell for cell, found in self.objects.items() if found == WALL],
            "agents": [asdict(agent) for agent in self.agents],
            "stations": [asdict(station) for station in self.stations],
        }
        return json.dumps(state).encode()

    def load(self, saved: bytes) -> None:
        state = json.loads(saved)
        self.episode_seed, self.tick = state["episode_seed"], state["tick"]
        self.held, self.spawned = state["held"], state["spawned"]
        self.agents = [Agent(**agent) for agent in state["agents"]]
        self.stations = [Station(**station) for station in state["stations"]]
        self.objects = dict.fromkeys(map(tuple, state["walls"]), WALL)
        self.wall_words = pack_walls(self)
        things: list[Agent | Station] = [*self.agents, *self.stations]
        self.objects |= {(thing.row, thing.col): index for index, thing in enumerate(things)}
