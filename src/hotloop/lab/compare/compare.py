"""Compare: which of two sides is faster, and whether both do the same.

First both step through one tape and must answer alike. Then A, B and a second instance of A take turns, and
are compared again between them; before anything is called faster or slower, a second run on several fresh
instances a side has to agree.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import reduce
from statistics import fmean
from string import ascii_lowercase

from hotloop.core.clock import now_ns
from hotloop.core.errors import Code, InputError, Notice, notice, unknown
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.comparison import A, B, ComparedSide, PhaseRatio, Validation
from hotloop.core.record.metadata import Instructions
from hotloop.core.turn_clock import Turn
from hotloop.envs.foreign.vector import NEXT_STEP
from hotloop.judge.compare import MOVED, SPARE_CORES, ComparisonInput, conclude
from hotloop.judge.judge import judge
from hotloop.lab.compare.contenders import (
    Contender,
    RemoteSide,
    draw_seed,
    separate_projects,
    unlike_widths,
    workload_differences,
)
from hotloop.lab.measure.loop import Plan, late_shares, measure, until_interrupted, warm_up
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.record import (
    Recorder,
    both_validations,
    describe_method,
    describe_path,
    describe_validation,
    describe_work,
    kept_so_far,
    rewritten_notices,
)
from hotloop.lab.measure.settle import AGAIN, PairedSamples, instance, measure_until_settled
from hotloop.lab.measure.sides import Garbage, Side, SubjectSide, no_collection
from hotloop.lab.validate.equal import BOX_NS, Agreement, Reach, TooFew, notices_of
from hotloop.stats.summary import FEWEST, outcome, ratio, with_metrics

ORDER = "A, B and A again in every order, shuffled in blocks"

ONCE = {A: 2, B: 1}  # Instances of each side in the first run: the second of A is the noise of the machine

# Of each side in the second run.
#
# Instances of one thing differ, by where their memory came to lie: that four of A are all slower than four of
# B by that alone happens once in 70 times, after it happened in the first run.
MOST_INSTANCES, FEWEST_INSTANCES = 4, 2

ROUNDS_SHARE = 2  # Of a run's patience, one part in so many may go into the fewest rounds of all instances

# Of the time of a run, one part in so many may go into making more instances than the fewest.
MAKING_SHARE = 8

MOST_SIDES = 8  # Sides at once, A among them
SECOND = "second."  # What the names of a second run's values begin with


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareSettings:
    """What a comparison is to do."""

    plan: Plan = field(default_factory=Plan)
    policy: str = RANDOM
    # Whether the sides may do different work, which the headline says; only unlike numbers of envs of one
    # thing are still replayed.
    unlike: bool = False
    replayed: bool = True  # Whether both must answer one tape alike first; trainings cannot
    profile: bool = False  # Whether to look at the phases too
    control: str | None = None  # A phase that the change cannot touch
    instructions: bool = False  # Whether to count the instructions of both sides too
    garbage: Garbage = "between"
    # Steps of every env that are replayed for equality, whatever they take; None is what is usual.
    equal_steps: int | None = None

    @property
    def equal(self) -> bool:
        """Whether the sides have to answer alike."""
        return self.replayed and not self.unlike

    @property
    def reach(self) -> Reach:
        """How far the sides are replayed; the budget bounds what comes after the needed steps."""
        box_ns = min(BOX_NS, self.plan.budget_ns // 4)
        if self.equal_steps is None:
            return Reach(box_ns=box_ns)
        return Reach(box_ns=box_ns, needed=self.equal_steps, episodes=False, most_ns=None)


@dataclass(slots=True, kw_only=True)
class CompareState:
    """What is known so far of two contenders."""

    unlike: tuple[str, ...]
    replayed: bool = True  # Whether the sides are held against each other at all
    agreement: Agreement | None = None
    timing_seed: int | None = None  # Of the timed turns, where it is not that of the targets
    itself: Agreement | None = None  # Of A with itself, looked at where it did not agree with B
    # The first, and the second where there had to be one.
    runs: list[PairedSamples] = field(default_factory=list)
    phases: tuple[PhaseRatio, ...] = ()
    instructions: tuple[Instructions, Instructions] | None = None  # Of A and of B
    faults: tuple[Notice, ...] = ()  # Of B
    partial: bool = True

    @property
    def too_few(self) -> TooFew | None:
        """Return what is missing to call the sides equal; None if enough steps were replayed."""
        return self.agreement.too_few if self.agreement else None

    @property
    def uncompared(self) -> str | None:
        """Return which envs of the wider side were not compared."""
        agreement = self.agreement
        if agreement is None or agreement.envs >= agreement.all_envs:
            return None
        return f"equality: {agreement.envs:,} of {agreement.all_envs:,} envs were compared"

    @property
    def shadowed(self) -> Validation | None:
        """Return what shadow encoders compared on every side of every run, warm-up and all."""
        counters = (tally.last for each in self.runs for tally in each.work.values())
        return reduce(both_validations, map(describe_validation, counters), None)

    @property
    def difference(self) -> str | None:
        """Return where the sides were seen to answer differently."""
        if self.agreement and self.agreement.difference:
            return str(self.agreement.difference)
        if words := self.first_divergence(B):
            return words
        checked = self.shadowed
        if checked and checked.mismatches:
            return f"{checked.mismatches} of {checked.comparisons} observations differ from its rival's"
        return None

    @property
    def self_difference(self) -> str | None:
        """Return where A was seen to differ from itself, so that no other side can be equal to it."""
        if self.itself and self.itself.difference:
            return str(self.itself.difference)
        return self.first_divergence(A)

    def first_divergence(self, letter: str) -> str | None:
        """Return where an instance of a side showed something else than A between timed turns."""
        words = next(filter(None, (each.first_divergence(letter) for each in self.runs)), None)
        return (
            words if words is None or self.timing_seed is None else f"{words}, with seed={self.timing_seed}"
        )


Say = Callable[[str], None]


def compare(
    a: Contender, b: Contender, asked: CompareSettings, progress: Progress = silent, say: Say | None = None
) -> Record:
    """Compare two contenders; Ctrl-C leaves a record of the rounds there were.

    `say` is told what it will take, before it begins.
    """
    with separate_projects(a, b), closing(a), closing(b):
        return judge(measure_comparison(a, b, asked, progress, say))


def compare_several(
    a: Callable[[], Contender],
    others: Sequence[Contender],
    asked: CompareSettings,
    progress: Progress = silent,
    say: Say | None = None,
) -> Record:
    """Compare each of several with A, one after the other; Ctrl-C leaves those that were compared."""
    if len(others) >= MOST_SIDES:
        raise InputError(f"{len(others) + 1} sides are given: compare takes 2 to {MOST_SIDES}")
    records: list[Record] = []
    for other in others:
        one = a()
        try:
            records.append(measure_comparison(one, other, asked, progress, say))
        finally:
            one.close()
            other.close()
        if records[-1].partial:
            break
    return judge(merge_records(records))


def merge_records(records: Sequence[Record]) -> Record:
    """One record of comparisons with the same A, about the last side; the sides are B, C, … in its values."""
    last = records[-1]
    values = {
        side_name(name, letter): raw
        for letter, record in zip(ascii_lowercase[1:], records, strict=False)
        for name, raw in record.values.items()
    }
    return with_metrics(
        replace(
            last,
            values=values,
            notices=tuple(dict.fromkeys(said for record in records for said in record.notices)),
            comparisons=tuple(each for record in records for each in record.comparisons),
            validation=reduce(both_validations, (record.validation for record in records), None),
            partial=any(record.partial for record in records),
        )
    )


def side_name(name: str, letter: str) -> str:
    """What a value is called: a side's own by its letter, and `c.a.` what was measured of A beside C."""
    second, rest = (SECOND, name.removeprefix(SECOND)) if name.startswith(SECOND) else ("", name)
    if letter == B:
        return name
    own = rest.startswith(B)
    return f"{second}{letter}{rest.removeprefix(B)}" if own else f"{second}{letter}.{rest}"


def measure_comparison(
    a: Contender, b: Contender, asked: CompareSettings, progress: Progress, say: Say | None = None
) -> Record:
    """The comparison, not judged yet."""
    phases = a.spec.phases  # A is opened first: B's code could write to A's sources
    if asked.control is not None and phases:
        find_phase(asked.control, (PYTHON, *phases))
    recorder = Recorder("compare", b.spec, b.code)
    found = CompareState(
        unlike=workload_differences(a, b, allowed=asked.unlike or not asked.replayed),
        timing_seed=draw_seed(a, b, asked.policy),
    )
    widths = unlike_widths(a, b) if asked.replayed else ""
    found.replayed = asked.equal or (bool(widths) and not found.unlike)
    if asked.unlike:
        found.unlike = (*found.unlike, *filter(None, [widths])) or (f"{a.name} against {b.name}",)
    if say is not None:
        seconds = asked.plan.budget_ns / 1e9
        say(f"equality first, then up to {seconds:g} s or six rounds, and as much again for faster or slower")

    def so_far() -> Record | None:
        return record(a, b, asked, found, recorder) if found.runs and found.runs[0].count else None

    progress = kept_so_far(so_far, progress)
    with until_interrupted(found), no_collection(asked.garbage):
        measure_contenders(a, b, asked, found, progress)
    return record(a, b, asked, found, recorder)


def measure_contenders(
    a: Contender, b: Contender, asked: CompareSettings, found: CompareState, progress: Progress
) -> None:
    """Equality first, then the clock; a second run before anything is called faster or slower."""
    progress(0, 1)
    check_equal(a, b, asked, found, progress)
    found.faults = b.faults(asked.policy)
    if found.agreement and found.agreement.difference and not asked.unlike:
        return
    making_ns = run_instances(a, b, ONCE, asked, found, progress)
    if found.runs[0].diverged:
        # A reset need not undo what was replayed: again, with sides that were just made.
        found.runs.clear()
        making_ns = run_instances(a, b, ONCE, asked, found, progress)
    first = found.runs[0]
    if first.diverged:
        return
    ratio = first.ratio()
    moved = outcome(ratio, asked.plan.band) if ratio else "cannot tell"
    if moved in MOVED and not (moved == "faster" and found.too_few):
        turn_ns = fmean(turn.ns for letter in (A, B) for turn in first.all_turns(letter))
        count = 1 if first.polls else instance_count(asked.plan, making_ns / sum(ONCE.values()), turn_ns)
        run_instances(a, b, {A: count, B: count}, asked, found, progress)
    if asked.profile:
        found.phases = compare_phases(a, b, asked.policy, asked.control, asked.plan, seed=found.timing_seed)
    if asked.instructions:
        of_a = a.instructions(asked.policy)
        found.instructions = of_a, b.instructions(asked.policy, of_a.runs[-1][0])


def check_equal(
    a: Contender, b: Contender, asked: CompareSettings, found: CompareState, progress: Progress
) -> None:
    """Replay both sides; refuse unlike numbers of envs after that, for their speed is another matter."""
    if not found.replayed:
        return
    try:
        found.agreement = a.agreement(b, asked.reach, asked.policy, progress)
    except InputError:
        if asked.unlike:
            return
        raise
    if found.agreement.difference:
        found.itself = a.agreement(a, asked.reach, asked.policy, progress)
    elif not asked.unlike and (widths := unlike_widths(a, b)):
        missing = "; ".join(str(each) for each in (found.uncompared, found.too_few) if each)
        limits = f", as far as they were compared ({missing})" if missing else ""
        raise InputError(
            f"the sides differ in {widths}, and so in the work of a call; "
            f"they answer alike, env by env{limits}: "
            "give both as many, or compare their speeds with --unlike"
        )


def instance_count(plan: Plan, making_ns: float, turn_ns: float) -> int:
    """How many of each side to make for the second run: several, more where that is quick.

    Slow sides have fewer, so that the second run comes to the rounds that an interval needs.
    """
    fit = min(
        plan.budget_ns / MAKING_SHARE / (2 * making_ns),
        plan.patience_ns / ROUNDS_SHARE / (FEWEST * 2 * turn_ns),
    )
    return max(FEWEST_INSTANCES, min(MOST_INSTANCES, int(fit)))


def run_instances(
    a: Contender,
    b: Contender,
    counts: Mapping[str, int],
    asked: CompareSettings,
    found: CompareState,
    progress: Progress,
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
    with ExitStack() as firsts, ExitStack() as others:
        opening = now_ns()
        sides: dict[str, Side] = {
            name: (firsts if name in (A, B) else others).enter_context(
                closing(contender.side(asked.policy, seed=found.timing_seed))
            )
            for name, contender in names.items()
        }
        begin = now_ns()
        warming_ns = asked.plan.warmup_ns(len(sides))
        turns_ns = {"turn_ns": asked.plan.turn_ns, "crew_turn_ns": asked.plan.crew_turn_ns}
        length, has_crew, polls = warm_up(sides, warming_ns, progress, **turns_ns)
        late = late_shares(sides, warming_ns) if has_crew else {}
        if polls or AGAIN not in sides:
            # Workers that spin take the cores from every side: only one instance of each contender may live.
            others.close()
            sides = {A: sides[A], AGAIN: sides[A], B: sides[B], instance(B, 2): sides[B]}
        found.runs.append(PairedSamples(sides, length))
        found.runs[-1].late_steps = late
        fields = fields_between(sides, found.agreement) if a.spec.seed == b.spec.seed else None
        measure_until_settled(sides, asked.plan, found.runs[-1], progress, begin_ns=begin, fields=fields)
        return begin - opening


def fields_between(sides: Mapping[str, Side], agreement: Agreement | None) -> tuple[str, ...] | None:
    """Return the fields that sides must show alike between turns; None if they cannot be held together there.

    Sides of unlike widths make as many env-steps in unlike numbers of calls. So does a single env beside a
    batch that spends a call on a reset. Sides of unlike seeds take unlike actions.
    """
    if agreement is None or len({side.grain for side in sides.values()}) > 1:
        return None
    if agreement.shown_as is not None:
        if agreement.shown_as == NEXT_STEP:
            return None
        for side in sides.values():
            if isinstance(side, (SubjectSide, RemoteSide)):
                side.show_env_by_env(agreement.shown_as)
    return agreement.fields


def record(
    a: Contender, b: Contender, asked: CompareSettings, found: CompareState, recorder: Recorder
) -> Record:
    first = found.runs[0] if found.runs else None
    gained = {name: first.work[name].gained if first else {} for name in (A, B)}
    whole = [each for each in found.runs if each.ratio() and each.noise()]
    crowded = [(each.crowded_rounds, each.count) for each in found.runs if each.crowded_rounds]
    late_a, late_b = (max((each.late_share(side) for each in found.runs), default=0.0) for side in (A, B))
    counted, too_few = found.instructions, None
    if (missing := found.too_few) is not None:
        remedy = f"{missing.needed:,} take about {missing.needed_s:,.0f} s (--equal-steps {missing.needed})"
        too_few = str(missing), f"{remedy}, and fewer can be asked for"
    side_a, side_b = describe(a, gained[A]), describe(b, gained[B])
    evidence = ComparisonInput(
        band=asked.plan.band,
        ratio=whole[0].ratio() if whole else None,
        second=whole[1].ratio() if len(whole) > 1 else None,
        others=whole[0].each() if whole else (),
        fresh=whole[1].each() if len(whole) > 1 else (),
        noise=whole[0].noise() if whole else None,
        cpu=whole[0].cpu_ratio() if whole else None,
        late=(late_a, late_b),
        phases=found.phases,
        difference=found.difference,
        itself=found.self_difference,
        crowded=f"other processes disturbed {crowded[0][0]} of {crowded[0][1]} rounds" if crowded else None,
        medians=whole[0].all_medians() if whole else None,
        rested=max((each.gain_by_rest() for each in found.runs), default=1.0),
        instructions=counted[1].per_env_step / counted[0].per_env_step if counted else None,
        too_few=too_few,
        uncompared=found.uncompared,
        sides=(side_a, side_b) if asked.equal else None,
    )
    comparison = conclude(evidence, side_a, side_b, found.unlike)
    return recorder.record(
        method=describe_method(
            b.spec,
            rounds=first.count if first else 0,
            iterations=first.made if first else 0,
            policy=asked.policy,
            warmup=first.warmup if first else 0,
            order=ORDER,
            garbage=asked.garbage,
            timing_seed=found.timing_seed,
        ),
        counters=gained[B],
        values=values(found),
        notices=(*found.faults, *remarks(a, b, asked, found)),
        partial=found.partial,
        comparisons=(comparison,),
        validation=validation(found),
        instructions=found.instructions[1] if found.instructions else None,
    )


def remarks(a: Contender, b: Contender, asked: CompareSettings, found: CompareState) -> list[Notice]:
    """What the sides did beside their loops, and what could not be compared."""
    said = []
    for letter, side, contender in (("A", A, a), ("B", B, b)):
        share = max((each.cpu_share(side) for each in found.runs), default=0.0)
        if asked.equal and share > contender.spec.threads + SPARE_CORES:
            said.append(notice(Code.BACKGROUND, side=letter, share=share, threads=contender.spec.threads))
    said += rewritten_notices({**b.sources, **a.sources})  # A was opened first
    if found.agreement:
        said += notices_of(found.agreement.left_out, found.agreement.settings)
    return said


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


def values(found: CompareState) -> dict[str, list[float]]:
    """Return what each turn of the ratio took; a second run's come after, under names of their own."""
    named = {}
    for which, each in zip(("", SECOND), found.runs, strict=False):
        for side, used_ns in each.used_ns().items():
            taken = each.turns[side]
            named[f"{which}{side}.ns_per_env_step"] = used_ns
            if not any(turn.polls for turn in taken):
                named[f"{which}{side}.cpu_share"] = [turn.cpu_ns / turn.ns for turn in taken]
    return named


def validation(found: CompareState) -> Validation | None:
    """What the replay compared, and what shadows did."""
    agreement, replayed = found.agreement, None
    if agreement:
        unequal = agreement.difference is not None or any(each.first_divergence(B) for each in found.runs)
        replayed = Validation(
            comparisons=agreement.comparisons + sum(each.looks for each in found.runs),
            mismatches=int(unequal and found.self_difference is None),
            fields=agreement.fields,
            left_out=agreement.left_out,
            too_few_steps=agreement.steps if agreement.too_few else None,
            envs_not_compared=max(agreement.all_envs - agreement.envs, 0),
        )
    return both_validations(replayed, found.shadowed)


PYTHON = "python"  # What the wall has beyond the step: Python and the binding
SMALLEST_SHARE = 0.005  # Of A's wall time; a phase below it is too short for its clock
FEWEST_ROUNDS = 24  # So many that intervals which hold for a dozen phases together still exclude the extremes

Costs = Mapping[str, float]  # Phase to ns of an env-step


def find_phase(name: str, phases: Collection[str]) -> None:
    if name not in phases:
        raise unknown("phase", name, phases, f"the phases are {', '.join(phases)}")


def compare_phases(
    a: Contender,
    b: Contender,
    policy: str,
    control: str | None,
    plan: Plan,
    *,
    seed: int | None = None,
) -> tuple[PhaseRatio, ...]:
    """Let instrumented sides take turns, and compare each phase that both have."""
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(closing(contender.side(policy, profile=True, seed=seed)))
            for name, contender in ((A, a), (B, b))
        }
        looking = Plan(
            budget_ns=plan.budget_ns // 2,
            length=warm_up(sides).length,
            min_rounds=FEWEST_ROUNDS,
            patient=True,
            block=len(sides),
        )
        turns = measure(sides, looking).turns
    costs = {name: [phase_costs(turn) for turn in taken] for name, taken in turns.items()}
    return tuple(ratios(costs, control))


def phase_costs(turn: Turn) -> Costs:
    """What each phase of an env-step took in one turn."""
    inside = {name: ns / turn.env_steps for name, ns in turn.phases.items()}
    step_ns = inside.pop("step", sum(inside.values()))
    return {PYTHON: turn.ns_per_env_step - step_ns, **inside}


def ratios(costs: Mapping[str, list[Costs]], control: str | None) -> list[PhaseRatio]:
    """Each phase's ratio, with intervals that hold for all of them together."""
    mean_ns = {name: fmean(round_[name] for round_ in costs[A]) for name in costs[A][0]}
    wall = sum(mean_ns.values())
    if control is not None:
        find_phase(control, mean_ns)
    named = [
        name
        for name, ns in mean_ns.items()
        if name in costs[B][0]
        and ns > SMALLEST_SHARE * wall
        and all(round_[name] > 0 for rounds in costs.values() for round_ in rounds)
    ]
    return [phase_ratio(costs, name, mean_ns[name] / wall, len(named), control) for name in named]


def phase_ratio(
    costs: Mapping[str, list[Costs]], name: str, share: float, together: int, control: str | None
) -> PhaseRatio:
    series = ([round_[name] for round_ in costs[side]] for side in (A, B))
    found = ratio(*series, together=together)
    worth = 1 / (1 - share + share / found.estimate)
    return PhaseRatio(phase=name, ratio=found, share=share, worth=worth, control=name == control)
