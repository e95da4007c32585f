"""Compare: which of two sides is faster, and whether both do the same.

First both step through one tape and must answer alike. Then A, B and a second instance of A take turns, and
are compared again between them; before anything is called faster or slower, a second run on several fresh
instances a side has to agree.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import reduce

from hotloop.core.clock import now_ns
from hotloop.core.notices import Code, Notice, notice
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
    field_words,
)
from hotloop.judge.compare import MOVED, SPARE_CORES, Evidence, conclude
from hotloop.judge.judge import judge
from hotloop.lab.compare.contenders import Contender, kept_apart, unlikeness
from hotloop.lab.compare.phases import check_control, compare_phases
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.record import Recorder, describe_method, kept_so_far
from hotloop.lab.measure.settle import WARMUP_SHARE, Found, Plan, instance, take_turns
from hotloop.lab.measure.stepping import Garbage, no_collection
from hotloop.lab.measure.turns import WARMUP_NS, warm_up
from hotloop.lab.measure.work import both_validations, describe_path, describe_validation, describe_work
from hotloop.lab.validate.equal import BOX_NS, Agreement
from hotloop.stats.intervals import FEWEST
from hotloop.stats.ratio import outcome

ORDER = "A, B and A again in every order, shuffled in blocks"

ONCE = {A: 2, B: 1}
"""Instances of each side in the first run: the second of A is the noise of the machine."""

MOST_INSTANCES, FEWEST_INSTANCES = 4, 2
"""Of each side in the second run.

Instances of one thing differ, by where their memory came to lie: that four of A are all slower than four of B
by that alone happens once in 70 times, after it happened in the first run.
"""

MAKING_SHARE = 8
"""Of the time of a run, one part in so many may go into making more instances than the fewest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a comparison is to do."""

    plan: Plan = field(default_factory=Plan)
    policy: str = RANDOM
    unlike: bool = False
    """Whether the sides may do different things; then nothing is replayed, and the headline says so."""
    ignore: tuple[str, ...] = ()
    """Fields in which they need not be alike; the contenders leave them out."""
    replayed: bool = True
    """Whether both must answer one tape alike first; trainings cannot."""
    profile: bool = False
    """Whether to look at the phases too."""
    control: str | None = None
    """A phase that the change cannot touch."""
    instructions: bool = False
    """Whether to count the instructions of both sides too."""
    garbage: Garbage = "between"

    @property
    def equal(self) -> bool:
        """Whether the sides have to answer alike."""
        return self.replayed and not self.unlike

    @property
    def box_ns(self) -> int:
        """What the replay may take."""
        return min(BOX_NS, self.plan.budget_ns // 4)


@dataclass(slots=True, kw_only=True)
class SoFar:
    """What is known so far of two contenders."""

    unlike: tuple[str, ...]
    agreement: Agreement | None = None
    itself: Agreement | None = None
    """Of A with itself, looked at where it did not agree with B."""
    runs: list[Found] = field(default_factory=list)
    """The first, and the second where there had to be one."""
    phases: tuple[PhaseRatio, ...] = ()
    instructions: tuple[Instructions, Instructions] | None = None
    """Of A and of B."""
    faults: tuple[Notice, ...] = ()
    """Of B."""
    partial: bool = True


Say = Callable[[str], None]


def unsaid(words: str) -> None:
    """Say it to nobody."""


def compare(
    a: Contender, b: Contender, asked: Asked, progress: Progress = silent, say: Say = unsaid
) -> Record:
    """Compare two contenders; Ctrl-C leaves a record of the rounds there were.

    `say` is told what it will take, before it begins.
    """
    with kept_apart(a, b), closing(a), closing(b):
        return judge(compared(a, b, asked, progress, say))


def beforehand(plan: Plan) -> str:
    seconds = plan.budget_ns / 1e9
    return f"equality first, then up to {seconds:g} s or one round, and as much again for faster or slower"


def compared(a: Contender, b: Contender, asked: Asked, progress: Progress, say: Say = unsaid) -> Record:
    """The comparison, not judged yet."""
    check_control(asked.control, a.spec)
    recorder = Recorder("compare", b.spec, b.code)
    found = SoFar(unlike=unlikeness(a, b, allowed=asked.unlike or not asked.replayed))
    if asked.unlike and not found.unlike:
        found.unlike = (f"{a.name} against {b.name}",)
    say(beforehand(asked.plan))

    def so_far() -> Record | None:
        return record(a, b, asked, found, recorder) if found.runs and found.runs[0].count else None

    progress = kept_so_far(so_far, progress)
    try:
        with no_collection(asked.garbage):
            measure(a, b, asked, found, progress)
        found.partial = False
    except KeyboardInterrupt:
        found.partial = True
    return record(a, b, asked, found, recorder)


def measure(a: Contender, b: Contender, asked: Asked, found: SoFar, progress: Progress) -> None:
    """Equality first, then the clock; a second run before anything is called faster or slower."""
    progress(0, 1)
    if asked.equal:
        found.agreement = a.agreement(b, asked.box_ns, asked.policy)
        if found.agreement.difference:
            found.itself = a.agreement(a, asked.box_ns, asked.policy)
    found.faults = b.faults(asked.policy)
    if found.agreement and found.agreement.difference:
        return
    making_ns = run(a, b, ONCE, asked, found, progress)
    if found.runs[0].apart:  # a reset need not undo what was replayed: again, with sides that were just made
        found.runs.clear()
        making_ns = run(a, b, ONCE, asked, found, progress)
    first = found.runs[0]
    if first.apart:
        return
    if first.count >= FEWEST and outcome(first.ratio(), asked.plan.band) in MOVED:
        count = instances(asked.plan, making_ns / sum(ONCE.values()))
        run(a, b, {A: count, B: count}, asked, found, progress)
    if asked.profile:
        found.phases = compare_phases(a, b, asked.policy, asked.control, asked.plan)
    if asked.instructions:
        of_a = a.instructions(asked.policy)
        found.instructions = of_a, b.instructions(asked.policy, of_a.runs[-1][0])


def instances(plan: Plan, making_ns: float) -> int:
    """How many of each side to make for the second run: several, more where that is quick."""
    fit = plan.budget_ns / MAKING_SHARE / (2 * making_ns)
    return max(FEWEST_INSTANCES, min(MOST_INSTANCES, int(fit)))


def run(
    a: Contender, b: Contender, counts: Mapping[str, int], asked: Asked, found: SoFar, progress: Progress
) -> int:
    """Open so many instances of each side, warm them up and let them take turns; says how long opening took.

    The sides are opened in turn, and in another order the second time: who came first shall not matter.
    """
    order = (A, B) if not found.runs else (B, A)
    names = {
        instance(letter, number): {A: a, B: b}[letter]
        for number in range(1, max(counts.values()) + 1)
        for letter in order
        if number <= counts[letter]
    }
    with ExitStack() as stack:
        opening = now_ns()
        sides = {
            name: stack.enter_context(closing(contender.side(asked.policy)))
            for name, contender in names.items()
        }
        begin = now_ns()
        warming_ns = min(WARMUP_NS, asked.plan.budget_ns // (WARMUP_SHARE * len(sides)))
        length = warm_up(sides, warming_ns, progress, turn_ns=asked.plan.turn_ns)
        found.runs.append(Found(sides, length))
        equal = asked.equal and len({side.grain for side in sides.values()}) == 1
        take_turns(sides, asked.plan, found.runs[-1], progress, begin_ns=begin, equal=equal)
        return begin - opening


def record(a: Contender, b: Contender, asked: Asked, found: SoFar, recorder: Recorder) -> Record:
    first = found.runs[0] if found.runs else None
    gained = {name: first.work[name].gained if first else {} for name in (A, B)}
    comparison = weigh(a, b, asked, found, gained)
    return recorder.record(
        method=method(b, asked, first),
        counters=gained[B],
        values=values(found),
        notices=(*found.faults, *remarks(a, b, asked, found)),
        partial=found.partial,
        comparisons=(comparison,),
        validation=validation(found),
        instructions=found.instructions[1] if found.instructions else None,
    )


def remarks(a: Contender, b: Contender, asked: Asked, found: SoFar) -> list[Notice]:
    """What the sides did beside their loops, and what could not be compared."""
    said = []
    for letter, side, contender in (("A", A, a), ("B", B, b)):
        share = max((each.cpu_share(side) for each in found.runs), default=0.0)
        if asked.equal and share > contender.spec.threads + SPARE_CORES:
            said.append(notice(Code.BACKGROUND, side=letter, share=share, threads=contender.spec.threads))
    left_out = found.agreement.left_out if found.agreement else ()
    if left_out:
        said.append(notice(Code.NOT_COMPARED, fields=field_words(left_out)))
    return said


def weigh(
    a: Contender, b: Contender, asked: Asked, found: SoFar, gained: Mapping[str, Mapping[str, int]]
) -> Comparison:
    """Put together what is known and what follows from it."""
    whole = [each for each in found.runs if each.count >= FEWEST]
    side_a, side_b = describe(a, gained[A]), describe(b, gained[B])
    evidence = Evidence(
        band=asked.plan.band,
        ratio=whole[0].ratio() if whole else None,
        second=whole[1].ratio() if len(whole) > 1 else None,
        others=whole[0].each() if whole else (),
        fresh=whole[1].each() if len(whole) > 1 else (),
        noise=whole[0].noise() if whole else None,
        cpu=whole[0].cpu_ratio() if whole else None,
        late=late(found),
        phases=found.phases,
        difference=difference(found),
        itself=itself(found),
        instructions=instructions_ratio(found),
        sides=(side_a, side_b) if asked.equal else None,
    )
    return conclude(evidence, side_a, side_b, found.unlike)


def difference(found: SoFar) -> str | None:
    """Where the sides were seen to answer differently."""
    if found.agreement and found.agreement.difference:
        return str(found.agreement.difference)
    for each in found.runs:
        if parted := each.parted(B):
            return parted
    checked = shadowed(found)
    if checked and checked.mismatches:
        return f"{checked.mismatches} of {checked.comparisons} observations differ from its rival's"
    return None


def itself(found: SoFar) -> str | None:
    """Where A was seen to differ from itself, so that nobody can be equal to it."""
    if found.itself and found.itself.difference:
        return str(found.itself.difference)
    return next((parted for each in found.runs if (parted := each.parted(A))), None)


def late(found: SoFar) -> tuple[float, float]:
    """The part of A's and of B's CPU time that came after their steps had returned, in whichever run more."""
    a, b = (max((each.late_share(side) for each in found.runs), default=0.0) for side in (A, B))
    return a, b


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
        for side, taken in each.turns.items():
            named[f"{which}{side}.ns_per_env_step"] = [turn.ns_per_env_step for turn in taken]
            if all(turn.cpu_ns is not None for turn in taken):
                named[f"{which}{side}.cpu_share"] = [(turn.cpu_ns or 0) / turn.ns for turn in taken]
                named[f"{which}{side}.off_share"] = [turn.off_ns / turn.ns for turn in taken]
    return named


def method(b: Contender, asked: Asked, first: Found | None) -> Method:
    return describe_method(
        b.spec,
        rounds=first.count if first else 0,
        iterations=first.made if first else 0,
        policy=asked.policy,
        warmup=first.warmup if first else 0,
        order=ORDER,
        garbage=asked.garbage,
    )


def validation(found: SoFar) -> Validation | None:
    """What the replay compared, and what shadows did."""
    agreement, replayed = found.agreement, None
    if agreement:
        unequal = agreement.difference is not None or any(each.parted(B) for each in found.runs)
        replayed = Validation(
            comparisons=agreement.comparisons + sum(each.looks for each in found.runs),
            mismatches=int(unequal and itself(found) is None),
            fields=agreement.fields,
            left_out=agreement.left_out,
        )
    return both_validations(replayed, shadowed(found))


def shadowed(found: SoFar) -> Validation | None:
    """What shadow encoders compared on every side of every run, warm-up and all."""
    counters = (tally.last for each in found.runs for tally in each.work.values())
    return reduce(both_validations, map(describe_validation, counters), None)
