"""The verdict of a comparison, from its evidence and from nothing else."""

from dataclasses import dataclass

from hotloop.core.record import Comparison, Outcome, PhaseRatio, Ratio, Side
from hotloop.lab.likeness import different_work
from hotloop.stats.verdict import agrees_slower, more_pairs, outcome, visible


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
    sides: tuple[Side, Side] | None = None
    """Whose work has to be the same; None where it may differ."""


def conclude(evidence: Evidence, a: Side, b: Side, unlike: tuple[str, ...]) -> Comparison:
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
