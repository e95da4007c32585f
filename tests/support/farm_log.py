"""What a farm's log must hold, seen by a witness that knows nothing of the log: the twin's own state."""

import sqlite3
from collections.abc import Set as AbstractSet
from contextlib import closing
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import hotloop
from hotloop.core.exact_math import f32
from hotloop.worlds.farm import TYPES
from hotloop.worlds.farm.actions import ACTIONS, NAMES
from hotloop.worlds.farm.ledger import RESULTS
from hotloop.worlds.farm.state import ALIVE
from hotloop.worlds.farm.twin import Farm

Row = tuple[Any, ...]
PLAYER = "weighted"


def rows_of(path: Path, table: str) -> list[Row]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(f"SELECT * FROM {table}").fetchall()


def play(path: Path, steps: int, target: str = "farm/dev", **keys: object) -> dict[str, int]:
    """Play with a log; returns the batch's counters when all is written."""
    with closing(hotloop.make(target, log=str(path), **keys)) as batch:
        batch.reset()
        for _ in range(steps):
            batch.step(batch.choose(PLAYER))
        batch.wait()
        return batch.counters


class Before:
    """What a step finds."""

    def __init__(self, farm: Farm) -> None:
        self.homes = {a.serial: slot for slot, a in enumerate(farm.state.agents) if a.state == ALIVE}
        self.amounts = [node.amount for node in farm.state.nodes]
        self.starved, self.killed = farm.state.starved, farm.state.killed


class Witness:
    """Plays the same run by the twin, and writes down what its state says before and after each step."""

    def __init__(self, monkeypatch: Any, target: str, **keys: object) -> None:
        self.rows: dict[str, list[Row]] = {
            name: [] for name in ("agent_actions", "agent_states", "health_incidents", "reproduction_events")
        }
        self.rows |= {"resource_states": [], "simulation_steps": [], "simulations": []}
        self.agents: dict[tuple[int, int], list[Any]] = {}
        self.turns: list[tuple[Farm, int, int, str, tuple[Any, ...], tuple[Any, ...]]] = []
        watched = tuple(partial(self.act, number) for number in range(len(ACTIONS)))
        monkeypatch.setattr(import_module(Farm.__module__), "ACTIONS", watched)
        self.batch = hotloop.make(target, impl="reference", autoreset=False, **keys)
        self.simulation: dict[int, int] = {}
        self.episode: dict[int, int] = {}

    def act(self, number: int, farm: Farm, slot: int) -> str:
        before = self.facts(farm)
        failure = ACTIONS[number](farm, slot)
        serial = farm.state.agents[slot].serial
        self.turns.append((farm, serial, number, failure, before, self.facts(farm)))
        return failure

    @staticmethod
    def facts(farm: Farm) -> tuple[Any, ...]:
        agents = {a.serial: (a.health, a.resources) for a in farm.state.agents if a.state == ALIVE}
        return agents, [node.amount for node in farm.state.nodes], farm.state.serials

    def play(self, steps: int) -> None:
        self.batch.reset()
        for _ in range(steps):
            over = (self.batch.terminals | self.batch.truncations).nonzero()[0].tolist()
            if over:
                self.batch.reset_many(over)
            for env in over:
                del self.simulation[env]
            self.step()

    @property
    def twins(self) -> list[Farm]:
        engine: Any = self.batch.engine
        return list(engine.twins)

    def step(self) -> None:
        for env, farm in enumerate(self.twins):
            if env not in self.simulation:
                self.begin(env, farm)
        before = [Before(farm) for farm in self.twins]
        self.turns = []
        self.batch.step(self.batch.choose(PLAYER))
        for env, farm in enumerate(self.twins):
            self.write(env, farm, before[env])

    def begin(self, env: int, farm: Farm) -> None:
        simulation = self.simulation[env] = max([-1, *(row[0] for row in self.rows["simulations"])]) + 1
        episode = self.episode[env] = self.episode.get(env, -1) + 1
        self.rows["simulations"].append((simulation, env, episode, str(farm.state.episode_seed)))
        for slot, a in enumerate(farm.state.agents):
            if a.state == ALIVE:
                self.born(simulation, 0, slot, a)
        for k, node in enumerate(farm.state.nodes):
            self.rows["resource_states"].append((simulation, 0, k, node.x, node.y, node.amount))

    def born(self, simulation: int, step: int, slot: int, a: Any) -> None:
        parent = None if a.parent < 0 else a.parent
        row = [simulation, a.serial, TYPES[a.breed], slot, parent, a.generation, step, a.x, a.y, None, None]
        assert self.agents.setdefault((simulation, a.serial), row) is row

    def write(self, env: int, farm: Farm, before: "Before") -> None:
        simulation, step, state = self.simulation[env], farm.state.tick, farm.state
        now = {a.serial: (slot, a) for slot, a in enumerate(state.agents) if a.state == ALIVE}
        rewards = self.batch.rewards[env].tolist()
        for serial in sorted(now.keys() - before.homes.keys()):
            self.born(simulation, step, *now[serial])
        self.bury(farm, simulation, before, before.homes.keys() - now.keys())
        for _, serial, number, failure, was, became in (t for t in self.turns if t[0] is farm):
            self.turn((simulation, step, serial), number, failure, was, became, rewards[before.homes[serial]])
        for _, a in now.values():
            place = (a.x, a.y, a.resources, a.health, a.total, a.age, a.defending, a.hunger)
            self.rows["agent_states"].append((simulation, step, a.serial, *place))
        for k, node in enumerate(state.nodes):
            if node.amount != before.amounts[k]:
                self.rows["resource_states"].append((simulation, step, k, node.x, node.y, node.amount))
        breeds = [sum(a.breed == breed for _, a in now.values()) for breed in range(len(TYPES))]
        counts = (len(now), *breeds, state.births, state.starved, state.killed)
        self.rows["simulation_steps"].append((simulation, step, *counts))

    def bury(self, farm: Farm, simulation: int, before: "Before", gone: AbstractSet[int]) -> None:
        """Who fell by an attack was there before that turn and not after it."""
        attacks = [turn for turn in self.turns if turn[0] is farm and NAMES[turn[2]] == "attack"]
        fell = {victim for *_, was, became in attacks for victim in was[0].keys() - became[0].keys()}
        assert (len(gone - fell), len(fell)) == (
            farm.state.starved - before.starved,
            farm.state.killed - before.killed,
        )
        for serial in gone:
            cause = "killed" if serial in fell else "starved"
            self.agents[simulation, serial][9:] = [farm.state.tick, cause]

    def turn(
        self,
        who: Row,
        number: int,
        failure: str,
        was: tuple[Any, ...],
        became: tuple[Any, ...],
        reward: float,
    ) -> None:
        """Target and amount from what changed around the turn."""
        target, amount, me = None, 0.0, who[2]
        name = NAMES[number]
        health = {s: (h, became[0].get(s, (None, 0))[0]) for s, (h, _) in was[0].items()}
        hurt = [s for s, (old, new) in health.items() if old != new]
        if not failure and name == "attack":
            [target] = hurt
            new = became[0].get(target)
            amount = None if new is None else f32(was[0][target][0] - new[0])
            self.rows["health_incidents"].append((*who[:2], target, "attack", me))
        elif not failure and name == "defend" and hurt:
            amount = f32(became[0][me][0] - was[0][me][0])
            self.rows["health_incidents"].append((*who[:2], me, "defend", me))
        elif not failure and name == "gather":
            [target] = [k for k, (old, new) in enumerate(zip(was[1], became[1], strict=True)) if old != new]
            amount = was[1][target] - became[1][target]
        elif not failure and name == "share":
            [target] = [s for s, (_, owned) in was[0].items() if became[0][s][1] > owned]
            amount = 2.0
        elif name == "reproduce":
            target = None if failure else was[2]
            amount = 0.0 if failure else None
            self.rows["reproduction_events"].append((*who, RESULTS.index(failure or "done"), target))
        result = RESULTS.index(failure or "done")
        self.rows["agent_actions"].append((*who, number, result, target, amount, reward))
