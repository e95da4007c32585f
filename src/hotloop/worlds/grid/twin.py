"""The grid world in plain Python: its specification. grid.h must agree to the byte.

Many agents on one map of at most one object a cell. A step is nine phases in a fixed order, one method
each. Where this file and the native rules differ, this file is right.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.exact.maths import f32
from hotloop.core.exact.random import Draws, mix
from hotloop.core.world import Plan
from hotloop.worlds.grid.encounters import meet, use
from hotloop.worlds.grid.events import fire
from hotloop.worlds.grid.features import KINDS, UNUSED
from hotloop.worlds.grid.maps import Cell
from hotloop.worlds.grid.objects import WALL, Agent, Station
from hotloop.worlds.grid.rules import STATS, Area, Rules
from hotloop.worlds.grid.tokens import global_tokens, object_tokens, window_cells

DIRECTIONS = ((-1, 0), (1, 0), (0, 1), (0, -1), (-1, 1), (-1, -1), (1, 1), (1, -1))
"""(row, col) by move: north, south, east, west, then the diagonals."""


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
        self.fill_map()
        self.wall_words = self.pack_walls()
        self.observations()

    def fill_map(self) -> None:
        """Put what the map shows, then draw free cells for the other walls, stations and agents."""
        free = []
        for index, content in enumerate(self.plan["map"]):
            cell = divmod(index, self.width)
            if content == Cell.WALL:
                self.objects[cell] = WALL
            elif content >= Cell.STATION:
                self.place_station(cell, content - Cell.STATION)
            elif content == Cell.SPAWN and len(self.agents) < self.plan["agents"]:
                self.place_agent(cell)
            else:
                free.append(cell)
        draws = Draws(self.episode_seed, 0)
        walls, kinds = self.plan["walls"], self.plan["placed"]
        for k in range(walls + len(kinds) + self.plan["agents"] - len(self.agents)):
            j = k + draws.below(k, len(free) - k)
            free[k], free[j] = free[j], free[k]
            if k < walls:
                self.objects[free[k]] = WALL
            elif k < walls + len(kinds):
                self.place_station(free[k], kinds[k - walls])
            else:
                self.place_agent(free[k])

    def place_agent(self, cell: tuple[int, int]) -> None:
        index, teams = len(self.agents), self.plan["teams"]
        self.objects[cell] = index
        inventory = [self.rules.start.get(name, 0) for name in self.rules.resources]
        team = 1 + index % teams if teams else 0
        group = index % teams if teams else 0
        agent = Agent(*cell, *cell, *cell, team, group, inventory, [], [0, 0])
        agent.counted = [self.value_of(agent, reward) for reward in range(len(self.rules.rewards))]
        self.agents.append(agent)

    def place_station(self, cell: tuple[int, int], kind: int) -> None:
        self.objects[cell] = self.plan["agents"] + len(self.stations)
        uses = self.recipes[kind][0].uses
        self.stations.append(Station(kind, *cell, uses, [0] * len(self.rules.resources)))

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
        order = self.shuffled()
        first_vibe = 1 + self.plan["directions"]
        for vibes in (True, False):
            for index in order:
                action = self.chosen[index]
                if (first_vibe <= action < self.plan["num_actions"]) == vibes:
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
                    self.add(agent, change.resource, change.amount)
            agent.frozen = max(0, agent.frozen - 1)
        for station in self.stations:
            station.cooldown = max(0, station.cooldown - 1)
            station.clipped = max(0, station.clipped - 1)

    def add(self, agent: Agent, resource: str, amount: int) -> None:
        """Change what an agent holds, within 0 and its cap; what is over the cap already stays."""
        index = self.rules.resources.index(resource)
        held = agent.inventory[index]
        agent.inventory[index] = max(0, min(held + amount, max(held, self.rules.cap(resource))))

    def aoe(self) -> None:
        """Areas of stations by their index, then those agents carry; entering and leaving are seen."""
        inside = [False] * len(self.agents)
        for station in self.stations:
            area = self.recipes[station.kind][0].area
            if area:
                self.radiate(area, station, inside)
        for agent in self.agents:
            if self.rules.mobile and agent.vibe == self.rules.mobile_vibe:
                self.radiate(self.rules.mobile, agent, inside)
        for agent, now in zip(self.agents, inside, strict=True):
            self.count("area.enter", now and not agent.inside)
            self.count("area.leave", agent.inside and not now)
            agent.inside = now

    def radiate(self, area: Area, source: Agent | Station, inside: list[bool]) -> None:
        """Change what agents in the square hold, row by row; a carrier is not in its own area."""
        reach = range(-area.radius, area.radius + 1)
        for rows in reach:
            for cols in reach:
                found = self.objects.get((source.row + rows, source.col + cols), WALL)
                if 0 <= found < len(self.agents) and self.agents[found] is not source:
                    agent = self.agents[found]
                    friends = agent.team == source.team != 0
                    enemies = agent.team != source.team and 0 not in (agent.team, source.team)
                    if {"all": True, "friends": friends, "enemies": enemies}[area.reach]:
                        self.add(agent, area.resource, area.amount)
                        inside[found] = True

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
        for index, agent in enumerate(self.agents):
            tokens = [*global_tokens(self, agent), *self.window_tokens(agent)]
            kept = tokens[:limit]
            self.count("tokens", len(kept))
            self.count("tokens.dropped", len(tokens) - len(kept))
            row = [byte for token in kept for byte in token] + [UNUSED] * 3 * (limit - len(kept))
            self.out["observations"][index] = np.array(row, np.uint8).reshape(limit, 3)

    def window_tokens(self, agent: Agent) -> Iterator[tuple[int, int, int]]:
        for rows, cols, location in self.window:
            found = self.objects.get((agent.row + rows, agent.col + cols))
            if found is not None:
                for feature, value in object_tokens(self, found):
                    yield location, feature, value

    def rewards(self) -> None:
        """Weigh what changed since the last tick."""
        self.out["episode_length"][...] = self.tick
        for index, agent in enumerate(self.agents):
            total = 0.0
            for k, reward in enumerate(self.rules.rewards):
                value = self.value_of(agent, k)
                total = f32(total + f32(f32(reward.weight) * (value - agent.counted[k])))
                agent.counted[k] = value
            agent.total = f32(agent.total + total)
            agent.last_reward = max(-128, min(127, math.floor(total * 100.0 + 0.5))) & 0xFF
            self.out["rewards"][index] = total
            self.out["episode_return"][index] = agent.total

    def value_of(self, agent: Agent, reward: int) -> int:
        """What a reward looks at, up to its cap."""
        of, cap = self.rules.rewards[reward].of, self.rules.rewards[reward].cap
        if of in self.rules.resources:
            return min(cap, agent.inventory[self.rules.resources.index(of)])
        return min(cap, agent.stats[STATS.index(of)])

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

    def pack_walls(self) -> list[int]:
        """The walls as bits, 64 columns a word, row by row; walls never move, so once an episode."""
        words = []
        for row in range(self.height):
            for start in range(0, self.width, 64):
                cols = range(start, min(start + 64, self.width))
                words.append(sum(1 << (col - start) for col in cols if self.objects.get((row, col)) == WALL))
        return words

    def picture(self) -> NDArray[np.uint8]:
        """What stands where, for people: (tag + 1, team, ticks frozen or clipped, vibe) a cell."""
        cells = np.zeros((self.height, self.width, 4), np.uint8)
        for cell, found in self.objects.items():
            if found == WALL:
                cells[cell] = KINDS.index("wall") + 1, 0, 0, 0
        for agent in self.agents:
            cells[agent.row, agent.col] = 1, agent.team, min(agent.frozen, 255), agent.vibe
        for station in self.stations:
            tag = self.rules.tag(self.rules.kinds[station.kind])
            cells[station.row, station.col] = tag + 1, station.team, min(station.clipped, 255), 0
        return cells

    def digest(self) -> int:
        words = [self.episode_seed, self.tick, *self.wall_words, *self.held, *self.spawned]
        for a in self.agents:
            places = (a.row, a.col, a.spawn_row, a.spawn_col, a.came_row, a.came_col)
            words.append(int.from_bytes(bytes((*places, a.last_action, a.last_reward)), "little"))
            words.append(a.team | a.group << 8 | a.vibe << 16 | a.inside << 24 | a.frozen << 32)
            words.append(int(np.float32(a.total).view(np.uint32)))
            words += a.inventory + a.counted + a.stats
        for s in self.stations:
            words.append(int.from_bytes(bytes((s.kind, s.row, s.col, s.team)), "little"))
            words.append(s.cooldown | s.clipped << 32)
            words += [s.uses, *s.inventory]
        return mix(*words)

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
        self.wall_words = self.pack_walls()
        things: list[Agent | Station] = [*self.agents, *self.stations]
        self.objects |= {(thing.row, thing.col): index for index, thing in enumerate(things)}
