"""Named parts: what functions of a target's own code take of its steps, wherever they are called."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from hotloop.core import spans
from hotloop.core.record.experiments import ELSE
from hotloop.core.target import Target
from hotloop.core.time_tree import TimeTree
from hotloop.envs.foreign.inside import ENV_STEP
from hotloop.envs.foreign.phases import Function, find, home_of, watching

R = TypeVar("R")


class NamedParts:
    """Times the functions that a target names, over a stretch of play."""

    def __init__(self, target: Target) -> None:
        home = home_of(target.name)
        self.functions = tuple(find(name, home) for name in target.time)

    def time(self, play: Callable[[], R]) -> tuple[R, dict[str, int], int]:
        """Return what `play` returns, the ns in each function and outside of all, and the ns in whole steps.

        A function that calls another has its time too, and none of its own twice.
        """
        if not self.functions:
            return play(), {}, 0
        with watching(self.functions):
            spans.enable()
            try:
                returned = play()
            finally:
                spans.disable()
        steps = [row for top in spans.tree() for row in top.walk() if is_step(row)]
        parts = {each.name: sum(time_in(row, [each]) for row in steps) for each in self.functions}
        whole_ns = sum(row.total_ns for row in steps)
        named_ns = sum(time_in(row, self.functions) for row in steps)
        return returned, {**parts, ELSE: max(whole_ns - named_ns, 0)}, whole_ns


def is_step(row: TimeTree) -> bool:
    """Return whether a row is the step of an env that is in no other one."""
    *above, name = row.path.split("/")
    return name == ENV_STEP and ENV_STEP not in above


def time_in(row: TimeTree, functions: Iterable[Function]) -> int:
    """Return the ns below a row that functions have; inside the first of them nothing is counted again."""
    names = {name for each in functions for name in each.rows}
    if row.path.rpartition("/")[2] in names:
        return row.total_ns
    return sum(time_in(child, functions) for child in row.children)
