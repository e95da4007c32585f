"""The verdict of a comparison, live or of two records, from its evidence and from nothing else."""

from dataclasses import dataclass, replace
from math import inf

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.record import A, B, ComparedSide, Comparison, Outcome, PhaseRatio, Ratio, Record, run_id
from hotloop.judge.alike import check_whole, differences, different_work, setting_of, unlike_error
from hotloop.judge.judge import HEADLINE, STEAL_SHARE, busy_load, judge
from hotloop.stats.ratio import FEWEST_APART, agrees_slower, apart, more_pairs, outcome, visible
from hotloop.stats.summary import with_metrics

BAND = 0.02
"""Changes smaller than this are called the same."""

NEIGHBOURS = 1.5
"""What steady runs of the same code were seen to differ by on a shared machine, minutes apart."""

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
    """What is left of a comparison that said slower, now that a second run was held against the same."""
    if second.outcome == "slower":
        return replace(first, second=second.ratio, why=f"{first.why}, and a second run agrees")
    why = f"slower at first, but a second run was {second.outcome}: {IN_TURNS}"
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
    """Nanoseconds of an env-step, one value a round."""
    speeds = record.values.get(HEADLINE, ())
    if not all(0 < speed < inf for speed in speeds):
        raise InputError(f"{record.run_id} has a round without a speed: it cannot be compared")
    return [1e9 / speed for speed in speeds]


def decide(a: Record, b: Record, ratio: Ratio | None, band: float) -> tuple[Outcome, str]:
    """The outcome and its reason: what forbids to compare them first, then the speed."""
    forbids = forbidding(a, b, band)
    if forbids or ratio is None:
        return "cannot tell", forbids or "no interval"
    return by_speed(ratio, band, load_beside(a, b))


def forbidding(a: Record, b: Record, band: float) -> str | None:
    """Why nothing can be said of their speeds: what was found wrong, too few rounds, or other work.

    Work may differ by half the band, because a share of the work can change the time by no more than itself.
    """
    for record in (a, b):
        if record.validation and record.validation.mismatches:
            return f"not equal: {record.validation.mismatches} mismatches in {record.run_id}"
    rounds = min(len(record.values.get(HEADLINE, ())) for record in (a, b))
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
    noise: Ratio | None = None
    phases: tuple[PhaseRatio, ...] = ()
    difference: str | None = None
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
    if evidence.difference:
        return "cannot tell", f"the sides answer differently: {evidence.difference}"
    if ratio is None:
        return "cannot tell", "there were too few rounds for an interval"
    forbidden = doubts(evidence)
    if forbidden:
        return "cannot tell", forbidden
    found = outcome(ratio, evidence.band)
    if found == "slower":
        return second_opinion(evidence)
    return found, {
        "faster": f"the whole interval is beyond {evidence.band:.0%}",
        "same": f"the whole interval is within {evidence.band:.0%}",
        "cannot tell": f"the interval reaches over the edge of {evidence.band:.0%}",
    }[found]


def doubts(evidence: Evidence) -> str | None:
    """What makes a measured ratio worthless, in words."""
    if evidence.sides and (named := different_work(*evidence.sides, tolerance=evidence.band / 2)):
        return f"different work: {named}"
    if evidence.noise and outcome(evidence.noise, evidence.band) in ("faster", "slower"):
        return f"A differs from itself by {abs(evidence.noise.estimate - 1):.1%}: the machine is not fit"
    for phase in evidence.phases:
        if phase.control and outcome(phase.ratio, evidence.band) in ("faster", "slower"):
            moved = abs(phase.ratio.estimate - 1)
            return f"{phase.phase}, which the change cannot touch, moved by {moved:.1%}"
    return None


def second_opinion(evidence: Evidence) -> tuple[Outcome, str]:
    if evidence.second is None:
        return "cannot tell", "no second run has confirmed that B is slower"
    if agrees_slower(evidence.second, evidence.band):
        return "slower", f"the whole interval is beyond {evidence.band:.0%}, and a second run agrees"
    return "cannot tell", "the first run found B slower, the second did not"


def compare_records(a: Record, b: Record, *, band: float, unlike: bool) -> Record:
    """Compare two records that were measured before; nothing is run."""
    now = utc_now()
    compared = replace(
        b,
        kind="compare",
        run_id=run_id(now, b.code["commit"], b.code["dirty"], b.target.name),
        created=now.isoformat(timespec="seconds"),
        values={f"{name}.ns_per_env_step": tuple(round_times(each)) for name, each in ((A, a), (B, b))},
        comparisons=(versus(a, b, band=band, unlike=unlike),),
        phases=(),
        overhead=None,
        goal=None,
        notices=(),
    )
    return judge(with_metrics(compared))
