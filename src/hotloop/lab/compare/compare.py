"""Compare: which of two sides is faster, and whether both do the same.

First both step through one tape and must answer alike. Then A, B and a second instance of A take turns;
before anything is called slower, a second run on fresh instances has to agree.
"""

from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import reduce

from hotloop.core.notices import Notice
from hotloop.core.progress import Progress, silent
from hotloop.core.record import (
    A,
    B,
    ComparedSide,
    Comparison,
    Instructions,
    Method,
    PhaseRatio,
    Record,
    Validation,
)
from hotloop.judge.compare import Evidence, conclude
from hotloop.judge.judge import judge
from hotloop.lab.compare.contenders import Contender, unlikeness
from hotloop.lab.compare.phases import check_control, compare_phases
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.record import Recorder, describe_method
from hotloop.lab.measure.stepping import no_collection
from hotloop.lab.measure.turns import AGAIN, Found, Plan, take_turns, warm_up
from hotloop.lab.measure.work import both_validations, describe_path, describe_validation, describe_work
from hotloop.lab.validate.equal import Agreement
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import outcome

ORDER = "A, B and A again in every order, shuffled in blocks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a comparison is to do."""

    plan: Plan = field(default_factory=Plan)
    policy: str = RANDOM
    unlike: bool = False
    """Whether the sides may do different things; then nothing is replayed, and the headline says so."""
    replayed: bool = True
    """Whether both must answer one tape alike first; trainings cannot."""
    profile: bool = False
    """Whether to look at the phases too."""
    control: str | None = None
    """A phase that the change cannot touch."""
    instructions: bool = False
    """Whether to count the instructions of both sides too."""


@dataclass(slots=True, kw_only=True)
class SoFar:
    """What is known so far of two contenders."""

    unlike: tuple[str, ...]
    agreement: Agreement | None = None
    runs: list[Found] = field(default_factory=list)
    """The first, and the second where there had to be one."""
    phases: tuple[PhaseRatio, ...] = ()
    instructions: tuple[Instructions, Instructions] | None = None
    """Of A and of B."""
    faults: tuple[Notice, ...] = ()
    """Of B."""
    partial: bool = True


def compare(a: Contender, b: Contender, asked: Asked, progress: Progress = silent) -> Record:
    """Compare two contenders; Ctrl-C leaves a record of the rounds there were."""
    with closing(a), closing(b):
        return judge(compared(a, b, asked, progress))


def compared(a: Contender, b: Contender, asked: Asked, progress: Progress) -> Record:
    """The comparison, not judged yet."""
    check_control(asked.control, a.spec)
    recorder = Recorder("compare", b.spec, b.code)
    found = SoFar(unlike=unlikeness(a, b, allowed=asked.unlike or not asked.replayed))
    if asked.unlike and not found.unlike:
        found.unlike = (f"{a.name} against {b.name}",)
    try:
        with no_collection():
            measure(a, b, asked, found, progress)
        found.partial = False
    except KeyboardInterrupt:
        found.partial = True
    return record(a, b, asked, found, recorder)


def measure(a: Contender, b: Contender, asked: Asked, found: SoFar, progress: Progress) -> None:
    """Equality first, then the clock; a second run before anything is called slower."""
    if asked.replayed and not asked.unlike:
        found.agreement = a.agreement(b)
    found.faults = b.faults()
    if found.agreement and found.agreement.difference:
        return
    run({A: a, B: b, AGAIN: a}, asked, found, progress)
    if outcome(found.runs[0].ratio(), asked.plan.band) == "slower":
        run({B: b, AGAIN: a, A: a}, asked, found, progress)
    if asked.profile:
        found.phases = compare_phases(a, b, asked.policy, asked.control, asked.plan)
    if asked.instructions:
        of_a = a.instructions(asked.policy)
        found.instructions = of_a, b.instructions(asked.policy, of_a.runs[-1][0])


def run(contenders: Mapping[str, Contender], asked: Asked, found: SoFar, progress: Progress) -> None:
    """Open the sides, in this order, warm them up and let them take turns."""
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(closing(contender.side(asked.policy)))
            for name, contender in contenders.items()
        }
        found.runs.append(Found(sides, warm_up(sides)))
        take_turns(sides, asked.plan, found.runs[-1], progress)


def record(a: Contender, b: Contender, asked: Asked, found: SoFar, recorder: Recorder) -> Record:
    first = found.runs[0] if found.runs else None
    gained = {name: first.work[name].gained if first else {} for name in (A, B)}
    comparison = weigh(a, b, asked, found, gained)
    return recorder.record(
        method=method(b, asked, first),
        counters=gained[B],
        values=values(found),
        notices=found.faults,
        partial=found.partial,
        comparisons=(comparison,),
        validation=validation(found),
        instructions=found.instructions[1] if found.instructions else None,
    )


def weigh(
    a: Contender, b: Contender, asked: Asked, found: SoFar, gained: Mapping[str, Mapping[str, int]]
) -> Comparison:
    """Put together what is known and what follows from it."""
    ratios = [each.ratio() for each in found.runs if each.count >= FEWEST]
    noise = found.runs[0].ratio(A, AGAIN) if ratios else None
    side_a, side_b = describe(a, gained[A]), describe(b, gained[B])
    evidence = Evidence(
        band=asked.plan.band,
        ratio=ratios[0] if ratios else None,
        second=ratios[1] if len(ratios) > 1 else None,
        noise=noise,
        phases=found.phases,
        difference=difference(found),
        instructions=instructions_ratio(found),
        sides=(side_a, side_b) if asked.replayed and not asked.unlike else None,
    )
    return conclude(evidence, side_a, side_b, found.unlike)


def difference(found: SoFar) -> str | None:
    """Where the sides were seen to answer differently."""
    if found.agreement and found.agreement.difference:
        return str(found.agreement.difference)
    checked = shadowed(found)
    if checked and checked.mismatches:
        return f"{checked.mismatches} of {checked.comparisons} observations differ from its rival's"
    return None


def instructions_ratio(found: SoFar) -> float | None:
    if found.instructions is None:
        return None
    of_a, of_b = found.instructions
    return of_b.per_env_step / of_a.per_env_step


def describe(contender: Contender, counters: Mapping[str, int]) -> ComparedSide:
    spec = contender.spec
    return ComparedSide(
        name=contender.name,
        run_id=None,
        target=spec.described,
        code=contender.code,
        work=describe_work(counters),
        path=describe_path(spec.requested, counters, claimed=spec.impl),
    )


def values(found: SoFar) -> dict[str, list[float]]:
    """What every turn took; a second run's come after, under names of their own."""
    named = {}
    for which, each in zip(("", "second."), found.runs, strict=False):
        for side, taken in each.ns.items():
            named[f"{which}{side}.ns_per_env_step"] = taken
    return named


def method(b: Contender, asked: Asked, first: Found | None) -> Method:
    return describe_method(
        b.spec,
        rounds=first.count if first else 0,
        iterations=first.made if first else 0,
        policy=asked.policy,
        warmup=first.warmup if first else 0,
        order=ORDER,
    )


def validation(found: SoFar) -> Validation | None:
    """What the replay compared, and what shadows did."""
    agreement, replayed = found.agreement, None
    if agreement:
        mismatches = int(agreement.difference is not None)
        replayed = Validation(comparisons=agreement.comparisons, mismatches=mismatches)
    return both_validations(replayed, shadowed(found))


def shadowed(found: SoFar) -> Validation | None:
    """What shadow encoders compared on every side of every run, warm-up and all."""
    counters = (tally.last for each in found.runs for tally in each.work.values())
    return reduce(both_validations, map(describe_validation, counters), None)
