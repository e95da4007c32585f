"""The tables of a log, and what makes a database one of ours."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.worlds.farm.actions import NAMES
from hotloop.worlds.farm.ledger import RESULTS

VERSION = 1

APPLICATION = 0x484C464D
"""SQLite keeps both in a database's header, as user_version and application_id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table; rows are only ever added, but for a life's and a run's end."""

    name: str
    columns: Mapping[str, str]
    """Name to type."""
    nothing: tuple[str, ...] = ()
    """Columns whose -1 is written as NULL."""
    key: str = ""

    @property
    def creation(self) -> str:
        columns = [f"{name} {kind}" for name, kind in self.columns.items()]
        keys = [f"PRIMARY KEY ({self.key})"] if self.key else []
        without = " WITHOUT ROWID" if "," in self.key else ""
        return f"CREATE TABLE {self.name} ({', '.join([*columns, *keys])}){without}"

    def insertion(self, rows: int) -> str:
        """The statement that adds so many rows at once."""
        marks = ("NULLIF(?, -1)" if name in self.nothing else "?" for name in self.columns)
        row = f"({', '.join(marks)})"
        return f"INSERT INTO {self.name} VALUES {', '.join([row] * rows)}"


WHEN = {"simulation": "INTEGER", "step": "INTEGER"}
WHO = {**WHEN, "agent": "INTEGER"}
COUNTS = ("population", "systems", "independents", "controls", "births", "starved", "killed")

CONFIG = Table(name="config", columns={"key": "TEXT", "value": "TEXT"}, key="key")
SIMULATIONS = Table(
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
AGENTS = Table(
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
ACTIONS = Table(
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
INCIDENTS = Table(
    name="health_incidents",
    columns={**WHO, "cause": "TEXT", "by": "INTEGER", "change": "REAL", "health": "REAL"},
)
BIRTHS = Table(
    name="reproduction_events",
    columns={**WHO, "result": "INTEGER", "child": "INTEGER"},
    nothing=("child",),
)
NODES = Table(
    name="resource_states", columns={**WHEN, "node": "INTEGER", "x": "REAL", "y": "REAL", "amount": "REAL"}
)
STATES = Table(
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
STEPS = Table(
    name="simulation_steps",
    columns={**WHEN, **dict.fromkeys(COUNTS, "INTEGER"), "stock": "REAL", "reward": "REAL"},
)

TABLES = (CONFIG, SIMULATIONS, AGENTS, ACTIONS, INCIDENTS, BIRTHS, NODES, STATES, STEPS)
"""In the order in which a step is written: one whose row in the last is there is there in all."""

NAMED = """CREATE VIEW actions AS
SELECT simulation, step, agent, a.value AS action, r.value AS result, target, amount, reward
FROM agent_actions
LEFT JOIN config a ON a.key = 'action.' || agent_actions.action
LEFT JOIN config r ON r.key = 'result.' || agent_actions.result"""
"""Actions and their results in words."""


def create(connection: sqlite3.Connection, facts: Mapping[str, object]) -> None:
    """Make an empty log; `facts` are what was run."""
    connection.execute("BEGIN")
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    for table in TABLES:
        connection.execute(table.creation)
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
