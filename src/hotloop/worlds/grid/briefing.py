"""What the teacher is told before it plays: which stations are worth using, in what order, and its habits.

Everything is worked out from the rules once; the teacher, here and in native code, reads the result.
"""

from dataclasses import astuple, dataclass, field
from enum import IntEnum

from hotloop.worlds.grid.rules import Recipe, Rules

MAX_KINDS = 32  # Kinds of station the teacher can tell apart; a table's further kinds it only walks around


class Tier(IntEnum):
    """What a task is for; the lower comes first."""

    CHARGE = 0
    DELIVER = 1
    MAKE = 2
    FETCH = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherTask:
    """One row of the station table as something to do."""

    kind: int  # Its place among the briefing's kinds
    tier: Tier
    vibe: int
    neighbours: int
    takes: tuple[int, ...]  # By resource
    gives: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """The teacher's measures, in ticks unless they say otherwise."""

    patience: int = 30  # How long it waits beside a station for a helper
    sulk: int = 40  # How long it then does without helpers
    soon: int = 10  # A station ready within this time is worth going to
    stale: int = 16  # A plan older than this is made anew
    stride: int = 6  # The same, for a plan to explore
    backoff: int = 8  # How long it leaves a station alone that refused it
    stuck: int = 3  # Steps in one place, wanting to walk, after which it plans around the agents it sees
    failures: int = 4  # Failed steps towards one free cell after which it takes it for a wall
    whim: int = 8  # How long it prefers one direction to the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """All the teacher knows of the rules."""

    fuel: int  # The resource that moving costs; -1 where it is free
    price: int
    low: int  # With less fuel than this it goes to charge
    limits: tuple[int, ...]  # By resource: how much of it is worth holding; 0 where it is good for nothing
    tags: tuple[int, ...]  # By kind: the value of its tag token
    tasks: tuple[TeacherTask, ...]
    habits: Habits = field(default_factory=Habits)

    def flatten(self) -> dict[str, list[int]]:
        """Turn it into lists of numbers for native code, a task as a row of 4 + 2 per resource."""
        rows = [(t.kind, t.tier, t.vibe, t.neighbours, *t.takes, *t.gives) for t in self.tasks]
        return {
            "teacher.fuel": [self.fuel, self.price, self.low],
            "teacher.limits": list(self.limits),
            "teacher.tags": list(self.tags),
            "teacher.tasks": [int(number) for row in rows for number in row],
            "teacher.habits": list(astuple(self.habits)),
        }


BATCH = 2  # How many times a recipe's goods are fetched before it is made
REACH = 15  # Moves the teacher wants fuel for when it sets out to charge


def brief(rules: Rules) -> Briefing:
    """Work out what leads to reward: what is delivered, what is made for it, what is fetched to make it."""
    useful = [(row, tier) for row in rules.stations if (tier := tier_of(rules, row)) is not None]
    kinds = list(dict.fromkeys(row.kind for row, _ in useful))[:MAX_KINDS]
    tasks = [task(rules, kinds, row, tier) for row, tier in useful if row.kind in kinds]
    fuel = rules.resources.index(rules.move_costs) if rules.move_price else -1
    room = rules.cap(rules.move_costs) if rules.move_price else 0
    return Briefing(
        fuel=fuel,
        price=rules.move_price,
        low=min(REACH * rules.move_price, room // 2),
        limits=tuple(limit(rules, name) for name in rules.resources),
        tags=tuple(rules.tag(kind) for kind in kinds),
        tasks=tuple(sorted(tasks, key=lambda each: each.tier)),
    )


def task(rules: Rules, kinds: list[str], row: Recipe, tier: Tier) -> TeacherTask:
    return TeacherTask(
        kind=kinds.index(row.kind),
        tier=tier,
        vibe=row.vibe,
        neighbours=row.neighbours,
        takes=tuple(row.takes.get(name, 0) for name in rules.resources),
        gives=tuple(row.gives.get(name, 0) for name in rules.resources),
    )


def tier_of(rules: Rules, row: Recipe) -> Tier | None:
    """What a row of the station table is good for; None where it leads to no reward."""
    if rules.move_price and rules.move_costs in row.gives and not row.takes:
        return Tier.CHARGE
    if delivers(rules, row):
        return Tier.DELIVER
    goods = goals(rules)
    if goods & set(row.gives) and set(row.takes) - {rules.move_costs}:
        return Tier.MAKE
    if (goods | ingredients(rules)) & set(row.gives):
        return Tier.FETCH
    return None


def delivers(rules: Rules, row: Recipe) -> bool:
    rewarded = any(reward.of == "deposit" and reward.weight > 0 for reward in rules.rewards)
    return rewarded and rules.first(row.kind).stores and bool(row.takes)


def goals(rules: Rules) -> set[str]:
    """The resources that are rewarded, or delivered for a reward."""
    rewarded = {reward.of for reward in rules.rewards if reward.weight > 0}
    delivered = {name for row in rules.stations if delivers(rules, row) for name in row.takes}
    return (rewarded | delivered) & set(rules.resources) - {rules.move_costs}


def ingredients(rules: Rules) -> set[str]:
    """What goes into the goals, and into that, and so on."""
    found: set[str] = set()
    wanted = goals(rules)
    while wanted:
        rows = [row for row in rules.stations if wanted & set(row.gives)]
        wanted = {name for row in rows for name in row.takes} - found - goals(rules) - {rules.move_costs}
        found |= wanted
    return found


def limit(rules: Rules, name: str) -> int:
    """How much of a resource is worth holding: all there is room for of a goal, a batch of an ingredient."""
    if name in goals(rules) or (name == rules.move_costs and rules.move_price):
        return rules.cap(name)
    if name not in ingredients(rules):
        return 0
    return min(rules.cap(name), BATCH * max(row.takes.get(name, 0) for row in rules.stations))
