"""The grid's rules as data, read from a TOML table, and as the numbers of config.h.

A station is a row: what it takes and gives, its cooldown, its uses, the vibe it asks for, how many
neighbours must help, an area effect. Several rows of one kind are several recipes, tried in order.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import resources as package_files
from pathlib import Path
from typing import Any, TypeVar

from hotloop.core.errors import InputError, show_value, unknown
from hotloop.worlds.grid.features import KINDS

MOST = 65535  # The most of one resource anything can hold
MAX_RESOURCES = 16
MAX_VIBES = 16
MAX_RADIUS = 15
MAX_ROWS = 64  # Of any table; native code keeps them in fixed arrays
MAX_STRUCK = 100  # By one event; each event has 4,096 random numbers a tick, and a spawn may need 32 of them
AGENT = "agent"
REACHES = ("all", "friends", "enemies")
EFFECTS = ("spawn", "drain", "clip", "team")
# What an agent counts of itself, for rewards: goods put into a store, others frozen.
STATS = ("deposit", "hit")

NAMES, AMOUNTS = tuple[str, ...], Mapping[str, int]

# What TOML must have for a field of each type.
EXPECTED: dict[Any, str] = {
    int: "int",
    str: "str",
    bool: "bool",
    float: "float",
    NAMES: "a list of names",
    AMOUNTS: f"a table of names and amounts, each at most {MOST}",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """What a source does, every tick, to the agents in the square around it."""

    radius: int
    resource: str
    amount: int
    reach: str = "all"  # `all`, `friends` of the source's team, or `enemies` of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One row of the station table."""

    kind: str
    takes: Mapping[str, int] = field(default_factory=dict)
    gives: Mapping[str, int] = field(default_factory=dict)
    cooldown: int = 0  # Ticks until the station can be used again
    vibe: int = 0  # The vibe the user must have; 0 asks for none
    neighbours: int = 0  # How many other agents must stand beside the station
    # How often the station can be used in an episode; 0 is without end. The kind's first row decides.
    uses: int = 0
    claims: bool = False  # Using it gives it to the user's team. The kind's first row decides.
    stores: bool = False  # It keeps what it takes. The kind's first row decides.
    symbol: str = ""  # Its character in a text map. The kind's first row decides.
    area: Area | None = None  # The kind's first row decides


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A resource that every agent gains or loses by itself."""

    resource: str
    amount: int
    every: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something the world does at a tick, or every so many ticks."""

    name: str
    effect: str
    kind: str  # Whom it strikes: a station's kind or `agent`; what it makes, for a spawn
    at: int = 0
    every: int = 0
    count: int = 0  # How many are drawn; 0 strikes all
    amount: int = 0  # Units drained, ticks clipped, or the most stations a spawn may ever make
    resource: str = ""
    then: str = ""  # An event that follows at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """A weight on the change of a held resource or of a stat since the last tick."""

    of: str
    weight: float
    cap: int = MOST  # Holding more than this earns nothing more


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Everything of a grid that is not its map."""

    resources: tuple[str, ...] = ()
    vibes: int = 0
    attack_vibe: int = 0  # The vibe in which bumping into another attacks it; 0 is never
    attack_costs: str = ""
    shield: str = ""  # The resource that absorbs an attack
    freeze: int = 0  # Ticks an attack freezes
    loot: tuple[str, ...] = ()
    start: Mapping[str, int] = field(default_factory=dict)
    caps: Mapping[str, int] = field(default_factory=dict)
    move_costs: str = ""
    move_price: int = 0
    changes: tuple[Change, ...] = ()
    stations: tuple[Recipe, ...] = ()
    events: tuple[Event, ...] = ()
    rewards: tuple[Reward, ...] = ()
    mobile: Area | None = None
    mobile_vibe: int = 0  # The vibe in which an agent carries the mobile area with it
    place: Mapping[str, int] = field(default_factory=dict)  # How many stations of each kind a seeded map gets

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of station there are, in the order of their first rows."""
        return tuple(dict.fromkeys(row.kind for row in self.stations))

    def first(self, kind: str) -> Recipe:
        """The row that decides what a kind is."""
        return next(row for row in self.stations if row.kind == kind)

    def cap(self, resource: str) -> int:
        return self.caps.get(resource, MOST)

    def tag(self, kind: str) -> int:
        """The kind's number in a tag token: the shipped ones are fixed, others follow."""
        own = [name for name in self.kinds if name not in KINDS]
        return KINDS.index(kind) if kind in KINDS else len(KINDS) + own.index(kind)


def read_rules(name_or_path: str) -> Rules:
    """Read a table that ships (`toy`, `arena`, `guard`) or a TOML file."""
    shipped = package_files.files("hotloop.worlds.grid") / "tables" / f"{name_or_path}.toml"
    try:
        text = shipped.read_text() if shipped.is_file() else Path(name_or_path).read_text(encoding="utf-8")
        return check(parse(tomllib.loads(text)))
    except OSError as error:
        raise InputError(f"rules={name_or_path}: neither shipped nor a readable file ({error})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"rules={name_or_path}: not a TOML table ({error})") from None


def parse(table: Mapping[str, Any]) -> Rules:
    """Turn a TOML table into rules; every key must be known."""
    rows = dict(table)
    for key, cls in (("changes", Change), ("events", Event), ("rewards", Reward)):
        rows[key] = tuple(_row(cls, key, row) for row in _rows(key, table))
    rows["stations"] = tuple(_station(row) for row in _rows("stations", table))
    if "mobile" in rows:
        rows["mobile"] = _row(Area, "mobile", rows["mobile"])
    return _row(Rules, "rules", rows)


def _rows(key: str, table: Mapping[str, Any]) -> list[Any]:
    rows = table.get(key, [])
    if not isinstance(rows, list):
        raise InputError(f"{key} is {show_value(rows)}: expected rows, each under [[{key}]]")
    return rows


def _station(row: Any) -> Recipe:
    if isinstance(row, dict) and "area" in row:
        row = {**row, "area": _row(Area, f"area of {show_value(row.get('kind'))}", row["area"])}
    return _row(Recipe, "stations", row)


def _row(cls: type[T], what: str, row: Any) -> T:
    if not isinstance(row, dict):
        raise InputError(f"a row of {what} is {show_value(row)}: expected a table of keys and values")
    types: dict[str, Any] = {each.name: each.type for each in fields(cls)}  # type: ignore[arg-type]
    for key, value in row.items():
        if key not in types:
            raise unknown(f"key in {what}", key, types, f"the keys are {', '.join(types)}")
        if not fits(types[key], value):
            raise InputError(f"{key} in {what} is {show_value(value)}: expected {EXPECTED[types[key]]}")
        if types[key] is int and not -MOST <= value <= MOST:
            raise InputError(f"{key}={show_value(value)} in {what}: expected at most {MOST}")
    try:
        return cls(**{key: tuple(value) if types[key] == NAMES else value for key, value in row.items()})
    except TypeError as error:
        raise InputError(f"a row of {what} lacks a key: {error}") from None


def fits(kind: Any, value: Any) -> bool:
    """Whether a value of TOML's is one of a field's type; what has rows of its own is looked at by itself."""
    if kind == NAMES:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if kind == AMOUNTS:
        return isinstance(value, dict) and all(
            type(each) is int and abs(each) <= MOST for each in value.values()
        )
    if kind is float:
        return type(value) in (int, float) and abs(value) <= MOST
    return type(value) is kind if kind in EXPECTED else True


def check(rules: Rules) -> Rules:
    """Refuse rules that cannot be played, naming the row."""
    _check_sizes(rules)
    for row in rules.stations:
        _check_station(rules, row)
        if row.area:
            _check_area(rules, row.area, f"station {row.kind}")
    if rules.mobile:
        _check_area(rules, rules.mobile, "mobile")
    _check_events(rules)
    names = {*rules.start, *rules.caps, *rules.loot, *(c.resource for c in rules.changes)}
    names |= {name for name in (rules.attack_costs, rules.shield, rules.move_costs) if name}
    for name in sorted(names):
        _known_resource(rules, name, "the agents' settings")
    if rules.move_price and not rules.move_costs:
        raise InputError(f"move_price={rules.move_price} of nothing: say of which resource with move_costs")
    for reward in rules.rewards:
        if reward.of not in (*rules.resources, *STATS):
            raise unknown("resource or stat", reward.of, (*rules.resources, *STATS), "named by a reward")
    for kind in rules.place:
        _known_kind(rules, kind, "place")
    return rules


def _check_sizes(rules: Rules) -> None:
    for name in ("stations", "events", "rewards", "changes"):
        if len(getattr(rules, name)) > MAX_ROWS:
            raise InputError(f"{name} has {len(getattr(rules, name))} rows: at most {MAX_ROWS}")
    if len(rules.resources) > MAX_RESOURCES or len(set(rules.resources)) < len(rules.resources):
        raise InputError(f"resources: at most {MAX_RESOURCES} different ones")
    for name in ("vibes", "attack_vibe", "mobile_vibe"):
        if not 0 <= getattr(rules, name) <= MAX_VIBES:
            raise InputError(f"{name}={getattr(rules, name)}: expected 0 to {MAX_VIBES}")
    for name, amount in {**rules.start, **rules.caps}.items():
        if not 0 <= amount <= MOST:
            raise InputError(f"{name}={amount}: a holding is from 0 to {MOST}")
    for change in rules.changes:
        if change.every < 1:
            raise InputError(f"a change of {change.resource} every {change.every} ticks: expected 1 or more")


def _check_area(rules: Rules, area: Area, where: str) -> None:
    _known_resource(rules, area.resource, where)
    if area.reach not in REACHES:
        raise unknown("reach", area.reach, REACHES, f"of {where}: {', '.join(REACHES)}")
    if not 0 <= area.radius <= MAX_RADIUS:
        raise InputError(f"{where}: area radius {area.radius}, expected 0 to {MAX_RADIUS}")


def _check_station(rules: Rules, row: Recipe) -> None:
    for name, amount in [*row.takes.items(), *row.gives.items()]:
        _known_resource(rules, name, f"station {row.kind}")
        if not 0 < amount <= MOST:
            raise InputError(f"station {row.kind}: {name}={amount}, expected 1 to {MOST}")
    given = {name for other in rules.stations if other is not row for name in other.gives}
    given |= {*rules.start, *(change.resource for change in rules.changes if change.amount > 0)}
    given |= {row.area.resource for row in rules.stations if row.area and row.area.amount > 0}
    for name, amount in row.takes.items():
        if name not in given:
            raise InputError(f"station {row.kind} takes {name}, which nothing gives: nobody can meet it")
        if amount > rules.cap(name):
            raise InputError(
                f"station {row.kind} takes {amount} {name}, but an agent holds at most {rules.cap(name)}: "
                "nobody can meet it"
            )
    if row.vibe >= max(rules.vibes, 1):
        raise InputError(f"station {row.kind} asks for vibe {row.vibe}, but there are {rules.vibes}")
    if min(row.cooldown, row.vibe, row.uses) < 0:
        raise InputError(f"station {row.kind}: cooldown, vibe and uses are not below 0")
    if not 0 <= row.neighbours <= 7:
        raise InputError(
            f"station {row.kind}: {row.neighbours} neighbours, but 0 to 7 have room beside a user"
        )


def _check_events(rules: Rules) -> None:
    by_name = {event.name: event for event in rules.events}
    for event in rules.events:
        where = f"event {event.name}"
        if event.effect not in EFFECTS:
            raise unknown("effect", event.effect, EFFECTS, f"of {where}: {', '.join(EFFECTS)}")
        if event.kind != AGENT or event.effect in ("spawn", "clip"):
            _known_kind(rules, event.kind, where)
        if event.effect == "drain":
            _known_resource(rules, event.resource, where)
        if min(event.at, event.every, event.amount) < 0 or not 0 <= event.count <= MAX_STRUCK:
            raise InputError(f"{where}: numbers below 0, or a count over {MAX_STRUCK}")
        seen = [event.name]
        while (following := by_name[seen[-1]].then) and following not in seen:
            if following not in by_name:
                raise unknown("event", following, by_name, f"named by {by_name[seen[-1]].name}")
            seen.append(following)
        if following:
            raise InputError(f"{where}: {' -> '.join([*seen, following])} is a cycle that would never end")


def _known_resource(rules: Rules, name: str, where: str) -> None:
    if name not in rules.resources:
        raise unknown("resource", name, rules.resources, f"{where} names it; resources lists what there is")


def _known_kind(rules: Rules, kind: str, where: str) -> None:
    if kind not in rules.kinds:
        raise unknown("kind of station", kind, rules.kinds, f"{where} names it; stations lists what there is")


NONE = -1


def flatten(rules: Rules) -> dict[str, object]:
    """Every table of the rules, row after row, each row of a fixed width."""
    sources = (*rules.resources, *STATS)  # What a reward looks at
    return {
        "resources": len(rules.resources),
        "vibes": rules.vibes,
        "attack_vibe": rules.attack_vibe,
        "attack_costs": index_of(rules, rules.attack_costs),
        "shield": index_of(rules, rules.shield),
        "freeze": rules.freeze,
        "move_costs": index_of(rules, rules.move_costs),
        "move_price": rules.move_price,
        "mobile_vibe": rules.mobile_vibe,
        "mobile": area_row(rules, rules.mobile),
        "start": amounts(rules, rules.start),
        "caps": [rules.cap(name) for name in rules.resources],
        "loot": [index_of(rules, name) for name in rules.loot],
        "changes": [x for c in rules.changes for x in (index_of(rules, c.resource), c.amount, c.every)],
        "kinds": [
            number
            for row in map(rules.first, rules.kinds)
            for number in (rules.tag(row.kind), row.uses, row.claims, row.stores, *area_row(rules, row.area))
        ],
        "recipes": [
            number
            for row in rules.stations
            for number in (
                *(rules.kinds.index(row.kind), row.cooldown, row.vibe, row.neighbours),
                *amounts(rules, row.takes),
                *amounts(rules, row.gives),
            )
        ],
        "events": [x for event in rules.events for x in event_row(rules, event)],
        "rewards": [x for reward in rules.rewards for x in (sources.index(reward.of), reward.cap)],
        "weights": [float(reward.weight) for reward in rules.rewards],
        "spare_stations": sum(event.amount for event in rules.events if event.effect == "spawn"),
    }


def index_of(rules: Rules, resource: str) -> int:
    return rules.resources.index(resource) if resource else NONE


def amounts(rules: Rules, held: Mapping[str, int]) -> list[int]:
    return [held.get(name, 0) for name in rules.resources]


def area_row(rules: Rules, area: Area | None) -> list[int]:
    if area is None:
        return [NONE, 0, 0, 0]
    return [area.radius, index_of(rules, area.resource), area.amount, REACHES.index(area.reach)]


def event_row(rules: Rules, event: Event) -> list[int]:
    names = [other.name for other in rules.events]
    kind = NONE if event.kind == AGENT else rules.kinds.index(event.kind)
    then = names.index(event.then) if event.then else NONE
    resource = index_of(rules, event.resource)
    effect = EFFECTS.index(event.effect)
    return [effect, kind, event.at, event.every, event.count, event.amount, resource, then]
