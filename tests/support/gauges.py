"""A gauge that measures nothing: what a step costs stands in the project's env.py, by function."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from support.records import PROFILE, bench_with

from hotloop.core.errors import InputError
from hotloop.core.record import Record, Resources, stacks
from hotloop.core.record.metadata import Instructions, Work
from hotloop.core.record.profile import WALL, Phase
from hotloop.core.settings import Target
from hotloop.lab.gate.measure import CodePlace

ENV = "move = 100\nlook = 100\n"
"""Instructions, or ns, of each function."""

COST = re.compile(r"^(\w+) = (\d+)$", re.MULTILINE)
TURNS = re.compile(r"(range)\((\d+)\)")
"""The same of the env that the self-test writes."""


def found(text: str) -> list[tuple[str, str]]:
    return COST.findall(text) or TURNS.findall(text)


class WrittenGauge:
    """Reads what it would have measured."""

    asked: list[tuple[str, str]]
    """Commit, or the tree, and what was asked of it."""
    layouts: list[int]
    """Of the memory of what was counted."""

    def __init__(self, place: CodePlace, target: Target, policy: str = "random") -> None:
        file = place.folder / target.name.partition(":")[0]
        if not file.exists():
            raise InputError(f"{target.words}: there is no {file.name}")
        self.costs = {name: int(cost) for name, cost in found(file.read_text())}
        self.place = place

    def measure(self, do: str, **order: Any) -> Record:
        self.asked.append((self.place.commit.ref, do))
        self.layouts += [order["layout"]] if "layout" in order else []
        whole = sum(self.costs.values())
        code = {**PROFILE.code, "project": {"commit": self.place.commit.sha, "dirty": False, "root": "p"}}
        record = replace(
            bench_with([1e9 / whole] * 8),
            code=code,
            instructions=Instructions(per_env_step=whole, runs=((1, 1), (9, 9)), isa="x"),
            resources=Resources(rss_peak_bytes=whole),
            work=Work(env_steps=1),
            phases=(
                self.phase(WALL, whole),
                *(self.phase(f"wall/{name}", ns) for name, ns in self.costs.items()),
            ),
            unaccounted_ns=0,
        )
        if do == "profile":
            seconds = {
                (("step", "env.py", 1), (name, "env.py", 2)): ns / 1e9 for name, ns in self.costs.items()
            }
            stacks.write(Path(order["folder"]) / "samples.speedscope.json", "samples", seconds)
        return record

    @property
    def rows(self) -> list[tuple[str, int]]:
        inside = [(f"{WALL}/{name}", ns) for name, ns in self.costs.items()]
        return [(WALL, sum(self.costs.values())), *inside]

    def phase(self, path: str, ns: int) -> Phase:
        share = ns / sum(self.costs.values())
        return Phase(path=path, calls=1, total_ns=ns, mean_ns=float(ns), share=share)

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""
