"""What comparing two sides found: speeds, equality, distributions, and steps of an adoption."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from math import log
from typing import Literal

from hotloop.core.record.codec import Amount, Count
from hotloop.core.record.metadata import CodeInfo, Described, PathRan, Work
from hotloop.core.settings import Target

BYTES = "bytes"  # The strictest way to compare, and the usual one
BUNDLE_FORMAT = 1  # Of the files that show a difference again


# A field of one of several agents, or one part of several: the words before its number, and the number.
NUMBERED = re.compile(r"(.*?)(\d+)")

FEWEST_IN_ROW = 3

# Fields that are named; of more a reader is told how many there are, and the record has them all.
MOST_NAMED = 10


def field_words(names: Iterable[str]) -> str:
    """Return names of fields for a reader: those that only count up by their first and last number."""
    rows: dict[str, list[str]] = {}
    for name in names:
        found = NUMBERED.fullmatch(name)
        rows.setdefault(found[1] if found else name, []).append(found[2] if found else "")
    words = list[str]()
    for stem, numbers in rows.items():
        counted = sorted(int(each) for each in numbers if each)
        is_gapless = counted == list(range(counted[0], counted[-1] + 1)) if counted else False
        if is_gapless and len(counted) >= FEWEST_IN_ROW:
            words.append(f"{stem}{counted[0]} to {counted[-1]}")
        else:
            words += [f"{stem}{each}" for each in numbers]
    more = len(words) - MOST_NAMED
    return ", ".join([*words[:MOST_NAMED], *([f"and {more:,} more"] if more > 0 else [])])


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first place where two sides answered differently."""

    step: Count  # Steps that had been played; 0 is the reset
    field: str
    index: tuple[Count, ...]  # Into the field; the env first, then the agent where there is one
    a: str  # What the reference says
    b: str
    agent: str | None = None  # Whose output it is; None where it is the whole env's
    before: str | None = None  # What both said in this place the tick before; None at the first reset
    after_reset: bool = False  # Whether it was seen after a reset in the middle, before the next step

    def __str__(self) -> str:
        return f"step {self.step}, {self.field}{list(self.index)}: {self.a} against {self.b}"

    @property
    def env(self) -> int | None:
        """None where whole fields are unlike."""
        return self.index[0] if self.index else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedTape:
    """One tape, played by the candidate in one way."""

    tape: str  # `random`, `adversarial`, or the player who made it
    num_envs: Count
    threads: Count
    steps: Count  # Calls, each a step of every env
    comparisons: Count
    # Whether hashes of everything were compared, with those of the reference's one play.
    by_digest: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """How much was compared; one comparison is one agent's full output at one step."""

    comparisons: Count
    mismatches: Count
    # How many times as long the reference took: of one phase alone where a shadow compared them.
    timing_ratio: Amount | None = None
    mode: str = BYTES  # `bytes`, `ulp:N` or `tolerance:T`
    against: str | None = None  # The reference; None where one way shadowed another
    fields: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()  # Fields that both have and that were not compared
    # How many steps were replayed, if they are too few to call the sides equal; else None.
    too_few_steps: Count | None = None
    envs_not_compared: Count = 0  # Envs of the wider side that have no counterpart
    parts: tuple[PlayedTape, ...] = ()
    difference: Difference | None = None
    bundle: str | None = None  # The file that `hotloop validate --replay` reproduces it from


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFacts:
    """What a bundle says beside its actions and states."""

    format: int = BUNDLE_FORMAT
    version: str
    reference: Target
    candidate: Target
    tape: str  # `random`, `adversarial`, or the player who made it
    mode: str
    ignore: tuple[str, ...]
    difference: Difference
    steps_before: Count  # Steps that led to the states the tape begins in; 0 where it begins with a reset
    resets: tuple[tuple[Count, Count], ...]  # (actions before it, env): what is begun anew in the middle
    story: tuple[str, ...] = ()  # What it was shrunk from, in words


A, B = "a", "b"  # The baseline, and what is compared with it: what the names of their values begin with
RETURNS = ("a.return", "b.return")  # One value an episode; the episodes of both sides have the same seeds

AFTER = "return_after_env_steps"

Outcome = Literal["faster", "slower", "same", "cannot tell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times as long A took as B: above 1 means that B is faster."""

    estimate: Amount
    low: Amount
    high: Amount
    pairs: Count  # Rounds that measured both sides; 0 where the sides were not measured in turns


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSide:
    """One side of a comparison, as far as its own record would say it."""

    name: str  # The target and its keys, or a commit
    run_id: str | None  # Of the record it was read from; None where it was measured in the comparison itself
    target: Described
    code: CodeInfo
    work: Work
    path: PathRan


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRatio:
    """One phase on both sides."""

    phase: str
    ratio: Ratio  # With an interval that holds for all phases together
    share: float  # Of A's wall time
    worth: float  # How many times as fast the whole would be by this phase's change alone
    control: bool = False  # Whether the change cannot touch it, so that it should not have moved


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Side A, the baseline, against B, which is what the record itself is about."""

    a: ComparedSide
    b: ComparedSide
    # What differs beyond the variant; more than nothing only where that was allowed.
    unlike: tuple[str, ...] = ()
    band: Amount  # Changes smaller than this are called the same
    ratio: Ratio | None
    noise: Ratio | None = None  # A against A, measured beside it
    second: Ratio | None = None  # The run that had to agree before anything was called faster or slower
    # Each instance of A against each of B, in the first run and in the second: they had to agree too.
    others: tuple[Ratio, ...] = ()
    cpu: Ratio | None = None  # By CPU time instead of wall time
    per_work: Ratio | None = None  # For as much work, where the sides did different work
    visible: float | None = None  # The smallest change that would have been seen
    # How many more would settle what could not be told; None where none would.
    more_pairs: Count | None = None
    phases: tuple[PhaseRatio, ...] = ()
    instructions: float | None = None  # Instructions of an env-step, B over A
    difference: str | None = None  # Where the two sides first answered differently
    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """One thing that both sides were compared in."""

    what: str  # `return`, `observation 3 below 0.25`, `reward after action 1 in state 17`, ..
    policy: str
    difference: float  # Candidate less reference, in its own unit
    low: float
    high: float  # Of an interval that holds for all that were compared at once
    seen_from: Amount  # The size from which a difference would have been found four times in five
    spread: Amount  # How much the thing itself varies, in the same unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Things of one kind, compared under one policy."""

    # `return`, `length`, `rewards`, `observations`, `transitions by action`, `transitions by state`.
    name: str
    policy: str
    compared: Count
    bound: Amount  # No difference is larger, in spreads, but those that were found; 0 where all were
    seen_from: Amount  # In spreads: that of the worst one
    worst: Contrast  # The one with that bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistical:
    """Two sides by the distributions of what they do."""

    against: str
    # Episodes of each side and policy, in pairs of the same seed and the same chances of the policy.
    pairs: Count
    needed: Count  # Pairs below which nothing can be told
    policies: tuple[str, ...]
    # How rarely anything at all is found once where there is no difference; it has to be found twice.
    one_false_in: Count
    margin: Amount  # In spreads: differences that are smaller do not count
    groups: tuple[Group, ...]
    # Found twice, as they were the second time; the largest, in their errors, first.
    differences: tuple[Contrast, ...] = ()
    once: Count = 0  # Found the first time and not again
    # Env-steps that each side's own policy was trained for; 0 where no policy was transferred.
    trained_steps: Count = 0

    @property
    def rarest(self) -> int:
        """Episodes in which something must come once so as to be seen, but in 1 of `one_false_in` cases."""
        return int(self.pairs / log(self.one_false_in))

    @property
    def compared(self) -> int:
        return sum(group.compared for group in self.groups)


STEPS = ("validate at scale", "measure the impact", "make it the default", "remove the old path")


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """All that was compared of one workload."""

    target: str
    keys: dict[str, object]  # The workload's own values
    comparisons: int
    mismatches: int
    runs: int
    # Of the newest run; a mismatch is open until a later run of the same workload finds none.
    difference: Difference | None
    bundle: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionChecklist:
    """Where a candidate stands."""

    candidate: str
    reference: str
    configurations: tuple[Configuration, ...]
    wanted: int  # Comparisons of each target that count as a validation at scale
    missing: tuple[str, ...]  # Targets that have fewer
    outcome: Outcome | None  # Of the candidate against the reference; None where they were not timed
    alone: Ratio | None  # What was replaced, by itself: how many times as long the reference takes
    whole: Ratio | None  # A whole env-step
    part: str  # What was replaced, in words
    is_default: bool
    step: int  # Which of the four is next, from 1; 5 where all are done
    why: str
    command: str

    @property
    def comparisons(self) -> int:
        return sum(each.comparisons for each in self.configurations)

    @property
    def mismatches(self) -> int:
        return sum(each.mismatches for each in self.configurations)
