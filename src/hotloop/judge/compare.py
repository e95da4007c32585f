"""Comparing: whether runs may be compared at all, and the verdict of a comparison, live or of two records."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from math import inf, sqrt
from typing import Any

from hotloop.core.clock import utc_now
from hotloop.core.errors import Code, InputError, Notice, notice
from hotloop.core.machine import unlike_sources
from hotloop.core.record import CPU_SHARE, ENV_STEPS_PER_S, METHOD, Record, run_id
from hotloop.core.record.comparison import A, B, ComparedSide, Comparison, Outcome, PhaseRatio, Ratio
from hotloop.core.record.metadata import Described, own_commit
from hotloop.judge.course import busy_load
from hotloop.judge.judge import STEAL_SHARE, headline, judge
from hotloop.options.compare import BAND as BAND_PERCENT
from hotloop.stats.summary import (
    FEWEST_APART,
    confirms,
    hull,
    more_pairs,
    outcome,
    unpaired_ratio,
    visible,
    with_metrics,
    within_self_noise,
)

BAND = BAND_PERCENT / 100  # Changes smaller than this are called the same
# What steady runs of the same code were seen to differ by on a shared machine, minutes apart
NEIGHBOURS = 1.5
MOVED: tuple[Outcome, ...] = ("faster", "slower")  # Outcomes that need a second, independent run
RESTED = 1.1  # How many times as fast a pause may make a side whose other threads and processes only poll
# How many times as fast a side is surely, for a verdict on a machine that was busy all the time
FAR_APART = 1.5
# Share of a side's CPU time that may come after step() returns, and the speed still mean something
LATE_SHARE = 0.1
SPARE_CORES = 0.5  # CPU seconds per second beyond a side's threads that are worth a notice
SIGMAS = 4.0  # Standard deviations that a count may be off by chance: for one counter, 6 cases in 100,000
LONGEST = 80  # Characters of a value that are shown

UNKNOWN = "equality not known"
MORE_GAMES = "hotloop sim of both again, with more episodes"

# Hint shown when two instances of the same side return different results.
REPEATABLE = "make it deterministic (reseed=true seeds every episode, where a reset draws a seed of its own)"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConditions:
    """What two runs have to share to be compared; variant and code may differ."""

    machine: Mapping[str, Any]
    target: Described
    kind: str
    policy: str
    garbage: str = "between"
    version: int = METHOD
    headline: str = ENV_STEPS_PER_S


def conditions_of(record: Record) -> RunConditions:
    return RunConditions(
        machine=record.machine,
        target=record.target,
        kind=record.kind,
        policy=record.method.policy,
        garbage=record.method.garbage,
        version=record.method.version,
        headline=record.method.headline,
    )


def differences(a: RunConditions, b: RunConditions) -> tuple[str, ...]:
    """Return what the two do not share, each with both its values; empty if they may be compared."""
    found = dict[str, str]()
    if a.machine["fingerprint"] != b.machine["fingerprint"]:
        found["machine"] = unequal(hardware(a.machine), hardware(b.machine))
    if a.target.workload_hash != b.target.workload_hash:
        found["workload"] = unequal(workload(a.target), workload(b.target))
    for name, mine, other in (
        ("kind", a.kind, b.kind),
        ("method", f"version {a.version}", f"version {b.version}"),
        ("policy", a.policy, b.policy),
        ("metric", a.headline, b.headline),
        ("garbage collection", a.garbage, b.garbage),
    ):
        if mine != other:
            found[name] = describe_difference(mine, other)
    return tuple(f"{name} ({what})" for name, what in found.items())


def hardware(machine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that a fingerprint is made of, and then itself."""
    gpu, limits = machine.get("gpu") or {}, machine.get("limits") or {}
    return {
        **{key: machine.get(key) for key in ("cpu", "architecture", "cores", "isa")},
        "memory GiB": round((machine.get("memory_bytes") or 0) / 2**30),
        "gpu": gpu.get("name"),
        "gpus": gpu.get("count"),
        "CPU limit": limits.get("cpus"),
        "fingerprint": machine["fingerprint"],
    }


def workload(target: Described) -> dict[str, Any]:
    """Return the facts that a workload's hash is made of, and then itself."""
    return {"target": target.name, **target.params, "hash": target.workload_hash}


def unequal(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    """Return the facts that differ; the last one, a hash of the others, only if no other does."""
    names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
    hashed = [*a][-1]
    named = [name for name in names if name != hashed] or names
    return ", ".join(f"{name} {describe_difference(a.get(name), b.get(name))}" for name in named)


def describe_difference(a: object, b: object) -> str:
    """Return two values that differ, each cut to what a line has room for."""
    words = (str(each) for each in (a, b))
    return " against ".join(each if len(each) <= LONGEST else f"{each[: LONGEST - 1]}…" for each in words)


def check_whole(record: Record) -> None:
    """Refuse a run that was interrupted, whose rounds are not those that were planned."""
    if record.partial or not (record.work.env_steps or record.work.runs):
        raise InputError(f"{record.run_id} was interrupted and cannot be compared: run it to the end")


def check_alike(baseline: Record, mine: RunConditions) -> None:
    """Refuse a baseline that a run could not be compared with, before it is measured."""
    check_whole(baseline)
    if different := differences(conditions_of(baseline), mine):
        raise unlike_error(baseline.run_id, "this run", different)


def unlike_error(a: str, b: str, different: tuple[str, ...]) -> InputError:
    return InputError(f"{a} and {b} are unlike: {'; '.join(different)}; only like runs are compared")


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCount:
    """How often something happened in a run."""

    events: int
    env_steps: int
    num_envs: int

    @property
    def rate(self) -> float:
        """Events per env-step."""
        return self.events / self.env_steps


Worked = Record | ComparedSide  # What has a target and a count of its work


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterDifference:
    """A counter in which two sides differ."""

    name: str
    a: EventCount
    b: EventCount

    def __str__(self) -> str:
        return f"{self.name} {self.a.rate:.4g} against {self.b.rate:.4g} an env-step"


def different_work(a: Worked, b: Worked, tolerance: float) -> str | None:
    """Return the first counter in which two records differ beyond chance; None if there is none."""
    return next((str(each) for each in counters(a, b) if not by_chance(each.a, each.b, tolerance)), None)


def unlike_work(a: Worked, b: Worked, tolerance: float) -> CounterDifference | None:
    """Return the first counter in which sides differ that had the same actions; None if there is none.

    Sides with as many envs and as many steps did the same to the digit. A counter that one of them does not
    keep at all says nothing: it did none of it, and has no counter for it.
    """

    def keeps(side: Worked, name: str) -> bool:
        names = (counter for counter in side.path.counters if name in (counter, counter.partition(".")[2]))
        return bool(events_of(side).get(name)) or any(names)

    for each in counters(a, b):
        exact = (each.a.num_envs, each.a.env_steps) == (each.b.num_envs, each.b.env_steps)
        same = each.a.events == each.b.events if exact else by_chance(each.a, each.b, tolerance)
        if not same and keeps(a, each.name) and keeps(b, each.name):
            return each
    return None


def counters(a: Worked, b: Worked) -> Iterator[CounterDifference]:
    """Yield every counter of two sides; a program counts nothing but its runs."""
    if not (a.work.env_steps or b.work.env_steps):
        return
    for name in {**events_of(a), **events_of(b)}:
        mine, other = (
            EventCount(
                events=events_of(side).get(name, 0),
                env_steps=side.work.env_steps,
                num_envs=side.target.variant.get("num_envs", 1),
            )
            for side in (a, b)
        )
        yield CounterDifference(name=name, a=mine, b=other)


def by_chance(a: EventCount, b: EventCount, tolerance: float) -> bool:
    """Return whether two counts could be of runs that do the same in every step.

    Runs of one seed whose batch, warm-up and rounds are the same count the same to the last event, and
    runs of other lengths nearly so. Three things together may part them: the tolerance, a share of the
    count; one event of every env in each run, since a window a little longer may hold one more reset of all
    of them; and what independent events vary by.
    """
    rate = (a.events + b.events) / (a.env_steps + b.env_steps)
    edges = a.num_envs / a.env_steps + b.num_envs / b.env_steps
    sigma = sqrt(rate * (1 / a.env_steps + 1 / b.env_steps))
    return abs(a.rate - b.rate) <= tolerance * rate + edges + SIGMAS * sigma


def events_of(side: Worked) -> dict[str, int]:
    """Return each counter's count, mechanics by their names, without the env-steps."""
    plain = asdict(side.work)
    coverage: dict[str, int] = plain.pop("coverage")
    del plain["env_steps"]
    return plain | coverage


def compare_stored(a: Record, b: Record, *, band: float = BAND, unlike: bool = False) -> Comparison:
    """Compare a baseline with a later record; the ratio is tA/tB, above 1 if b is faster.

    InputError if they are unlike (unless that is allowed, and then recorded) or one was interrupted.
    """
    check_whole(a)
    check_whole(b)
    different = differences(conditions_of(a), conditions_of(b))
    if different and not unlike:
        raise unlike_error(a.run_id, b.run_id, different)
    ratio = ratio_of(a, b)
    found, why = decide(a, b, ratio, band)
    widest = max(ratio.estimate / ratio.low, ratio.high / ratio.estimate) if ratio else None
    return Comparison(
        a=side_of(a, b),
        b=side_of(b, a),
        unlike=different,
        band=band,
        ratio=ratio,
        visible=None if widest is None else (1 + band) * widest - 1,
        outcome=found,
        why=why,
    )


def confirm(first: Comparison, second: Comparison) -> Comparison:
    """Confirm faster or slower by a second run that was compared with the same baseline."""
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
    """Return a side named by its label, or its target and the keys in which it differs, or its run."""
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
    """Return tA/tB with an interval for runs that were not in turns; None if rounds are too few.

    A busy machine widens it: beside n others a run may have had a core to itself, or 1/(n + 1) of one. So
    does a shared one, whose speed depends on neighbors that are not visible here. On a busy machine the
    interval may be the one by the clock as far as CPU time agrees: what shares a core waits for it, and
    needs no more CPU time than without.
    """
    load = load_beside(a, b)
    # A hypervisor gives some of the machine's time to others.
    shared = any((each.machine.get("steal_share") or 0.0) > STEAL_SHARE for each in (a, b))
    wall = round_times(a), round_times(b)
    loaded = unpaired_ratio(*wall, doubt=(1 + load) * (NEIGHBOURS if shared else 1))
    cpu_a, cpu_b = cpu_times(a), cpu_times(b)
    if not load or cpu_a is None or cpu_b is None:
        return loaded
    by_wall, by_cpu = (unpaired_ratio(*times, doubt=NEIGHBOURS) for times in (wall, (cpu_a, cpu_b)))
    attested = hull(by_wall, by_cpu) if by_wall and by_cpu else None
    known = [each for each in (loaded, attested) if each]
    return min(known, key=lambda ratio: ratio.high / ratio.low, default=None)


def cpu_times(record: Record) -> list[float] | None:
    """Return CPU nanoseconds of what its speed counts, one value a round; None if a round has none."""
    shares, times = record.values.get(CPU_SHARE, ()), round_times(record)
    if len(shares) != len(times) or not all(shares):
        return None
    return [share * time for share, time in zip(shares, times, strict=True)]


def load_beside(a: Record, b: Record) -> float:
    """Return the load that one of the two was measured under; 0 if the machine was not busy."""
    return max(busy_load(record.machine) or 0.0 for record in (a, b))


def round_times(record: Record) -> list[float]:
    """Return nanoseconds of an env-step, or of whatever else its speed counts, one value a round."""
    speeds = headline(record)
    if not all(0 < speed < inf for speed in speeds):
        raise InputError(f"{record.run_id} has a round without a speed: it cannot be compared")
    return [1e9 / speed for speed in speeds]


def decide(a: Record, b: Record, ratio: Ratio | None, band: float) -> tuple[Outcome, str]:
    """Return the outcome of two stored records and why: what forbids to compare them, then the speed."""
    forbids = forbidding(a, b, band)
    if forbids or ratio is None:
        return "cannot tell", forbids or "no interval"
    found, load = outcome(ratio, band), load_beside(a, b)
    units = "games" if b.kind == "sim" else "steps"  # what the speeds count
    busy = f" on a machine with a load of {load:.1f}" if load else ""
    why = {
        "faster": f"at least {gain(ratio.low)} {units} in the same time",
        "slower": f"at least {gain(1 / ratio.high)} time for the same {units}",
        "same": f"within {band:.0%}",
        "cannot tell": f"runs one after the other vary by more{busy}",
    }[found]
    if found == "cannot tell":
        decides = MORE_GAMES if b.kind == "sim" else deciding_command(side_of(a, b), side_of(b, a))
        why += f"; to decide: {decides}"
    return found, f"{why}; {UNKNOWN}"


def forbidding(a: Record, b: Record, band: float) -> str | None:
    """Return why nothing can be said of their speeds: a mismatch, too few rounds, or other work.

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


def gain(times: float) -> str:
    """Say how much more, in the words that fit its size: `5.0% more`, `32 times the`."""
    return f"{times - 1:.1%} more" if times < 2 else f"{times:.3g} times the"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonInput:
    """All that bears on whether B is faster than A."""

    band: float
    ratio: Ratio | None
    second: Ratio | None = None
    others: tuple[Ratio, ...] = ()  # Each instance of A against B, in the first run
    fresh: tuple[Ratio, ...] = ()  # Each instance of A against each of B, in the second run
    noise: Ratio | None = None
    cpu: Ratio | None = None
    late: tuple[float, float] = (0.0, 0.0)  # Shares of A's and of B's CPU time after step() returned
    phases: tuple[PhaseRatio, ...] = ()
    difference: str | None = None
    itself: str | None = None  # Where A differed from itself
    crowded: str | None = None  # That other processes disturbed nearly all rounds, if they did
    medians: float | None = None  # The ratio of both sides' medians over all rounds, disturbed ones too
    rested: float = 1.0  # How many times as fast a pause makes a side that polls
    instructions: float | None = None
    # How few steps equality rests on, and what would do; None if enough
    too_few: tuple[str, str] | None = None
    uncompared: str | None = None  # Which envs were not compared
    # Whose work has to be the same; None if it may differ
    sides: tuple[ComparedSide, ComparedSide] | None = None


def conclude(
    evidence: ComparisonInput, a: ComparedSide, b: ComparedSide, unlike: tuple[str, ...]
) -> Comparison:
    """Return the comparison with its outcome, and what would have to happen for another one."""
    found, why = weigh(evidence)
    ratio, band, per_work = evidence.ratio, evidence.band, None
    work = other_work(evidence)
    if ratio and work and work.a.rate and work.b.rate:
        times = work.b.rate / work.a.rate
        per_work = replace(
            ratio, estimate=ratio.estimate * times, low=ratio.low * times, high=ratio.high * times
        )
    return Comparison(
        a=a,
        b=b,
        unlike=unlike,
        band=band,
        ratio=ratio,
        noise=evidence.noise,
        second=evidence.second,
        others=(*evidence.others, *evidence.fresh),
        # What still runs when a turn ends is in no turn.
        cpu=None if max(evidence.late) > LATE_SHARE else evidence.cpu,
        per_work=per_work,
        visible=visible(ratio, band) if ratio else None,
        more_pairs=more_pairs(ratio, band) if ratio and found == "cannot tell" else None,
        phases=evidence.phases,
        difference=evidence.difference,
        instructions=evidence.instructions,
        outcome=found,
        why=why,
    )


def weigh(evidence: ComparisonInput) -> tuple[Outcome, str]:
    """Return the outcome and its reason: whatever forbids a verdict first, then what the interval says."""
    ratio, times = evidence.ratio, evidence.instructions
    forbidden = inequality(evidence)
    if forbidden is None and ratio is None:
        forbidden = "; ".join(("there were too few rounds for an interval", *(evidence.too_few or ())))
    forbidden = forbidden or invalid_reason(evidence)
    if forbidden or ratio is None:
        return "cannot tell", forbidden or ""
    found = outcome(ratio, evidence.band)
    if evidence.too_few and found != "slower":
        return "cannot tell", "; ".join(evidence.too_few)
    if found in MOVED:
        return confirm_outcome(evidence, found)
    counted = ""
    if times is not None:
        counted = f"; B takes {abs(times - 1):.1%} {'more' if times > 1 else 'fewer'} instructions"
    return found, {
        "same": f"the whole interval is within {evidence.band:.0%}",
        "cannot tell": f"the interval reaches over the edge of {evidence.band:.0%}{counted}",
    }[found]


def inequality(evidence: ComparisonInput) -> str | None:
    """Return why equality cannot be claimed: A differs from itself, the sides differ, or work goes on."""
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


def invalid_reason(evidence: ComparisonInput) -> str | None:
    """Return the reason the ratio must not be used, or None."""
    ratio, edge, medians = evidence.ratio, 1 + evidence.band, evidence.medians
    if work := other_work(evidence):
        return f"different work: {work}"
    if ratio and evidence.noise and within_self_noise(ratio, evidence.noise, evidence.band):
        return f"A differs from itself by {abs(evidence.noise.estimate - 1):.1%}: the machine is not fit"
    # A busy machine does not explain a side that is so much slower.
    is_far_apart = ratio is not None and (ratio.low > FAR_APART or ratio.high < 1 / FAR_APART)
    if evidence.crowded and not is_far_apart:
        return f"{evidence.crowded}: measure on a quieter machine"
    if ratio and medians is not None and not ratio.low / edge <= medians <= ratio.high * edge:
        return f"the medians of all rounds say {medians:.3g}, the undisturbed pairs do not"
    for phase in evidence.phases:
        if phase.control and outcome(phase.ratio, evidence.band) in MOVED:
            moved = abs(phase.ratio.estimate - 1)
            return f"{phase.phase}, which the change cannot touch, moved by {moved:.1%}"
    return None


def other_work(evidence: ComparisonInput) -> CounterDifference | None:
    """Return the work in which sides differ that had to do the same; None if there is none."""
    return unlike_work(*evidence.sides, tolerance=evidence.band / 2) if evidence.sides else None


def confirm_outcome(evidence: ComparisonInput, found: Outcome) -> tuple[Outcome, str]:
    """Confirm a first outcome against the second run and every pair of instances."""
    band = evidence.band
    if evidence.second is None:
        return "cannot tell", f"no second run has confirmed that B is {found}"
    if not confirms(found, evidence.second, band):
        return "cannot tell", f"the first run found B {found}, the second did not"
    if not all(confirms(found, each, band) for each in evidence.others):
        return "cannot tell", f"B is {found} than one instance of A, and not than another"
    if not all(each.estimate > 1 if found == "faster" else each.estimate < 1 for each in evidence.fresh):
        why = f"not every instance of B is {found} than every one of A: they differ by themselves"
        return "cannot tell", why
    few = f"; {evidence.too_few[0]}" if evidence.too_few else ""
    return found, f"the whole interval is beyond {band:.0%}, and a second run agrees{few}"


def changes_between(a: Record, b: Record) -> list[Notice]:
    """Name what a later record has measured that the baseline has not: other sources, other outputs."""
    baseline, found = a.label or a.run_id, list[Notice]()
    one, other = (each.code.get("project", {}).get("sources", {}) for each in (a, b))
    if files := unlike_sources(one, other):
        found.append(notice(Code.SOURCES_DIFFER, files=", ".join(files), baseline=baseline))
    steps = unlike_digests(a, b)
    if steps is not None:
        found.append(notice(Code.DIGESTS_DIFFER, steps=steps, baseline=baseline))
    return found


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
        comparisons=(compare_stored(a, b, band=band, unlike=unlike),),
        phases=(),
        overhead=None,
        goal=None,
        notices=tuple(changes_between(a, b)),
    )
    return judge(with_metrics(compared))
