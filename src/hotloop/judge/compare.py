"""The verdict of a comparison, live or of two records, from its evidence and from nothing else."""

from dataclasses import dataclass, replace
from math import inf

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.record import (
    A,
    B,
    ComparedSide,
    Comparison,
    Outcome,
    PhaseRatio,
    Ratio,
    Record,
    own_commit,
    run_id,
)
from hotloop.judge.alike import (
    Unlike,
    check_whole,
    differences,
    different_work,
    setting_of,
    unlike_error,
    unlike_work,
)
from hotloop.judge.judge import STEAL_SHARE, busy_load, headline, judge
from hotloop.stats.ratio import FEWEST_APART, agrees, apart, drowned, leans, more_pairs, outcome, visible
from hotloop.stats.summary import with_metrics

BAND = 0.02
"""Changes smaller than this are called the same."""

NEIGHBOURS = 1.5
"""What steady runs of the same code were seen to differ by on a shared machine, minutes apart."""

MOVED: tuple[Outcome, ...] = ("faster", "slower")
"""What has to be seen twice."""

LATE_SHARE = 0.1
"""Of a side's CPU time that may come after its steps have returned, and the speed still mean something."""

SPARE_CORES = 0.5
"""CPU seconds a second beyond a side's threads that are worth a notice."""

UNKNOWN = "equality not known"

REPEATABLE = "make it deterministic (reseed=true seeds every episode, where a reset draws a seed of its own)"
"""What helps where a side differs from itself."""

IN_TURNS = "hotloop compare measures both in turns"
"""What to do where two runs, one after the other, could not tell."""


def versus(a: Record, b: Record, *, band: float = BAND, unlike: bool = False) -> Comparison:
    """Compare a baseline with a later record; the ratio is tA/tB, above 1 where b is faster.

    InputError where they are unlike (unless that is allowed, and then said) or one was broken off.
    """
    check_whole(a)
    check_whole(b)
    different = differences(setting_of(a), setting_of(b))
    if different and not unlike:
        raise unlike_error(a.run_id, b.run_id, different)
    ratio = ratio_of(a, b)
    found, why = decide(a, b, ratio, band)
    return Comparison(
        a=side_of(a, b),
        b=side_of(b, a),
        unlike=different,
        band=band,
        ratio=ratio,
        visible=None if ratio is None else smallest_visible(ratio, band),
        outcome=found,
        why=why,
    )


def confirm(first: Comparison, second: Comparison) -> Comparison:
    """What is left of faster or slower, now that a second run was held against the same."""
    if second.outcome == first.outcome:
        return replace(first, second=second.ratio, why=f"{first.why}, and a second run agrees")
    why = f"{first.outcome} at first, but a second run was {second.outcome}: {IN_TURNS}"
    return replace(first, second=second.ratio, outcome="cannot tell", why=why)


def side_of(record: Record, other: Record) -> ComparedSide:
    """A side by its label; or by its target and the keys in which its variant differs; or by its run."""
    mine, others = record.target.variant, other.target.variant
    keys = [f"{key}={value}" for key, value in mine.items() if value != others.get(key)]
    return ComparedSide(
        name=record.label or (" ".join([record.target.name, *keys]) if keys else record.run_id),
        run_id=record.run_id,
        target=record.target,
        code=record.code,
        work=record.work,
        path=record.path,
    )


def ratio_of(a: Record, b: Record) -> Ratio | None:
    """tA/tB with an interval that knows the two were not measured in turns; None where rounds are too few.

    A busy machine widens it: beside n others a run may have had a core to itself, or 1/(n + 1) of one. So
    does a shared one, whose speed is decided by neighbours that nobody here can see.
    """
    doubt = (1 + load_beside(a, b)) * (NEIGHBOURS if is_shared(a) or is_shared(b) else 1)
    return apart(round_times(a), round_times(b), doubt=doubt)


def is_shared(record: Record) -> bool:
    """Whether a hypervisor gives some of the machine's time to others."""
    return (record.machine.get("steal_share") or 0.0) > STEAL_SHARE


def load_beside(a: Record, b: Record) -> float:
    """The load that one of the two was measured under; 0 where the machine was not busy."""
    return max(busy_load(record.machine) or 0.0 for record in (a, b))


def round_times(record: Record) -> list[float]:
    """Nanoseconds of an env-step, or of whatever else its speed counts, one value a round."""
    speeds = headline(record)
    if not all(0 < speed < inf for speed in speeds):
        raise InputError(f"{record.run_id} has a round without a speed: it cannot be compared")
    return [1e9 / speed for speed in speeds]


def decide(a: Record, b: Record, ratio: Ratio | None, band: float) -> tuple[Outcome, str]:
    """The outcome and its reason: what forbids to compare them first, then the speed."""
    forbids = forbidding(a, b, band)
    if forbids or ratio is None:
        return "cannot tell", forbids or "no interval"
    found, why = by_speed(ratio, band, load_beside(a, b))
    return found, f"{why}; {UNKNOWN}"


def forbidding(a: Record, b: Record, band: float) -> str | None:
    """Why nothing can be said of their speeds: what was found wrong, too few rounds, or other work.

    Work may differ by half the band, because a share of the work can change the time by no more than itself.
    """
    for record in (a, b):
        if record.validation and record.validation.mismatches:
            return f"not equal: {record.validation.mismatches} mismatches in {record.run_id}"
    rounds = min(len(headline(record)) for record in (a, b))
    if rounds < FEWEST_APART:
        return f"{rounds} rounds are too few for an interval: run at least {FEWEST_APART}"
    work = different_work(a, b, tolerance=band / 2)
    return f"different work: {work}" if work else None


def by_speed(ratio: Ratio, band: float, load: float) -> tuple[Outcome, str]:
    """What the interval says, and by how much at least."""
    found = outcome(ratio, band)
    busy = f" on a machine with a load of {load:.1f}" if load else ""
    return found, {
        "faster": f"at least {gain(ratio.low)} steps in the same time",
        "slower": f"at least {gain(1 / ratio.high)} time for the same steps",
        "same": f"within {band:.0%}",
        "cannot tell": f"runs one after the other vary by more{busy}: {IN_TURNS}",
    }[found]


def gain(times: float) -> str:
    """How much more, in the words that fit its size: `5.0% more`, `32 times the`."""
    return f"{times - 1:.1%} more" if times < 2 else f"{times:.3g} times the"


def smallest_visible(ratio: Ratio, band: float) -> float:
    """The change from which on such an interval would have been beyond the band."""
    return (1 + band) * max(ratio.estimate / ratio.low, ratio.high / ratio.estimate) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that bears on whether B is faster than A."""

    band: float
    ratio: Ratio | None
    second: Ratio | None = None
    others: tuple[Ratio, ...] = ()
    """Each instance of A against B, in the first run."""
    fresh: tuple[Ratio, ...] = ()
    """Each instance of A against each of B, in the second."""
    noise: Ratio | None = None
    cpu: Ratio | None = None
    late: tuple[float, float] = (0.0, 0.0)
    """The part of A's and of B's CPU time that came after their steps had returned."""
    phases: tuple[PhaseRatio, ...] = ()
    difference: str | None = None
    itself: str | None = None
    """Where A differed from itself."""
    instructions: float | None = None
    sides: tuple[ComparedSide, ComparedSide] | None = None
    """Whose work has to be the same; None where it may differ."""


def conclude(evidence: Evidence, a: ComparedSide, b: ComparedSide, unlike: tuple[str, ...]) -> Comparison:
    """The comparison with its outcome, and what would have to happen for another one."""
    found, why = weigh(evidence)
    ratio, band = evidence.ratio, evidence.band
    return Comparison(
        a=a,
        b=b,
        unlike=unlike,
        band=band,
        ratio=ratio,
        noise=evidence.noise,
        second=evidence.second,
        others=(*evidence.others, *evidence.fresh),
        cpu=evidence.cpu,
        per_work=per_work(evidence),
        visible=visible(ratio, band) if ratio else None,
        more_pairs=more_pairs(ratio, band) if ratio and found == "cannot tell" else None,
        phases=evidence.phases,
        difference=evidence.difference,
        instructions=evidence.instructions,
        outcome=found,
        why=why,
    )


def weigh(evidence: Evidence) -> tuple[Outcome, str]:
    """Whatever forbids a verdict first; then what the interval says."""
    ratio = evidence.ratio
    forbidden = inequality(evidence)
    if forbidden:
        return "cannot tell", forbidden
    if ratio is None:
        return "cannot tell", "there were too few rounds for an interval"
    forbidden = doubts(evidence)
    if forbidden:
        return "cannot tell", forbidden
    found = outcome(ratio, evidence.band)
    if found in MOVED:
        return second_opinion(evidence, found)
    return found, {
        "same": f"the whole interval is within {evidence.band:.0%}",
        "cannot tell": f"the interval reaches over the edge of {evidence.band:.0%}{counted(evidence)}",
    }[found]


def inequality(evidence: Evidence) -> str | None:
    """Why the sides cannot be called equal, or not yet; what differs from itself is like nobody."""
    if evidence.itself:
        return f"A differs from itself: {evidence.itself}; {REPEATABLE}, or leave the field out with --ignore"
    if evidence.difference:
        return f"the sides answer differently: {evidence.difference}"
    if max(evidence.late) > LATE_SHARE:
        of_a, of_b = evidence.late
        return f"work goes on after steps have returned: {of_a:.0%} of A's CPU time and {of_b:.0%} of B's"
    return None


def counted(evidence: Evidence) -> str:
    """What the second witness says, where it was asked."""
    times = evidence.instructions
    if times is None:
        return ""
    more = "more" if times > 1 else "fewer"
    return f"; B takes {abs(times - 1):.1%} {more} instructions"


def doubts(evidence: Evidence) -> str | None:
    """What makes a measured ratio worthless, in words."""
    apart = other_work(evidence)
    if apart:
        return f"different work: {apart}"
    if evidence.ratio and evidence.noise and drowned(evidence.ratio, evidence.noise, evidence.band):
        return f"A differs from itself by {abs(evidence.noise.estimate - 1):.1%}: the machine is not fit"
    for phase in evidence.phases:
        if phase.control and outcome(phase.ratio, evidence.band) in MOVED:
            moved = abs(phase.ratio.estimate - 1)
            return f"{phase.phase}, which the change cannot touch, moved by {moved:.1%}"
    return None


def other_work(evidence: Evidence) -> Unlike | None:
    """The work in which the sides differ, who had to do the same."""
    return unlike_work(*evidence.sides, tolerance=evidence.band / 2) if evidence.sides else None


def per_work(evidence: Evidence) -> Ratio | None:
    """The ratio for as much work, where the sides did different work and both did some."""
    ratio, apart = evidence.ratio, other_work(evidence)
    if ratio is None or apart is None or not apart.a.rate or not apart.b.rate:
        return None
    times = apart.b.rate / apart.a.rate
    return replace(ratio, estimate=ratio.estimate * times, low=ratio.low * times, high=ratio.high * times)


def second_opinion(evidence: Evidence, found: Outcome) -> tuple[Outcome, str]:
    """What is left of faster or slower, now that fresh instances and the second one of A were asked."""
    if evidence.second is None:
        return "cannot tell", f"no second run has confirmed that B is {found}"
    if not agrees(found, evidence.second, evidence.band):
        return "cannot tell", f"the first run found B {found}, the second did not"
    if not all(agrees(found, each, evidence.band) for each in evidence.others):
        return "cannot tell", f"B is {found} than one instance of A, and not than another"
    if not all(leans(found, each) for each in evidence.fresh):
        return (
            "cannot tell",
            f"not every instance of B is {found} than every one of A: they differ by themselves",
        )
    return found, f"the whole interval is beyond {evidence.band:.0%}, and a second run agrees"


def compare_records(a: Record, b: Record, *, band: float, unlike: bool) -> Record:
    """Compare two records that were measured before; nothing is run."""
    now = utc_now()
    compared = replace(
        b,
        kind="compare",
        run_id=run_id(now, *own_commit(b.code), b.target.words),
        created=now.isoformat(timespec="seconds"),
        values={f"{name}.ns_per_env_step": tuple(round_times(each)) for name, each in ((A, a), (B, b))},
        comparisons=(versus(a, b, band=band, unlike=unlike),),
        phases=(),
        overhead=None,
        goal=None,
        notices=(),
    )
    return judge(with_metrics(compared))
