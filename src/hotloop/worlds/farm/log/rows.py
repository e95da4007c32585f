"""A log's tables, and from what steps left behind to their rows, many steps at once."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.worlds.farm.actions import NAMES
from hotloop.worlds.farm.ledger import DONE, FATES, NOT_ITS_TURN, RESULTS, Number, Real

VERSION = 1

APPLICATION = 0x484C464D  # SQLite keeps both in a database's header, as user_version and application_id


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTable:
    """One table; rows are only ever added, but for a life's and a run's end."""

    name: str
    columns: Mapping[str, str]  # Name to type
    nothing: tuple[str, ...] = ()  # Columns whose -1 is written as NULL
    key: str = ""

    def insertion(self, rows: int) -> str:
        """The statement that adds so many rows at once."""
        marks = ("NULLIF(?, -1)" if name in self.nothing else "?" for name in self.columns)
        row = f"({', '.join(marks)})"
        return f"INSERT INTO {self.name} VALUES {', '.join([row] * rows)}"


WHEN = {"simulation": "INTEGER", "step": "INTEGER"}
WHO = {**WHEN, "agent": "INTEGER"}
COUNTS = ("population", "systems", "independents", "controls", "births", "starved", "killed")

CONFIG = LogTable(name="config", columns={"key": "TEXT", "value": "TEXT"}, key="key")
SIMULATIONS = LogTable(
    name="simulations",
    columns={
        "simulation": "INTEGER",
        "env": "INTEGER",
        "episode": "INTEGER",
        "seed": "TEXT",
        "steps": "INTEGER",
        "reason": "TEXT",
    },
    key="simulation",
)
AGENTS = LogTable(
    name="agents",
    columns={
        "simulation": "INTEGER",
        "agent": "INTEGER",
        "type": "TEXT",
        "slot": "INTEGER",
        "parent": "INTEGER",
        "generation": "INTEGER",
        "born": "INTEGER",
        "x": "REAL",
        "y": "REAL",
        "died": "INTEGER",
        "cause": "TEXT",
    },
    nothing=("parent",),
    key="simulation, agent",
)
ACTIONS = LogTable(
    name="agent_actions",
    columns={
        **WHO,
        "action": "INTEGER",
        "result": "INTEGER",
        "target": "INTEGER",
        "amount": "REAL",
        "reward": "REAL",
    },
    nothing=("target",),
)
INCIDENTS = LogTable(
    name="health_incidents",
    columns={**WHO, "cause": "TEXT", "by": "INTEGER", "change": "REAL", "health": "REAL"},
)
BIRTHS = LogTable(
    name="reproduction_events",
    columns={**WHO, "result": "INTEGER", "child": "INTEGER"},
    nothing=("child",),
)
NODES = LogTable(
    name="resource_states", columns={**WHEN, "node": "INTEGER", "x": "REAL", "y": "REAL", "amount": "REAL"}
)
STATES = LogTable(
    name="agent_states",
    columns={
        **WHO,
        "x": "REAL",
        "y": "REAL",
        "resources": "REAL",
        "health": "REAL",
        "total_reward": "REAL",
        "age": "INTEGER",
        "defending": "INTEGER",
        "hunger": "INTEGER",
    },
)
STEPS = LogTable(
    name="simulation_steps",
    columns={**WHEN, **dict.fromkeys(COUNTS, "INTEGER"), "stock": "REAL", "reward": "REAL"},
)

# In the order in which a step is written: one whose row in the last is there is there in all.
TABLES = (CONFIG, SIMULATIONS, AGENTS, ACTIONS, INCIDENTS, BIRTHS, NODES, STATES, STEPS)

# Actions and their results in words.
NAMED = """CREATE VIEW actions AS
SELECT simulation, step, agent, a.value AS action, r.value AS result, target, amount, reward
FROM agent_actions
LEFT JOIN config a ON a.key = 'action.' || agent_actions.action
LEFT JOIN config r ON r.key = 'result.' || agent_actions.result"""


def create(connection: sqlite3.Connection, facts: Mapping[str, object]) -> None:
    """Make an empty log; `facts` are what was run."""
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for table in TABLES:
        columns = [f"{name} {kind}" for name, kind in table.columns.items()]
        keys = [f"PRIMARY KEY ({table.key})"] if table.key else []
        without = " WITHOUT ROWID" if "," in table.key else ""
        connection.execute(f"CREATE TABLE {table.name} ({', '.join([*columns, *keys])}){without}")
    connection.execute(NAMED)
    words = {f"action.{k}": name for k, name in enumerate(NAMES)}
    words |= {f"result.{k}": name for k, name in enumerate(RESULTS)}
    rows = [(key, str(value)) for key, value in {**facts, **words}.items()]
    connection.executemany(CONFIG.insertion(1), rows)
    connection.execute("COMMIT")


def version_of(path: Path) -> int | None:
    """The version of a log; None where the file is none."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    is_ours = head.startswith(b"SQLite format 3\0") and int.from_bytes(head[68:72], "big") == APPLICATION
    return int.from_bytes(head[60:64], "big") if is_ours else None


def open_log(path: Path) -> sqlite3.Connection:
    """Open a log to be read; refuses what is none, and one of another version."""
    version = version_of(path)
    if version is None:
        raise InputError(f"{path} is no log of a farm: expected what hotloop sim farm log={path.name} writes")
    if version != VERSION:
        raise InputError(f"{path} is a log of version {version}, and this hotloop reads version {VERSION}")
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


DEFEND, ATTACK, REPRODUCE = (NAMES.index(name) for name in ("defend", "attack", "reproduce"))

Columns = Sequence[NDArray[Any] | Sequence[Any]]  # Of a table, in its order


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A step of all envs, copied before the next one rewrites it."""

    simulation: NDArray[np.int64]  # [envs]: the number of the episode each env is in
    step: NDArray[np.int64]  # [envs], from 1
    lives: NDArray[np.int64]  # [envs]: agents the episode had before
    numbers: NDArray[np.int32]
    reals: NDArray[np.float32]
    rewards: NDArray[np.float32]
    nodes: NDArray[np.float32]
    counts: NDArray[np.int32]  # [envs, COUNTS]
    stock: NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Some steps, and the runs that began or ended in them."""

    steps: tuple[Snapshot, ...]
    begun: tuple[tuple[int, int, int, str], ...] = ()  # Simulation, env, episode and seed
    ended: tuple[tuple[int, str, int], ...] = ()  # Steps, reason and simulation


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRows:
    """What a stretch comes to in the database."""

    inserted: list[tuple[LogTable, Columns]] = field(default_factory=list)
    deaths: list[tuple[int, str, int, int]] = field(default_factory=list)  # Step, cause, simulation and agent
    ended: tuple[tuple[int, str, int], ...] = ()
    env_steps: int = 0


class Picked:
    """The rows that a mask chooses of all steps, envs and slots."""

    def __init__(self, all_of: "Stacked", mask: NDArray[np.bool_]) -> None:
        self._all = all_of
        self.at = np.nonzero(mask)
        self.when = (all_of.simulation[self.at[:2]], all_of.step[self.at[:2]])

    def number(self, column: Number) -> NDArray[np.int32]:
        picked: NDArray[np.int32] = self._all.numbers[(*self.at, column)]
        return picked

    def real(self, column: Real) -> NDArray[np.float32]:
        picked: NDArray[np.float32] = self._all.reals[(*self.at, column)]
        return picked

    @property
    def reward(self) -> NDArray[np.float32]:
        picked: NDArray[np.float32] = self._all.rewards[self.at]
        return picked

    def __len__(self) -> int:
        return len(self.at[0])


class Stacked:
    """Snapshots one after another, [steps, envs, ...]."""

    def __init__(self, steps: Sequence[Snapshot]) -> None:
        self.simulation = np.stack([each.simulation for each in steps])
        self.step = np.stack([each.step for each in steps])
        self.lives = np.stack([each.lives for each in steps])
        self.numbers = np.stack([each.numbers for each in steps])
        self.reals = np.stack([each.reals for each in steps])
        self.rewards = np.stack([each.rewards for each in steps])
        self.nodes = np.stack([each.nodes for each in steps])
        self.counts = np.stack([each.counts for each in steps])
        self.stock = np.stack([each.stock for each in steps])

    def number(self, column: Number) -> NDArray[np.int32]:
        return self.numbers[..., column]


class Tabulator:
    """Makes rows; remembers what nodes held, of which only changes are written."""

    def __init__(self, types: Sequence[str], node_cap: float) -> None:
        self._types, self._node_cap = types, np.float32(node_cap)
        self._held: NDArray[np.float32] | None = None

    def tabulate(self, stretch: Stretch) -> LoggedRows:
        """All rows of a stretch, in the order in which they are written."""
        begun: list[tuple[LogTable, Columns]] = []
        if stretch.begun:
            blank = [None] * len(stretch.begun)
            begun.append((SIMULATIONS, [*map(list, zip(*stretch.begun, strict=True)), blank, blank]))
        if not stretch.steps:
            return LoggedRows(inserted=begun, ended=stretch.ended)
        steps = Stacked(stretch.steps)
        return LoggedRows(
            inserted=[*begun, *self.tables(steps)],
            deaths=deaths(steps),
            ended=stretch.ended,
            env_steps=steps.step.size,
        )

    def tables(self, steps: Stacked) -> Iterator[tuple[LogTable, Columns]]:
        yield AGENTS, self.settlers(steps)
        yield AGENTS, self.born(steps)
        acted = (steps.number(Number.TURN_AGENT) >= 0) & (steps.number(Number.TURN_RESULT) != NOT_ITS_TURN)
        yield ACTIONS, actions(steps, acted)
        yield INCIDENTS, incidents(steps, acted)
        yield BIRTHS, births(steps, acted)
        yield from self.grown(steps)
        yield STATES, states(steps)
        counts = steps.counts.reshape(-1, steps.counts.shape[-1])
        reward = steps.rewards.sum(axis=2, dtype=np.float64).ravel()
        yield STEPS, (steps.simulation.ravel(), steps.step.ravel(), *counts.T, steps.stock.ravel(), reward)

    def settlers(self, steps: Stacked) -> Columns:
        """Who was there when an episode began, as its first step finds them."""
        found = Picked(steps, (steps.number(Number.TURN_AGENT) >= 0) & (steps.step == 1)[..., None])
        simulation, step = found.when
        breed = found.number(Number.TURN_BREED)
        nobody = np.full(len(found), -1)
        place = (found.real(Real.TURN_X), found.real(Real.TURN_Y))
        head = (simulation, found.number(Number.TURN_AGENT), self.names(breed), found.at[2])
        return (*head, nobody, nobody + 1, step - 1, *place, [None] * len(found), [None] * len(found))

    def born(self, steps: Stacked) -> Columns:
        """Return which agents have a new number."""
        found = Picked(steps, steps.number(Number.NOW_AGENT) >= steps.lives[..., None])
        simulation, step = found.when
        head = (simulation, found.number(Number.NOW_AGENT), self.names(found.number(Number.NOW_BREED)))
        family = (found.number(Number.NOW_PARENT), found.number(Number.NOW_GENERATION))
        place = (found.real(Real.NOW_X), found.real(Real.NOW_Y))
        return (*head, found.at[2], *family, step, *place, [None] * len(found), [None] * len(found))

    def names(self, breeds: NDArray[np.int32]) -> list[str]:
        return [self._types[breed] for breed in breeds.tolist()]

    def grown(self, steps: Stacked) -> Iterator[tuple[LogTable, Columns]]:
        """Every node at step 0 of an episode, then those that hold more or less than before."""
        amounts = steps.nodes[..., 2]
        first = (steps.step == 1)[..., None]
        if self._held is None:
            self._held = amounts[0]
        before = np.where(first, self._node_cap, np.concatenate((self._held[None], amounts[:-1])))
        self._held = amounts[-1]
        for mask, of, back in (
            (np.broadcast_to(first, amounts.shape), before, 1),
            (amounts != before, amounts, 0),
        ):
            at = np.nonzero(mask)
            where = at[:2]
            x, y = steps.nodes[(*at, 0)], steps.nodes[(*at, 1)]
            yield NODES, (steps.simulation[where], steps.step[where] - back, at[2], x, y, of[at])


def actions(steps: Stacked, acted: NDArray[np.bool_]) -> Columns:
    found = Picked(steps, acted)
    return (
        *found.when,
        *(found.number(column) for column in (Number.TURN_AGENT, Number.TURN_ACTION, Number.TURN_RESULT)),
        found.number(Number.TURN_TARGET),
        found.real(Real.TURN_AMOUNT),
        found.reward,
    )


def incidents(steps: Stacked, acted: NDArray[np.bool_]) -> Columns:
    """Health lost by attack, and won by defending where there was any to win."""
    action, result = steps.number(Number.TURN_ACTION), steps.number(Number.TURN_RESULT)
    worked = acted & (result == DONE)
    healed = (action == DEFEND) & (steps.reals[..., Real.TURN_AMOUNT] != 0)
    found = Picked(steps, worked & ((action == ATTACK) | healed))
    is_attack = found.number(Number.TURN_ACTION) == ATTACK
    by, amount = found.number(Number.TURN_AGENT), found.real(Real.TURN_AMOUNT)
    return (
        *found.when,
        np.where(is_attack, found.number(Number.TURN_TARGET), by),
        [NAMES[ATTACK] if each else NAMES[DEFEND] for each in is_attack.tolist()],
        by,
        np.where(is_attack, -amount, amount),
        found.real(Real.TURN_LEFT),
    )


def births(steps: Stacked, acted: NDArray[np.bool_]) -> Columns:
    """Every attempt to reproduce, and the child where there is one."""
    found = Picked(steps, acted & (steps.number(Number.TURN_ACTION) == REPRODUCE))
    columns = (Number.TURN_AGENT, Number.TURN_RESULT, Number.TURN_TARGET)
    return (*found.when, *(found.number(column) for column in columns))


def states(steps: Stacked) -> Columns:
    """Everybody who lives when a step is over."""
    found = Picked(steps, steps.number(Number.NOW_AGENT) >= 0)
    places = (Real.NOW_X, Real.NOW_Y, Real.NOW_RESOURCES, Real.NOW_HEALTH, Real.NOW_TOTAL)
    return (
        *found.when,
        found.number(Number.NOW_AGENT),
        *(found.real(column) for column in places),
        *(found.number(column) for column in (Number.NOW_AGE, Number.NOW_DEFENDING, Number.NOW_HUNGER)),
    )


def deaths(steps: Stacked) -> list[tuple[int, str, int, int]]:
    found = Picked(steps, steps.number(Number.TURN_FATE) > 0)
    simulation, step = found.when
    causes = [FATES[fate] for fate in found.number(Number.TURN_FATE).tolist()]
    agents = found.number(Number.TURN_AGENT).tolist()
    return list(zip(step.tolist(), causes, simulation.tolist(), agents, strict=True))
