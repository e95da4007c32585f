"""The gate: budgets held against what was measured, from records and from nothing else."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from math import inf
from statistics import median

from hotloop.core.errors import InputError
from hotloop.core.project import Budget
from hotloop.core.record import CPU_SHARE, Record
from hotloop.core.record.comparison import Comparison
from hotloop.core.record.experiments import (
    GPU_BYTES,
    HEAP_BYTES,
    OPEN_FILES,
    OWN,
    PRINTED,
    RSS_BYTES,
    RUNNING,
    SLOWER,
    SLOWER_IN,
    BudgetResult,
    Estimate,
    Soak,
    Standing,
    Trend,
)
from hotloop.core.record.profile import STEP, WALL, Phase
from hotloop.judge.course import busy_load
from hotloop.stats.summary import FEWEST, LIKELY, Slope, ratio, sign_interval, slope

OVERHEAD, UNACCOUNTED, MEMORY = "overhead_ratio", "unaccounted_share", "rss_peak_bytes"
INSTRUCTIONS, PHASE, SHARE = "instructions_per_env_step", "phase", "share"

TIGHTER_SHARE = 0.5  # Of what was gained that a tightened absolute limit takes: the rest stays for noise
SMALLEST_GAIN = 0.05  # From which on a gain is worth a line

# The part of a core that a run has to have had for its speed to be its own, where the machine is busy.
STARVED = 0.9

EXACT = 1e-9  # A share that rounding alone may part two equal numbers by


def values_of(budget: Budget, record: Record) -> tuple[float, ...]:
    """Return the values of a budget's metric in a record; InputError where it does not say any.

    Of what is counted or kept once a run there is one.
    """
    kind = budget.metric.partition(":")[0]
    if kind in (PHASE, SHARE):
        # The instrumented pass makes as many env-steps as the clean one that is counted.
        phases, steps = find_phases(record, budget.part), record.work.env_steps
        return (sum(phase.share if kind == SHARE else phase.total_ns / steps for phase in phases),)
    if kind == INSTRUCTIONS and record.instructions is not None:
        return (record.instructions.per_env_step,)
    if kind == OVERHEAD and record.overhead is not None:
        return (record.overhead.ratio,)
    if kind == UNACCOUNTED and record.unaccounted_ns is not None:
        totals = {phase.path: phase.total_ns for phase in record.phases}
        whole = totals.get(STEP) or totals.get(WALL) or 0
        return (record.unaccounted_ns / whole if whole else 0.0,)
    if kind == MEMORY and record.resources and record.resources.rss_peak_bytes is not None:
        return (float(record.resources.rss_peak_bytes),)
    name = budget.part or budget.metric
    if record.values.get(name):
        return record.values[name]
    raise InputError(f"budget {budget.name}: {record.run_id} says nothing of {budget.metric}")


def find_phases(record: Record, name: str) -> list[Phase]:
    """Return the phases of a path, or of the end of one, none inside another; InputError if none is there."""
    whole = [phase for phase in record.phases if phase.path == name]
    found = whole or [phase for phase in record.phases if phase.path.endswith(f"/{name}")]
    outermost = [each for each in found if not any(each.path.startswith(f"{other.path}/") for other in found)]
    if outermost:
        return outermost
    paths = ", ".join(phase.path for phase in record.phases)
    raise InputError(
        f'no phase {name!r}: there are {paths or "none"}; time = ["{name}"] makes one of a function'
    )


def downgrade_if_unmeasurable(held: BudgetResult, busy: str | None) -> BudgetResult:
    """Return what is left of a miss that says nothing, because the machine was busy."""
    return replace(held, standing="cannot tell", why=busy) if busy and held.standing == "missed" else held


def lacked_cpu(budget: Budget, record: Record) -> str | None:
    """Return why a missed absolute speed or time says nothing, because the machine was busy; else None.

    What is counted, kept in memory or measured in turns does not mind.
    """
    if budget.limit is None or budget.metric in (INSTRUCTIONS, MEMORY):
        return None
    shares, load = record.values.get(CPU_SHARE, ()), busy_load(record.machine)
    if load is None or (shares and median(shares) >= STARVED):
        return None
    return f"the machine had a load of {load:.1f}: measure on a quiet one, or hold it against a commit"


def estimate(values: Sequence[float]) -> Estimate:
    """Return the median with its interval; of few values, from the least to the most."""
    around = sign_interval(values) if len(values) >= FEWEST else None
    low, high = around or (min(values), max(values))
    return Estimate(value=median(values), low=low, high=high, samples=len(values))


def change_between(then: Sequence[float], now: Sequence[float]) -> Estimate:
    """Return now over then, less 1, by pairs; of few pairs, from the least to the most."""
    if len(then) >= FEWEST and all(value > 0 for value in (*then, *now)):
        found = ratio(now, then)
        return Estimate(value=found.estimate - 1, low=found.low - 1, high=found.high - 1, samples=found.pairs)
    if not all(then):
        raise InputError("a value of 0 cannot be compared: give an absolute limit")
    changes = [b / a - 1 for a, b in zip(then, now, strict=True)]
    return Estimate(value=median(changes), low=min(changes), high=max(changes), samples=len(changes))


def change_of_speed(comparison: Comparison) -> Estimate | None:
    """Return the change of a speed by a comparison in turns: B's over A's, less 1."""
    found = comparison.ratio
    if found is None:
        return None
    return Estimate(value=found.estimate - 1, low=found.low - 1, high=found.high - 1, samples=found.pairs)


def hold(
    budget: Budget,
    today: date,
    *,
    now: Sequence[float] = (),
    then: Sequence[float] = (),
    change: Estimate | None = None,
    against: str | None = None,
    doubt: str | None = None,
    difference: str | None = None,
) -> BudgetResult:
    """Hold what was measured against a budget.

    `now` are the values of its metric, `then` those of what it is relative to, in pairs; `change` is given
    instead where they took turns. `doubt` is why nothing can be told, `difference` where the two were seen
    to answer differently.
    """
    if change is None and then:
        change = change_between(then, now)
    held = BudgetResult(
        name=budget.name,
        metric=budget.metric,
        unit=budget.kind.unit,
        more_is_better=budget.kind.more_is_better,
        limit=budget.limit,
        max_change=budget.max_change,
        against=against or budget.against,
        reason=budget.reason,
        owner=budget.owner,
        expires=budget.expires.isoformat() if budget.expires else None,
        enforced=budget.enforce,
        value=estimate(now) if now else None,
        change=change,
        standing="cannot tell",
        why=doubt or "nothing was measured",
    )
    if difference:
        held = replace(held, standing="not equal", why=f"it answers differently: {difference}")
    elif budget.expires and today > budget.expires:
        why = f"it expired on {held.expires}: {held.owner or 'nobody'} has to renew or remove it"
        held = replace(held, standing="expired", why=why)
    elif not doubt:
        standing, why = by_bound(held)
        held = replace(held, standing=standing, why=why)
    return replace(held, tighter=tighter(held))


def by_bound(held: BudgetResult) -> tuple[Standing, str]:
    """Return which side of its bound the whole interval is on."""
    found, bound = (held.value if held.limit is not None else held.change), held.bound
    if found is None or bound is None:
        return "cannot tell", "nothing was measured"
    slack = EXACT * abs(bound if held.limit is not None else 1 + bound)
    if held.more_is_better:
        is_within, is_beyond = found.low >= bound - slack, found.high < bound - slack
    else:
        is_within, is_beyond = found.high <= bound + slack, found.low > bound + slack
    if is_within:
        return "met", "the whole interval is within it"
    if is_beyond:
        return "missed", "the whole interval is beyond it"
    return "cannot tell", "the interval reaches over the limit"


MOST_RUNS = 5  # Maximum runs of a budget before the verdict is "cannot tell"


def settle(runs: Sequence[BudgetResult]) -> BudgetResult:
    """Return what is left of a verdict that was measured more than once: a miss has to be seen twice."""
    last = replace(runs[-1], runs=len(runs))
    standings = [each.standing for each in runs]
    misses = standings.count("missed")
    if len(runs) == 1 or last.standing in FINAL:
        return last
    if misses > 1:
        again = next(each for each in reversed(runs) if each.standing == "missed")
        return replace(again, runs=len(runs), why=f"{again.why}, and a second run agrees")
    if misses and is_minority(runs):
        why = "met by two counts of three: the other came by where its memory lay"
        return replace(
            next(each for each in reversed(runs) if each.standing == "met"), runs=len(runs), why=why
        )
    if misses and "met" in standings:
        why = "missed by one run and met by another: the machine is too busy to tell"
        return replace(last, standing="cannot tell", why=why, tighter=None)
    if misses:
        return replace(last, standing="cannot tell", why="missed by one run, and no other could tell")
    return last


def needs_another(runs: Sequence[BudgetResult]) -> bool:
    """Return whether it is to be measured again before it is believed."""
    standings = [each.standing for each in runs]
    if standings[-1] in FINAL or standings.count("missed") > 1 or len(runs) == MOST_RUNS:
        return False
    if not runs[-1].enforced or (runs[-1].value is None and runs[-1].change is None):
        return False
    return ("missed" in standings or "met" not in standings) and not is_minority(runs)


def is_minority(runs: Sequence[BudgetResult]) -> bool:
    """Return whether counts, which only memory layout can move, were met by two for one miss."""
    standings = [each.standing for each in runs]
    return runs[0].metric == INSTRUCTIONS and standings.count("met") > 1 >= standings.count("missed")


FINAL = ("not equal", "expired")  # What another run cannot change


def tighter(held: BudgetResult) -> str | None:
    """Return the line that would hold what was gained; None if nothing was, beyond noise."""
    if held.standing != "met" or held.value is None:
        return None
    worst = held.value.low if held.more_is_better else held.value.high
    if held.limit is not None:
        gain = (worst - held.limit) / held.limit if held.limit else 0.0
        gain = gain if held.more_is_better else -gain
        limit = held.limit + TIGHTER_SHARE * (worst - held.limit)
        return f"limit = {rounded(limit)}" if gain > 2 * SMALLEST_GAIN else None
    if held.change is None:
        return None
    gain = held.change.low if held.more_is_better else -held.change.high
    spare = 1 - SMALLEST_GAIN / 2 if held.more_is_better else 1 + SMALLEST_GAIN / 2
    line = f"limit = {rounded(worst * spare)}  # in place of max_change and against"
    return line if gain > SMALLEST_GAIN else None


def weakened(before: Mapping[str, Budget], now: Mapping[str, Budget]) -> list[str]:
    """Return what was taken from budgets, by name: removed, or looser than they were."""
    told = []
    for name, old in before.items():
        changes = loosened(old, now[name]) if name in now else ["removed"]
        told += [f"budget {name}: {change}" for change in changes]
    return told


def loosened(old: Budget, new: Budget) -> list[str]:
    """Return in what a budget asks for less than it did, or for something else."""
    changes = [
        f"{what} was {was}, is {is_now}"
        for what, was, is_now in (
            ("target", old.words, new.words),
            ("metric", old.metric, new.metric),
            ("pattern", old.pattern or "as usual", new.pattern or "as usual"),
        )
        if was != is_now
    ]
    if (old.limit is None) != (new.limit is None) or old.against != new.against:
        changes.append(f"held to {bound_words(new)}, was held to {bound_words(old)}")
    elif old.limit is not None and new.limit is not None:
        if (new.limit < old.limit) if old.kind.more_is_better else (new.limit > old.limit):
            changes.append(f"limit loosened from {old.limit:,g} to {new.limit:,g}")
    elif (new.max_change or 0.0) > (old.max_change or 0.0):
        changes.append(f"max_change loosened from {old.max_change:.4g} to {new.max_change:.4g}")
    if old.enforce and not new.enforce:
        changes.append("no longer enforced")
    if old.expires and (new.expires is None or new.expires > old.expires):
        changes.append(f"expires {new.expires or 'never'}, was {old.expires}")
    return changes


def bound_words(budget: Budget) -> str:
    if budget.limit is not None:
        return f"{budget.limit:,g}"
    return f"{budget.max_change or 0.0:.1%} of {budget.against}"


def rounded(value: float) -> str:
    """Return three digits, as a limit would be written."""
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    number = round(value, digits)
    return f"{number:.0f}" if digits <= 0 else f"{number:g}"


FEWEST_LOOKS = 12  # Judged ones, for a slope to be sure of
CUT = 0.2  # Of the looks, at the beginning: there caches fill and pools grow
POINTS = 120  # Of a curve that a record keeps
MINUTE_S = 60.0

# Growth below these thresholds is reported but not judged.
TRIFLES: Mapping[str, float] = {
    SLOWER: 0.02,
    RSS_BYTES: 1 << 20,
    HEAP_BYTES: 1 << 20,
    GPU_BYTES: 1 << 20,
    OPEN_FILES: 3,
    RUNNING: 2,
}

OF_ALL = 0.01  # Of what there is, the same for bytes
WATCHING = 16 << 10  # Bytes a look that the soak itself may leave: what it noted, and its record so far
PHASE_TRIFLE = 0.05

# Of a rise that must have come while the first instance stepped by itself, for it to be its own. It does so
# for two thirds of the time, so of a leak of its steps it is far more.
STEPS_SHARE = 0.2

Curve = Sequence[tuple[float, float]]  # Seconds, and a value


def conclude_soak(found: Soak, curves: Mapping[str, Curve]) -> Soak:
    """Return the soak with the trends of its curves."""
    cut = int(CUT * found.looks)
    enough = found.looks - cut >= FEWEST_LOOKS
    made = [
        trend(name, curve, curves.get(f"{OWN}{name}"), enough=enough)
        for name, curve in curves.items()
        if len(curve) > 2 and not name.startswith(OWN)
    ]
    return replace(found, cut=cut, enough=enough, trends=tuple(each for each in made if each is not None))


def trend(name: str, curve: Curve, own: Curve | None = None, *, enough: bool) -> Trend | None:
    """Return the slope of one curve, its first part cut; `own` is what of it came with the steps."""
    kept = judged(curve)
    if len(kept) < 3:
        return None
    over = slope_of(kept)
    growth = over.estimate * (kept[-1][0] - kept[0][0])
    risen = enough and len(kept) >= FEWEST_LOOKS and rises(name, kept, over, growth)
    by_new = False
    if risen and own is not None:
        # What came while the first instance stepped by itself surely rises, and is enough of it all.
        steps = judged(own)
        pace, least = slope_of(steps), STEPS_SHARE * growth
        by_new = not (pace.low > 0 and pace.estimate * (steps[-1][0] - steps[0][0]) > least)
    thinned = [*curve[:: -(-len(curve) // POINTS)]]
    if thinned[-1] != curve[-1]:
        thinned.append(curve[-1])
    return Trend(
        name=name,
        slope=over.estimate * MINUTE_S,
        low=finite(over.low * MINUTE_S),
        high=finite(over.high * MINUTE_S),
        growth=growth,
        alarm=risen and not by_new,
        by_new=by_new,
        curve=tuple((round(at, 3), value) for at, value in thinned),
    )


def judged(curve: Curve) -> Curve:
    """Return the curve without its first part."""
    return curve[int(CUT * len(curve)) :]


def slope_of(curve: Curve, **how: float) -> Slope:
    return slope([at for at, _ in curve], [value for _, value in curve], **how)


def finite(value: float) -> float:
    """Return a bound that JSON can hold: what is without bound is far beyond anything."""
    return max(min(value, 1e300), -1e300) if abs(value) == inf else value


def rises(name: str, curve: Curve, over: Slope, growth: float) -> bool:
    """Return whether it surely goes up, by more than a trifle, and still does in the second half."""
    if name.startswith(PRINTED):  # a speed that sinks
        over, growth = Slope(-over.estimate, -over.high, -over.low), -growth / max(abs(curve[0][1]), 1e-300)
        return over.low > 0 and growth > TRIFLES[SLOWER]
    least = PHASE_TRIFLE if name.startswith(SLOWER_IN) else TRIFLES.get(name, inf)
    if name.endswith("_bytes"):
        least = max(least, OF_ALL * abs(curve[0][1]), WATCHING * len(curve))
    later = slope_of(curve[len(curve) // 2 :], z=LIKELY)
    return over.low > 0 and growth > least and later.estimate > 0 and (later.low > 0 or name == SLOWER)
