"""What a validation found: how much was compared, and the first place where two sides differ."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hotloop.core.record.plain import Amount, Count
from hotloop.core.target import Target

BYTES = "bytes"
"""The strictest way to compare, and the usual one."""

BUNDLE_FORMAT = 1
"""Of the files that show a difference again."""


NUMBERED = re.compile(r"(.*?)(\d+)")
"""A field of one of several agents, or one part of several: the words before its number, and the number."""

FEWEST_IN_ROW = 3

MOST_NAMED = 10
"""Fields that are named; of more a reader is told how many there are, and the record has them all."""


def field_words(names: Iterable[str]) -> str:
    """Return names of fields for a reader: those that only count up by their first and last number."""
    rows: dict[str, list[str]] = {}
    for name in names:
        found = NUMBERED.fullmatch(name)
        rows.setdefault(found[1] if found else name, []).append(found[2] if found else "")
    words = [each for stem, numbers in rows.items() for each in in_row(stem, numbers)]
    more = len(words) - MOST_NAMED
    return ", ".join([*words[:MOST_NAMED], *([f"and {more:,} more"] if more > 0 else [])])


def in_row(stem: str, numbers: Sequence[str]) -> list[str]:
    """Fields that begin alike: one by one, or the first to the last where none is missing between them."""
    counted = sorted(int(each) for each in numbers if each)
    if len(counted) < FEWEST_IN_ROW or counted != list(range(counted[0], counted[-1] + 1)):
        return [f"{stem}{each}" for each in numbers]
    return [f"{stem}{counted[0]} to {counted[-1]}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first place where two sides answered differently."""

    step: Count
    """Steps that had been played; 0 is the reset."""
    field: str
    index: tuple[Count, ...]
    """Into the field; the env first, then the agent where there is one."""
    a: str
    """What the reference says."""
    b: str
    agent: str | None = None
    """Whose output it is; None where it is the whole env's."""
    before: str | None = None
    """What both said in this place the tick before; None at the first reset."""
    after_reset: bool = False
    """Whether it was seen after a reset in the middle, before the next step."""

    def __str__(self) -> str:
        return f"step {self.step}, {self.field}{list(self.index)}: {self.a} against {self.b}"

    @property
    def env(self) -> int | None:
        """None where whole fields are unlike."""
        return self.index[0] if self.index else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One tape, played by the candidate in one way."""

    tape: str
    """`random`, `adversarial`, or the player who made it."""
    num_envs: Count
    threads: Count
    steps: Count
    """Calls, each a step of every env."""
    comparisons: Count
    by_digest: bool = False
    """Whether hashes of everything were compared, with those of the reference's one play."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """How much was compared; one comparison is one agent's full output at one step."""

    comparisons: Count
    mismatches: Count
    timing_ratio: Amount | None = None
    """How many times as long the reference took: of one phase alone where a shadow compared them."""
    mode: str = BYTES
    """`bytes`, `ulp:N` or `tolerance:T`."""
    against: str | None = None
    """The reference; None where one way shadowed another."""
    fields: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Fields that both have and nobody compared."""
    too_few_steps: Count | None = None
    """How many steps were replayed, if they are too few to call the sides equal; else None."""
    envs_not_compared: Count = 0
    """Envs of the wider side that have no counterpart."""
    parts: tuple[Part, ...] = ()
    difference: Difference | None = None
    bundle: str | None = None
    """The file that `hotloop validate --replay` reproduces it from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a bundle says beside its actions and states."""

    format: int = BUNDLE_FORMAT
    version: str
    reference: Target
    candidate: Target
    tape: str
    """`random`, `adversarial`, or the player who made it."""
    mode: str
    ignore: tuple[str, ...]
    difference: Difference
    steps_before: Count
    """Steps that led to the states the tape begins in; 0 where it begins with a reset."""
    resets: tuple[tuple[Count, Count], ...]
    """(actions before it, env): what is begun anew in the middle."""
    story: tuple[str, ...] = ()
    """What it was shrunk from, in words."""
