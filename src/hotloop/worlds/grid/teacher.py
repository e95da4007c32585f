"""The scripted teacher of the grid world: its specification. teacher.h chooses the same actions.

Each agent has a mind of its own, which knows the rules and what it has seen itself. It follows a list:
charge when low, deliver what is rewarded, make it from what it holds, fetch what is missing, explore.
It plans once and keeps the plan as a field of distances, so that being pushed aside costs nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hotloop.core.world import Plan
from hotloop.worlds.grid.atlas import Atlas, Field, flood, neighbours
from hotloop.worlds.grid.briefing import Briefing, Task, Tier
from hotloop.worlds.grid.sight import Cell, Sight, look
from hotloop.worlds.grid.twin import DIRECTIONS

NOOP = 0
Wishes = frozenset[int]
"""The tasks of the briefing that the agent could do now, by their places."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A plan: where to, and for how long it holds."""

    wishes: Wishes
    distance: Field | None
    """None where there is no way to anything."""
    tier: Tier | None
    """None is to explore."""
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
    stocked: bool = False
    """It has fetched a whole batch and now makes what it can from it."""
    waited: int = 0
    """Ticks beside a station without the helper it needs."""
    alone_until: int = 0
    """Up to this tick it counts on no helpers."""
    aimed: Cell | None = None
    """The cell that a move chosen last leads to."""
    missed: Cell | None = None
    """The free cell that the last step towards failed."""
    failures: int = 0
    """How often in a row that was so."""
    stuck: int = 0
    """How often in a row somebody stood in the way."""

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
            return self.wander(sight)
        return self.follow(self.route, self.route.distance, sight)

    # What it wants.

    def wishes(self, sight: Sight) -> Wishes:
        """What it could do now; it charges when low, and makes nothing before it has fetched a batch."""
        self.feel_fuel(sight)
        able = {k: task.tier for k, task in enumerate(self.briefing.tasks) if self.able(task, sight)}
        if Tier.MAKE not in able.values():
            self.stocked = False
        elif Tier.FETCH not in able.values():
            self.stocked = True
        unwanted = {Tier.CHARGE: not self.charging, Tier.MAKE: not self.stocked}
        return frozenset(k for k, tier in able.items() if not unwanted.get(tier))

    def feel_fuel(self, sight: Sight) -> None:
        if self.briefing.fuel >= 0:
            fuel = sight.inventory.get(self.briefing.fuel, 0)
            self.charging = fuel < self.briefing.low * (2 if self.charging else 1)

    def able(self, task: Task, sight: Sight) -> bool:
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

    def tasks(self, wishes: Wishes, tier: Tier | None) -> list[Task]:
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
        beside = {turn: self.beside(sight, turn) for turn in self.turns()}
        nearer = {turn: cell for turn, cell in beside.items() if distance.get(cell) == here - 1}
        aside = {turn: cell for turn, cell in beside.items() if distance.get(cell) == here}
        for turn, cell in nearer.items():
            if task := self.task_at(route, cell):
                return self.arrive(task, sight, turn)
        if step := self.first_step(nearer, sight):
            self.stuck = 0
            return step
        self.stuck += 1
        return NOOP if self.stuck % 2 else self.first_step(aside, sight)

    def task_at(self, route: Route, cell: Cell) -> Task | None:
        """The task of the route that the station in a cell is there for, if one is."""
        station = self.atlas.stations.get(cell)
        tasks = self.tasks(route.wishes, route.tier)
        return next((task for task in tasks if station and task.kind == station.kind), None)

    def first_step(self, cells: Mapping[int, Cell], sight: Sight) -> int:
        """Step to the first cell nobody and nothing is in; 0 where there is none."""
        for turn, cell in cells.items():
            if cell not in self.atlas.blocked and cell not in sight.agents:
                return self.walk(sight, turn)
        return NOOP

    def beside(self, sight: Sight, turn: int) -> Cell:
        return sight.here[0] + DIRECTIONS[turn][0], sight.here[1] + DIRECTIONS[turn][1]

    def walk(self, sight: Sight, turn: int) -> int:
        """Step, if there is fuel for it."""
        if self.briefing.fuel >= 0 and sight.inventory.get(self.briefing.fuel, 0) < self.briefing.price:
            return NOOP
        return self.move(sight, turn)

    def move(self, sight: Sight, turn: int) -> int:
        self.aimed = self.beside(sight, turn)
        return 1 + turn

    def wander(self, sight: Sight) -> int:
        """Step anywhere: there is nothing to do here, or no way to it."""
        return self.first_step({turn: self.beside(sight, turn) for turn in self.turns()}, sight)

    # What it does there.

    def arrive(self, task: Task, sight: Sight, turn: int) -> int:
        """Use the station beside; wait for it to be ready, and for helpers while patience lasts."""
        self.stuck = 0
        cell = self.beside(sight, turn)
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

    def use(self, task: Task, sight: Sight, turn: int) -> int:
        if task.vibe not in (0, sight.vibe):
            return 1 + len(self.steps) + task.vibe
        return self.move(sight, turn)
