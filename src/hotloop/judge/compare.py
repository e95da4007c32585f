"""The verdict of a comparison, live or of two records, from its evidence and from nothing else."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.notices import Code, Notice, notice
from hotloop.core.record.comparison import A, B, ComparedSide, Comparison, Outcome, PhaseRatio, Ratio
from hotloop.core.record.metadata import own_commit
from hotloop.core.record.record import CPU_SHARE, Record, run_id
from hotloop.core.sources import Sources, unlike_sources
from hotloop.judge.alike import (
    Unlike,
    check_whole,
    differences,
    different_work,
    setting_of,
    unlike_error,
    unlike_work,
    workload,
)
from hotloop.judge.judge import STEAL_SHARE, busy_load, headline, judge
from hotloop.stats.ratio import (
    FEWEST_APART,
    agrees,
    apart,
    drowned,
    hull,
    leans,
    more_pairs,
    outcome,
    visible,
)
from hotloop.stats.summary import with_metrics

BAND = 0.02  # Changes smaller than this are called the same

# What steady runs of the same code were seen to differ by on a shared machine, minutes apart.
NEIGHBOURS = 1.5

MOVED: tuple[Outcome, ...] = ("faster", "slower")  # What has to be seen twice
RESTED = 1.1  # How many times as fast a pause may make a side whose other threads and processes only poll

# How many times as fast a side is surely, for a verdict on a machine that was busy all the time.
FAR_APART = 1.5

# Of a side's CPU time that may come after its steps have returned, and the speed still mean something.
LATE_SHARE = 0.1

SPARE_CORES = 0.5  # CPU seconds a second beyond a side's threads that are worth a notice
UNKNOWN = "equality not known"

MORE_GAMES = "hotloop sim of both again, with more episodes"

# What helps where a side differs from itself.
REPEATABLE = "make it deterministic (reseed=true seeds every episode, where a reset draws a seed of its own)"


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
    decides = deciding_command(first.a, first.b)
    why = f"{first.outcome} at first, but a second run was {second.outcome}; to decide: {decides}"
    return replace(first, second=second.ratio, outcome="cannot tell", why=why)


def deciding_command(a: ComparedSide, b: ComparedSide) -> str:
    """Return the command that measures two sides in turns, where two runs one after the other cannot tell."""
    words, others = shlex.quote(a.target.words), shlex.quote(b.target.words)
    compare = "hotloop compare --" if a.work.runs else "hotloop compare"
    commit, dirty = own_commit(a.code)
    is_kept = commit != "unknown" and not dirty
    if words != others or (is_kept and own_commit(b.code) == (commit, dirty)):
        return f"{compare} {words} {others}"
    if a.work.runs or not is_kept:
        return f"{compare} OLD {others}, where OLD is the code of then beside it"
    return f"hotloop compare {words} --a-ref {commit[:12]}"


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
    load, shared = load_beside(a, b), is_shared(a) or is_shared(b)
    times_a, times_b = round_times(a), round_times(b)
    loaded = apart(times_a, times_b, doubt=(1 + load) * (NEIGHBOURS if shared else 1))
    cpu_a, cpu_b = cpu_times(a), cpu_times(b)
    if not load or cpu_a is None or cpu_b is None:
        return loaded
    return narrower(loaded, witnessed((times_a, times_b), (cpu_a, cpu_b)))


def witnessed(wall: Sequence[list[float]], cpu: Sequence[list[float]]) -> Ratio | None:
    """Return the ratio by the clock, as far as CPU time says the same.

    Who has to share a core waits for it, and needs no more CPU time than without.
    """
    by_wall, by_cpu = (apart(*times, doubt=NEIGHBOURS) for times in (wall, cpu))
    return hull(by_wall, by_cpu) if by_wall and by_cpu else None


def narrower(one: Ratio | None, other: Ratio | None) -> Ratio | None:
    """Return the ratio with the smaller interval, of those that there are."""
    known = [each for each in (one, other) if each]
    return min(known, key=lambda ratio: ratio.high / ratio.low, default=None)


def cpu_times(record: Record) -> list[float] | None:
    """Return CPU nanoseconds of what its speed counts, one value a round; None where a round has none."""
    shares, times = record.values.get(CPU_SHARE, ()), round_times(record)
    if len(shares) != len(times) or not all(shares):
        return None
    return [share * time for share, time in zip(shares, times, strict=True)]


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
    found, why = by_speed(ratio, band, load_beside(a, b), "games" if b.kind == "sim" else "steps")
    decides = MORE_GAMES if b.kind == "sim" else deciding_command(side_of(a, b), side_of(b, a))
    more = f"; to decide: {decides}" if found == "cannot tell" else ""
    return found, f"{why}{more}; {UNKNOWN}"


def forbidding(a: Record, b: Record, band: float) -> str | None:
    """Why nothing can be said of their speeds: what was found wrong, too few rounds, or other work.

    Work may differ by half the band, because a share of the work can change the time by no more than itself.
    """
    for record in (a, b):
        if record.validation and record.validation.mismatches:
            return f"not equal: {record.validation.mismatches} mismatches in {record.run_id}"
    rounds = min(len(headline(record)) for record in (a, b))
    if rounds < FEWEST_APART and b.kind == "sim":
        return f"{rounds} stretches of games are too few for an interval: play longer, or more of them"
    if rounds < FEWEST_APART:
        return f"{rounds} rounds are too few for an interval: run at least {FEWEST_APART}"
    work = different_work(a, b, tolerance=band / 2)
    return f"different work: {work}" if work else None


def by_speed(ratio: Ratio, band: float, load: float, units: str) -> tuple[Outcome, str]:
    """What the interval says, and by how much at least; `units` are what the speeds count."""
    found = outcome(ratio, band)
    busy = f" on a machine with a load of {load:.1f}" if load else ""
    return found, {
        "faster": f"at least {gain(ratio.low)} {units} in the same time",
        "slower": f"at least {gain(1 / ratio.high)} time for the same {units}",
        "same": f"within {band:.0%}",
        "cannot tell": f"runs one after the other vary by more{busy}",
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
    others: tuple[Ratio, ...] = ()  # Each instance of A against B, in the first run
    fresh: tuple[Ratio, ...] = ()  # Each instance of A against each of B, in the second
    noise: Ratio | None = None
    cpu: Ratio | None = None
    # The part of A's and of B's CPU time that came after their steps had returned.
    late: tuple[float, float] = (0.0, 0.0)
    phases: tuple[PhaseRatio, ...] = ()
    difference: str | None = None
    itself: str | None = None  # Where A differed from itself
    crowded: str | None = None  # That other processes disturbed nearly all rounds, if they did
    medians: float | None = None  # The ratio of both sides' medians over all rounds, disturbed ones too
    rested: float = 1.0  # How many times as fast a pause makes a side that polls
    instructions: float | None = None
    # How few steps equality rests on, and what would do; None where they suffice.
    too_few: tuple[str, str] | None = None
    uncompared: str | None = None  # Which envs were not compared
    # Whose work has to be the same; None where it may differ.
    sides: tuple[ComparedSide, ComparedSide] | None = None


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
        return "cannot tell", "; ".join(
            ("there were too few rounds for an interval", *(evidence.too_few or ()))
        )
    forbidden = doubts(evidence)
    if forbidden:
        return "cannot tell", forbidden
    found = outcome(ratio, evidence.band)
    if evidence.too_few and found != "slower":
        return "cannot tell", "; ".join(evidence.too_few)
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
    if evidence.rested > RESTED:
        return (
            f"work goes on between steps: a pause of 20 ms makes a side {evidence.rested:.2f} times as fast"
        )
    return evidence.uncompared


def steps_only(evidence: Evidence) -> str:
    """Return what to add to a verdict whose equality rests on few steps."""
    return f"; {evidence.too_few[0]}" if evidence.too_few else ""


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
    if evidence.crowded and not is_far_apart(evidence.ratio):
        return f"{evidence.crowded}: measure on a quieter machine"
    if medians_differ(evidence):
        return f"the medians of all rounds say {evidence.medians:.3g}, the undisturbed pairs do not"
    for phase in evidence.phases:
        if phase.control and outcome(phase.ratio, evidence.band) in MOVED:
            moved = abs(phase.ratio.estimate - 1)
            return f"{phase.phase}, which the change cannot touch, moved by {moved:.1%}"
    return None


def is_far_apart(ratio: Ratio | None) -> bool:
    """Whether one side is so much slower that a busy machine does not explain it."""
    return ratio is not None and (ratio.low > FAR_APART or ratio.high < 1 / FAR_APART)


def medians_differ(evidence: Evidence) -> bool:
    """Whether the medians of all rounds lie outside the interval by more than the band."""
    ratio, edge = evidence.ratio, 1 + evidence.band
    if ratio is None or evidence.medians is None:
        return False
    return not ratio.low / edge <= evidence.medians <= ratio.high * edge


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
    why = f"the whole interval is beyond {evidence.band:.0%}, and a second run agrees"
    return found, f"{why}{steps_only(evidence)}"


def changes_between(a: Record, b: Record) -> list[Notice]:
    """Name what a later record has measured that the baseline has not: other sources, other outputs."""
    baseline, found = a.label or a.run_id, list[Notice]()
    if files := unlike_sources(sources_of(a), sources_of(b)):
        found.append(notice(Code.SOURCES_DIFFER, files=", ".join(files), baseline=baseline))
    steps = unlike_digests(a, b)
    if steps is not None:
        found.append(notice(Code.DIGESTS_DIFFER, steps=steps, baseline=baseline))
    return found


def sources_of(record: Record) -> Sources:
    return record.code["project"].get("sources", {}) if "project" in record.code else {}


def unlike_digests(a: Record, b: Record) -> int | None:
    """Return after how many steps two records of one workload showed different things; None if never."""
    one, other = a.method.digest or {}, b.method.digest or {}
    is_same = all(workload(each.target) == workload(a.target) for each in (a, b))
    envs = {each.target.variant.get("num_envs") for each in (a, b)}
    if not is_same or len(envs) > 1:
        return None
    return min((int(steps) for steps in one if other.get(steps, one[steps]) != one[steps]), default=None)


def unlike_plays(records: Iterable[Record]) -> Iterator[tuple[Record, Record, int]]:
    """Yield an earlier record, a later one of its workload that showed something else, and the steps."""
    before: list[Record] = []
    for record in records:
        unlike = ((first, record, unlike_digests(first, record)) for first in before)
        yield from islice(((a, b, steps) for a, b, steps in unlike if steps is not None), 1)
        before.append(record)


def compare_records(a: Record, b: Record, *, band: float, unlike: bool) -> Record:
    """Compare two records that were measured before; nothing is run."""
    now = utc_now()
    compared = replace(
        b,
        kind="compare",
        run_id=run_id(now, *own_commit(b.code), b.target.words),
        created=now.isoformat(timespec="seconds"),
        values={
            f"{name}.{b.method.ns_per_unit}": tuple(round_times(each)) for name, each in ((A, a), (B, b))
        },
        comparisons=(versus(a, b, band=band, unlike=unlike),),
        phases=(),
        overhead=None,
        goal=None,
        notices=tuple(changes_between(a, b)),
    )
    return judge(with_metrics(compared))
