"""The scripted teacher of the grid world: its specification. teacher.h, sight.h and atlas.h do the same.

Each agent has a mind of its own, which knows the rules and what it has seen itself. It follows a list:
charge when low, deliver what is rewarded, make it from what it holds, fetch what is missing, explore.
It plans once and keeps the plan as a field of distances, so that being pushed aside costs nothing.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.world import Plan
from hotloop.worlds.grid.briefing import Briefing, TeacherTask, Tier
from hotloop.worlds.grid.features import GLOBAL, KINDS, UNUSED, Feature
from hotloop.worlds.grid.twin import DIRECTIONS

Cell = tuple[int, int]  # (row, col) from the agent's spawn, south and east positive
AGENT_TAG, WALL_TAG = KINDS.index("agent"), KINDS.index("wall")


@dataclass(slots=True)
class SeenStation:
    """A station in view."""

    tag: int
    wait: int = 0  # Ticks until it can be used, as far as it shows
    spent: bool = False  # It has no uses left


@dataclass(slots=True)
class Sight:
    """One observation in the teacher's words."""

    here: Cell = (0, 0)
    last_action: int = 0
    vibe: int = 0
    frozen: int = 0
    inventory: dict[int, int] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)  # Every cell it is sure to have seen, whatever is in it
    walls: set[Cell] = field(default_factory=set)
    agents: set[Cell] = field(default_factory=set)
    stations: dict[Cell, SeenStation] = field(default_factory=dict)


def look(tokens: NDArray[np.uint8], radius: int) -> Sight:
    """Read an observation of shape [tokens, 3]."""
    sight = Sight()
    used = [tuple(token) for token in tokens.tolist() if token[0] != UNUSED]
    shown = {feature: value for where, feature, value in used if where == GLOBAL}
    sight.last_action = shown.get(Feature.LAST_ACTION, 0)
    south = shown.get(Feature.SOUTH, 0) - shown.get(Feature.NORTH, 0)
    east = shown.get(Feature.EAST, 0) - shown.get(Feature.WEST, 0)
    sight.here = south, east
    for where, feature, value in used:
        if where != GLOBAL:
            see(sight, (south + where // 16 - radius, east + where % 16 - radius), feature, value)
    sight.agents.discard(sight.here)
    # Up to which Manhattan distance nothing can be missing: a full observation may have dropped some.
    clear = 2 * radius
    if len(used) == len(tokens):
        last = used[-1][0]
        clear = -1 if last == GLOBAL else abs(last // 16 - radius) + abs(last % 16 - radius) - 1
    span = range(-radius, radius + 1)
    sight.cells = [(south + row, east + col) for row in span for col in span if abs(row) + abs(col) <= clear]
    return sight


def see(sight: Sight, cell: Cell, feature: int, value: int) -> None:
    """Read one token of a cell; an object's tag comes before the features that are used here."""
    if feature == Feature.TAG:
        if value == AGENT_TAG:
            sight.agents.add(cell)
        elif value == WALL_TAG:
            sight.walls.add(cell)
        else:
            sight.stations[cell] = SeenStation(value)
    elif station := sight.stations.get(cell):
        if feature in (Feature.COOLDOWN, Feature.CLIPPED):
            station.wait = max(station.wait, value)
        elif feature == Feature.USES:
            station.spent = value == 0
    elif cell == sight.here:
        see_self(sight, feature, value)


def see_self(sight: Sight, feature: int, value: int) -> None:
    if feature == Feature.VIBE:
        sight.vibe = value
    elif feature == Feature.FROZEN:
        sight.frozen = value
    elif feature >= Feature.INVENTORY:
        resource, page = divmod(feature - Feature.INVENTORY, 2)
        sight.inventory[resource] = sight.inventory.get(resource, 0) + (value << 8 * page)


FRAME = 64  # Side of the square that is remembered; native code keeps a row in a word
MAX_STATIONS = 32
MAX_DISTANCE = 255
NEVER = 2**31 - 1


@dataclass(slots=True)
class KnownStation:
    """A station that was seen, and is still where it was."""

    kind: int  # Its place among the briefing's kinds
    ready: int  # The tick from which it can be used, as far as is known


@dataclass(slots=True)
class Atlas:
    """A frame of the map: when the agent's window comes to its edge, it is centred on the agent anew."""

    top: int = -(FRAME // 2)
    left: int = -(FRAME // 2)
    known: set[Cell] = field(default_factory=set)
    # Walls and stations, which never move; a subset of the known cells.
    blocked: set[Cell] = field(default_factory=set)
    # The last that were met for the first time, in that order.
    stations: dict[Cell, KnownStation] = field(default_factory=dict)

    def frames(self, cell: Cell) -> bool:
        return 0 <= cell[0] - self.top < FRAME and 0 <= cell[1] - self.left < FRAME

    def centre(self, here: Cell, radius: int) -> bool:
        """Keep the window and a cell around it in the frame; say whether that moved it.

        What then lies outside is forgotten.
        """
        corners = ((here[0] + side, here[1] + side) for side in (-radius - 1, radius + 1))
        if all(self.frames(corner) for corner in corners):
            return False
        self.top, self.left = here[0] - FRAME // 2, here[1] - FRAME // 2
        self.known = {cell for cell in self.known if self.frames(cell)}
        self.blocked = {cell for cell in self.blocked if self.frames(cell)}
        return True

    def remember(self, sight: Sight, briefing: Briefing, tick: int) -> None:
        """Add what is in view."""
        self.known.update(sight.cells, sight.walls, sight.stations)
        self.blocked.update(sight.walls, sight.stations)
        for cell, seen in sight.stations.items():
            if seen.tag in briefing.tags:
                station = self.stations.get(cell) or self.meet(cell, briefing.tags.index(seen.tag))
                station.ready = NEVER if seen.spent else max(station.ready, tick + seen.wait)

    def meet(self, cell: Cell, kind: int) -> KnownStation:
        if len(self.stations) == MAX_STATIONS:
            del self.stations[next(iter(self.stations))]
        return self.stations.setdefault(cell, KnownStation(kind, 0))

    def block(self, cell: Cell) -> None:
        """Take a cell for a wall."""
        if self.frames(cell):
            self.known.add(cell)
            self.blocked.add(cell)


# Each cell's distance from the nearest goal, over cells known to be free; up to that of the agent.
Field = dict[Cell, int]


def flood(goals: Iterable[Cell], free: Collection[Cell], here: Cell, steps: tuple[Cell, ...]) -> Field | None:
    """Search breadth first from the goals until the agent is reached; None where it is not."""
    field_: Field = dict.fromkeys(goals, 0)
    front = list(field_)
    for distance in range(1, MAX_DISTANCE + 1):
        front = [cell for cell in neighbours(front, steps) if cell in free and cell not in field_]
        field_ |= dict.fromkeys(front, distance)
        if here in field_ or not front:
            break
    return field_ if here in field_ else None


def neighbours(cells: Iterable[Cell], steps: tuple[Cell, ...]) -> set[Cell]:
    return {(row + rows, col + cols) for row, col in cells for rows, cols in steps}


NOOP = 0
Wishes = frozenset[int]  # The tasks of the briefing that the agent could do now, by their places


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A plan: where to, and for how long it holds."""

    wishes: Wishes
    distance: Field | None  # None where there is no way to anything
    tier: Tier | None  # None is to explore
    expires: int


class Teacher:
    """The teacher of one env: a mind for each of its agents."""

    def __init__(self, plan: Plan, seen: Mapping[str, Any]) -> None:
        self.plan, self.seen = plan, seen
        self.minds: list[Mind] = []

    def restart(self) -> None:
        self.minds = [Mind(self.plan, index) for index in range(self.plan["agents"])]

    def choose(self) -> Sequence[int]:
        return [mind.choose(look(self.seen["observations"][mind.index], mind.radius)) for mind in self.minds]


@dataclass(slots=True)
class Mind:
    """What one agent knows, wants and has just tried."""

    plan: Plan
    index: int
    tick: int = 0
    atlas: Atlas = field(default_factory=Atlas)
    route: Route | None = None
    charging: bool = False
    stocked: bool = False  # It has fetched a whole batch and now makes what it can from it
    waited: int = 0  # Ticks beside a station without the helper it needs
    alone_until: int = 0  # Up to this tick it counts on no helpers
    aimed: Cell | None = None  # The cell that a move chosen last leads to
    missed: Cell | None = None  # The free cell that the last step towards failed
    failures: int = 0  # How often in a row that was so
    stuck: int = 0  # How often in a row another agent stood in the way

    @property
    def briefing(self) -> Briefing:
        briefing: Briefing = self.plan["briefing"]
        return briefing

    @property
    def radius(self) -> int:
        radius: int = self.plan["window"] // 2
        return radius

    @property
    def steps(self) -> tuple[Cell, ...]:
        return DIRECTIONS[: self.plan["directions"]]

    def choose(self, sight: Sight) -> int:
        """Look, learn from the last action, remember, and act on the plan."""
        self.tick += 1
        if self.atlas.centre(sight.here, self.radius):
            self.route = None
        self.atlas.remember(sight, self.briefing, self.tick)
        self.learn(sight)
        self.aimed = None
        return NOOP if sight.frozen else self.act(sight)

    def learn(self, sight: Sight) -> None:
        """A move that was asked for and reads as none has failed: a refusal, or perhaps no way at all."""
        aimed, habits = self.aimed, self.briefing.habits
        if aimed is None or sight.last_action != NOOP or aimed in sight.agents:
            self.missed, self.failures = None, 0
        elif aimed in self.atlas.stations:
            station = self.atlas.stations[aimed]
            station.ready = max(station.ready, self.tick + habits.backoff)
        else:
            self.failures = self.failures + 1 if aimed == self.missed else 1
            self.missed = aimed
            if self.failures >= habits.failures:
                self.atlas.block(aimed)

    def act(self, sight: Sight) -> int:
        wishes = self.wishes(sight)
        if self.route is None or not self.holds(self.route, wishes, sight):
            self.route = self.find_route(wishes, sight)
        if self.route.distance is None:
            # Step anywhere: there is nothing to do here, or no way to it.
            return self.first_step({turn: self.cell_beside(sight, turn) for turn in self.turns()}, sight)
        return self.follow(self.route, self.route.distance, sight)

    # What it wants.

    def wishes(self, sight: Sight) -> Wishes:
        """What it could do now; it charges when low, and makes nothing before it has fetched a batch."""
        if self.briefing.fuel >= 0:
            fuel = sight.inventory.get(self.briefing.fuel, 0)
            self.charging = fuel < self.briefing.low * (2 if self.charging else 1)
        able = {k: task.tier for k, task in enumerate(self.briefing.tasks) if self.able(task, sight)}
        if Tier.MAKE not in able.values():
            self.stocked = False
        elif Tier.FETCH not in able.values():
            self.stocked = True
        unwanted = {Tier.CHARGE: not self.charging, Tier.MAKE: not self.stocked}
        return frozenset(k for k, tier in able.items() if not unwanted.get(tier))

    def able(self, task: TeacherTask, sight: Sight) -> bool:
        """Whether it holds what a task takes, has a use for what it gives, and may count on helpers."""
        held = [sight.inventory.get(resource, 0) for resource in range(len(task.takes))]
        has_goods = all(have >= need for have, need in zip(held, task.takes, strict=True))
        rows = zip(held, task.gives, self.briefing.limits, strict=True)
        has_room = task.tier == Tier.DELIVER or any(gives and have < most for have, gives, most in rows)
        return has_goods and has_room and (task.neighbours == 0 or self.tick >= self.alone_until)

    # Where it goes.

    def holds(self, route: Route, wishes: Wishes, sight: Sight) -> bool:
        return (
            route.wishes == wishes
            and self.tick < route.expires
            and (route.distance is None or sight.here in route.distance)
            and self.stuck < self.briefing.habits.stuck
        )

    def find_route(self, wishes: Wishes, sight: Sight) -> Route:
        """To the nearest station of the first tier that has one, else to the nearest unknown cell."""
        habits = self.briefing.habits
        free = self.atlas.known - self.atlas.blocked
        if self.stuck >= habits.stuck:
            free -= sight.agents
        self.stuck = 0
        expires = self.tick + habits.stale
        for tier in Tier:
            goals = self.goals({task.kind for task in self.tasks(wishes, tier)})
            if goals and (distance := flood(goals, free, sight.here, self.steps)):
                return Route(wishes=wishes, distance=distance, tier=tier, expires=expires)
        distance = flood(self.unknown(free), free, sight.here, self.steps)
        if distance:
            expires = self.tick + min(distance[sight.here], habits.stride)
        return Route(wishes=wishes, distance=distance, tier=None, expires=expires)

    def tasks(self, wishes: Wishes, tier: Tier | None) -> list[TeacherTask]:
        return [task for k, task in enumerate(self.briefing.tasks) if k in wishes and task.tier == tier]

    def goals(self, kinds: set[int]) -> list[Cell]:
        """The stations of these kinds in the frame that can be used soon."""
        soon = self.tick + self.briefing.habits.soon
        return [
            cell
            for cell, station in self.atlas.stations.items()
            if station.kind in kinds and station.ready <= soon and self.atlas.frames(cell)
        ]

    def unknown(self, free: set[Cell]) -> list[Cell]:
        """The unknown cells of the frame that a step from a free one leads to."""
        beside = neighbours(free, self.steps)
        return [cell for cell in beside if self.atlas.frames(cell) and cell not in self.atlas.known]

    # How it gets there.

    def turns(self) -> list[int]:
        """The directions in the order it tries them, which is another one for each agent and now and then."""
        first, count = self.index + self.tick // self.briefing.habits.whim, len(self.steps)
        return [(first + turn) % count for turn in range(count)]

    def follow(self, route: Route, distance: Field, sight: Sight) -> int:
        """Use the station if it is beside; else step nearer; else, every other time, aside."""
        here = distance[sight.here]
        beside = {turn: self.cell_beside(sight, turn) for turn in self.turns()}
        nearer = {turn: cell for turn, cell in beside.items() if distance.get(cell) == here - 1}
        aside = {turn: cell for turn, cell in beside.items() if distance.get(cell) == here}
        tasks = self.tasks(route.wishes, route.tier)
        for turn, cell in nearer.items():
            if station := self.atlas.stations.get(cell):
                for task in tasks:
                    if task.kind == station.kind:
                        return self.arrive(task, sight, turn)
        if step := self.first_step(nearer, sight):
            self.stuck = 0
            return step
        self.stuck += 1
        return NOOP if self.stuck % 2 else self.first_step(aside, sight)

    def first_step(self, cells: Mapping[int, Cell], sight: Sight) -> int:
        """Return the step to the first empty cell; 0 if there is none."""
        for turn, cell in cells.items():
            if cell not in self.atlas.blocked and cell not in sight.agents:
                return self.walk(sight, turn)
        return NOOP

    def cell_beside(self, sight: Sight, turn: int) -> Cell:
        return sight.here[0] + DIRECTIONS[turn][0], sight.here[1] + DIRECTIONS[turn][1]

    def walk(self, sight: Sight, turn: int) -> int:
        """Step, if there is fuel for it."""
        if self.briefing.fuel >= 0 and sight.inventory.get(self.briefing.fuel, 0) < self.briefing.price:
            return NOOP
        return self.move(sight, turn)

    def move(self, sight: Sight, turn: int) -> int:
        self.aimed = self.cell_beside(sight, turn)
        return 1 + turn

    # What it does there.

    def arrive(self, task: TeacherTask, sight: Sight, turn: int) -> int:
        """Use the station beside; wait for it to be ready, and for helpers while patience lasts."""
        self.stuck = 0
        cell = self.cell_beside(sight, turn)
        if self.atlas.stations[cell].ready > self.tick:
            return NOOP
        if sum(other in sight.agents for other in neighbours([cell], DIRECTIONS)) >= task.neighbours:
            self.waited = 0
            return self.use(task, sight, turn)
        self.waited += 1
        if self.waited > self.briefing.habits.patience:
            self.waited = 0
            self.alone_until = self.tick + self.briefing.habits.sulk
        return NOOP

    def use(self, task: TeacherTask, sight: Sight, turn: int) -> int:
        if task.vibe not in (0, sight.vibe):
            return 1 + len(self.steps) + task.vibe
        return self.move(sight, turn)
