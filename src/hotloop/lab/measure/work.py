"""A subject's own account of a run: which path ran and how much work was done."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from hotloop.core.errors import SetupError
from hotloop.core.record.comparison import Validation
from hotloop.core.record.metadata import LOG_COUNTERS, PathRan, Work
from hotloop.envs.shadow import timing_ratio, without_times

# Implementation to the counter kept by the code that did its steps.
STEPS_OF = {"native": "native_steps", "reference": "reference_steps", "foreign": "foreign_steps"}

COVERAGE = "coverage."

# What the names of counters begin with: mechanics that fired, and the choices each player made.
DECISIONS = "decisions."


class Tally:
    """What counters gained over a stretch of a run: from `begin` to the last `note`."""

    def __init__(self, read: Callable[[], Mapping[str, int]]) -> None:
        self._read = read
        self.begin()

    def begin(self) -> None:
        self._first = self._last = self._read()

    def note(self) -> None:
        self._last = self._read()

    @property
    def last(self) -> Mapping[str, int]:
        """The counters as they were noted last."""
        return self._last

    @property
    def gained(self) -> dict[str, int]:
        """Counter to gain; one that is new counts from zero."""
        return {name: count - self._first.get(name, 0) for name, count in self._last.items()}


def describe_work(counters: Mapping[str, int]) -> Work:
    """Say how much was done, from the counters of the measured rounds."""
    return Work(
        env_steps=counters.get("env_steps", 0),
        agent_steps=counters.get("agent_steps", 0),
        resets=counters.get("resets", 0),
        decisions=sum(n for name, n in counters.items() if name.startswith(DECISIONS)),
        updates=counters.get("updates", 0),
        tokens=counters.get("tokens", 0),
        rows=counters.get("rows", 0),
        coverage={
            name.removeprefix(COVERAGE): n for name, n in counters.items() if name.startswith(COVERAGE)
        },
    )


# The counter of what an engine compared; that of what differed has `mismatches` or `mismatch_count`.
COMPARISONS = re.compile(r"(.*)comparison(s|_count)")


def describe_validation(counters: Mapping[str, int]) -> Validation | None:
    """Say what a shadow found, ours or that of an env which counts it; None where there was none."""
    for name, comparisons in counters.items():
        named = COMPARISONS.fullmatch(name)
        if named is None or not comparisons:
            continue
        mismatches = counters.get(f"{named[1]}mismatch{'es' if named[2] == 's' else named[2]}")
        if mismatches is not None:
            ratio = timing_ratio(counters)
            return Validation(comparisons=comparisons, mismatches=mismatches, timing_ratio=ratio)
    return None


def refuse_other_work(clean: Mapping[str, int], watched: Mapping[str, int]) -> None:
    """Counters differ only if the instrument changed what was done; those of time are no work."""
    clean, watched = only_work(clean), only_work(watched)
    if clean != watched:
        different = sorted(name for name in clean if clean[name] != watched.get(name))
        raise SetupError(
            f"profiling changed the work done ({', '.join(different)}): this is a bug, report it"
        )


def only_work(counters: Mapping[str, int]) -> dict[str, int]:
    """Counters without those of time, and of how a log was written."""
    return {name: n for name, n in without_times(counters).items() if not name.startswith(LOG_COUNTERS)}


def both_validations(a: Validation | None, b: Validation | None) -> Validation | None:
    """What either of two compared, counted together."""
    if a is None or b is None:
        return a or b
    return replace(
        a,
        comparisons=a.comparisons + b.comparisons,
        mismatches=a.mismatches + b.mismatches,
        timing_ratio=a.timing_ratio or b.timing_ratio,
    )


def describe_path(requested: str, counters: Mapping[str, int], *, claimed: str = "") -> PathRan:
    """Say which implementation ran, as shares of the steps.

    Refuses native that was not native throughout: where it was asked for, and where the subject claims it.
    """
    steps = counters.get("env_steps", 0)
    shares = {impl: counters.get(name, 0) / steps for impl, name in STEPS_OF.items()} if steps else {}
    if claimed == "foreign" and "native_steps" in counters and steps:
        shares["foreign"] = 1.0 - shares["native"]  # as somebody's env says it of itself
    ran = {impl: share for impl, share in shares.items() if share > 0}
    if "native" in (requested, claimed) and steps and ran.get("native", 0.0) < 1.0:
        counted = ", ".join(f"{name} {counters[name]:,}" for name in STEPS_OF.values() if name in counters)
        raise SetupError(
            f"impl=native was {'asked for' if requested == 'native' else 'claimed'} but "
            f"{ran.get('native', 0.0):.1%} of the steps ran natively "
            f"(the counters say {counted or 'nothing'} of {steps:,}): "
            "build the native module (hotloop doctor says how), or ask for impl=auto"
        )
    return PathRan(requested=requested, ran=ran, counters=dict(counters))
