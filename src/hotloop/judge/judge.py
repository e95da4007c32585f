"""Judging a record: notices, verdict and exit code, from nothing but the record itself."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from hotloop.core.errors import Code, ExitCode, InputError, Notice, notice, worst
from hotloop.core.record import CONTEST, IN_TURNS, Record, SpeedTarget
from hotloop.core.record.comparison import Outcome
from hotloop.core.record.experiments import SLOWER_IN, Learning, Standing
from hotloop.core.record.metadata import own_commit
from hotloop.core.record.profile import STEP, WALL
from hotloop.core.time_tree import ENVIRONMENT
from hotloop.judge.course import busy_load, course_notices
from hotloop.stats.summary import FEWEST, drift, label, sign_interval, warmup_suspect

STEAL_SHARE = 0.01

GOVERNORS = (None, "performance")

CLOCKS = (None, "tsc", "arch_sys_counter")  # What is fit to measure with; None is a machine that does not say

# What is not one of these cannot tell.
VERDICTS = {ExitCode.FINE: "pass", ExitCode.MISMATCH: "fail", ExitCode.REGRESSION: "fail"}

STANDINGS: Mapping[Standing, ExitCode] = {
    "met": ExitCode.FINE,
    "missed": ExitCode.REGRESSION,
    "expired": ExitCode.REGRESSION,
    "cannot tell": ExitCode.CANNOT_TELL,
    "not equal": ExitCode.MISMATCH,
}

UNACCOUNTED_SHARE = 0.05

OVERHEAD_SHARE = 0.05

FLOOR_MISS_IN = 10  # Of the interval whose lower end is the floor: 5% on that side, which takes five rounds


def judge(record: Record) -> Record:
    """Add what a reader must know, the verdict and the exit code, by the rules of the record's kind.

    To judge a record again changes nothing: what follows from it is said once.
    """
    derived = [said for rule in RULES[record.kind] for said in rule(record)]
    # Everything that holds of a record, in no order; an unfinished one is judged by no speed of its own.
    codes = [ExitCode.MISMATCH] if record.validation and record.validation.mismatches else []
    if record.partial:
        codes.append(ExitCode.INTERRUPTED)
    else:
        codes += [code for holds, code in CODES.get(record.kind, ()) if holds(record)]
    code = worst(codes)
    return replace(
        record,
        notices=tuple(dict.fromkeys((*record.notices, *derived))),
        verdict=record.again.outcome if record.again else VERDICTS.get(code, "cannot tell"),
        exit_code=int(code),
    )


def unsaved(record: Record) -> Record:
    """Return a record that the disk did not take: that outranks all but a mismatch."""
    return replace(record, exit_code=int(worst((ExitCode(record.exit_code), ExitCode.USAGE))))


def broken_off(record: Record, code: ExitCode, why: str | None) -> Record:
    """Return a record so far of a run that was ended, and by what; a mismatch stays one."""
    said = (notice(Code.BROKEN_OFF, why=why),) if why else ()
    judged = judge(replace(record, partial=True, notices=(*record.notices, *said)))
    mismatch = judged.exit_code == ExitCode.MISMATCH
    return judged if mismatch else replace(judged, verdict="cannot tell", exit_code=int(code))


def headline(record: Record) -> tuple[float, ...]:
    """Return the values that a record is judged by, one a round; empty if there are none."""
    return record.values.get(record.method.headline, ())


def is_unstable(record: Record) -> bool:
    """Return whether the rounds that a record is judged by vary too much to mean anything."""
    metric = record.metrics.get(record.method.headline)
    return metric is not None and label(metric.cv) == "unstable"


def has_outcome(outcome: Outcome, record: Record) -> bool:
    """Return whether any comparison of a record came to an outcome."""
    return any(each.outcome == outcome for each in record.comparisons)


def has_standing(standing: Standing, record: Record) -> bool:
    """Return whether a run stands so to its budget, and that decides: a target only hoped for does not."""
    held = record.held
    return bool(
        held and held.standing == standing and (held.enforced or standing in ("not equal", "expired"))
    )


def has_learnt(outcome: Learning, record: Record) -> bool:
    """Return whether the settings that won surely learn less, or that cannot be told."""
    return bool(record.tuning and record.tuning.learnt and record.tuning.learnt.outcome == outcome)


def equality_notices(record: Record) -> Iterator[Notice]:
    """Yield whether all that was compared was equal, and all steps were of one path."""
    checked = record.validation
    if checked and checked.mismatches:
        yield notice(Code.MISMATCH, mismatches=checked.mismatches, comparisons=checked.comparisons)
    if len(record.path.ran) > 1:
        yield notice(Code.PATH_MIXED, share=record.path.ran.get("native", 0.0), requested="native")


def statistical_notices(record: Record) -> Iterator[Notice]:
    """Yield whether there were enough pairs, and what was seen once and not again."""
    found = record.statistical
    if found and found.pairs < found.needed:
        yield notice(Code.FEW_PAIRS, pairs=found.pairs, needed=found.needed)
    if found and found.once and not found.differences:
        yield notice(Code.SEEN_ONCE, once=found.once)


def planned_notices(record: Record) -> Iterator[Notice]:
    """Yield how far a run came that had planned its rounds."""
    done, planned = len(headline(record)), record.method.rounds
    if record.partial:
        yield notice(Code.PARTIAL, done="all" if done and done == planned else f"{done} of {planned}")


def open_notices(record: Record) -> Iterator[Notice]:
    """Yield how far a run came whose rounds are those there were."""
    if record.partial:
        yield notice(Code.PARTIAL, done=record.method.rounds)


def sweep_notices(record: Record) -> Iterator[Notice]:
    """Yield which places of a sweep there are not."""
    swept = record.sweep
    if swept is None:
        return
    if record.partial:
        yield notice(Code.SWEEP_PARTIAL, done=len(swept.points))
    for refused in swept.refused:
        at = " ".join(f"{axis}={value}" for axis, value in refused.at.items())
        yield notice(Code.SKIPPED, at=at, why=refused.why)


def rounds_notices(record: Record) -> Iterator[Notice]:
    """Yield whether the rounds are enough, steady and alike."""
    values, name = headline(record), record.method.headline
    if record.method.rounds and len(values) < FEWEST and not (record.partial or record.comparisons):
        yield notice(Code.TOO_FEW_ROUNDS, rounds=len(values))
    if not values:
        return
    if is_unstable(record):
        yield notice(Code.UNSTABLE, metric=name, cv=record.metrics[name].cv)
    if record.method.order == IN_TURNS:
        return  # what changes over the rounds changes for all commits alike
    trend = drift(values)
    if trend.suspect:
        yield notice(Code.DRIFT, metric=name, change=trend.change)
    if warmup_suspect(values):
        yield notice(Code.WARMUP, metric=name)


def games_notices(record: Record) -> Iterator[Notice]:
    """Yield whether the machine was fit to time the games of two seats."""
    if f"{CONTEST}won" in record.values:
        yield from machine_notices(record)


def goal_notices(record: Record) -> Iterator[Notice]:
    """Yield whether what was asked for was reached."""
    goal = record.goal
    if goal and not goal.met:
        short = 1 - record.metrics[record.method.headline].median / goal.env_steps_per_s
        yield notice(Code.BELOW_TARGET, short=short, target=goal.env_steps_per_s)


def phase_notices(record: Record) -> Iterator[Notice]:
    """Yield whether the phases add up and the instrument was light."""
    totals = {phase.path: phase.total_ns for phase in record.phases}
    step, whole_ns = STEP in totals, totals.get(STEP) or totals.get(WALL)
    unaccounted = (record.unaccounted_ns or 0) / whole_ns if whole_ns else 0.0
    if step and record.method.threads > 1:
        yield notice(Code.THREADS_SPLIT, threads=record.method.threads)
    elif abs(unaccounted) > UNACCOUNTED_SHARE:
        yield notice(Code.UNACCOUNTED, share=unaccounted)
    if record.overhead and record.overhead.ratio > 1 + OVERHEAD_SHARE:
        yield notice(Code.OVERHEAD, cost=record.overhead.ratio - 1)


def threads_notices(record: Record) -> Iterator[Notice]:
    """Yield whether the phases of a training's environment are means over threads."""
    below = f"{WALL}/{ENVIRONMENT}/"
    if record.method.threads > 1 and any(phase.path.startswith(below) for phase in record.phases):
        yield notice(Code.THREADS_SPLIT, threads=record.method.threads)


def machine_notices(record: Record) -> Iterator[Notice]:
    """Yield whether the machine and the code were fit for a number to keep; without rounds there is none."""
    machine = record.machine
    if not record.method.rounds:
        return
    load = busy_load(machine)
    if load is not None:
        yield notice(Code.BUSY_MACHINE, load=load, cores=machine.get("usable_cores") or 1)
    steal = machine.get("steal_share")
    if steal is not None and steal > STEAL_SHARE:
        yield notice(Code.STOLEN_TIME, share=steal)
    if machine.get("governor") not in GOVERNORS:
        yield notice(Code.GOVERNOR, governor=machine["governor"])
    if machine.get("clocksource") not in CLOCKS:
        yield notice(Code.SLOW_CLOCK, clocksource=machine["clocksource"])
    cpus = machine["limits"]["cpus"]
    if cpus is not None and record.method.threads > cpus:
        yield notice(Code.CPU_LIMIT, cpus=cpus, threads=record.method.threads)
    if record.code["dirty"] or own_commit(record.code)[1]:
        yield notice(Code.DIRTY)


NoticeRule = Callable[[Record], Iterator[Notice]]

# Kind to what is said of it, in the order in which it is told.
RULES: Mapping[str, tuple[NoticeRule, ...]] = {
    "bench": (
        equality_notices,
        planned_notices,
        rounds_notices,
        goal_notices,
        phase_notices,
        course_notices,
        machine_notices,
    ),
    "compare": (equality_notices, open_notices, machine_notices),
    "profile": (
        equality_notices,
        planned_notices,
        rounds_notices,
        phase_notices,
        course_notices,
        machine_notices,
    ),
    "gate": (open_notices, machine_notices),
    "replay": (open_notices,),
    "run": (open_notices, phase_notices, course_notices, machine_notices),
    "scale": (equality_notices, sweep_notices, machine_notices),
    # How many episodes there were to be, only the game knows and says.
    "sim": (equality_notices, games_notices),
    "soak": (open_notices,),
    "statistical": (statistical_notices,),
    "train": (equality_notices, open_notices, threads_notices, course_notices, machine_notices),
    # A difference is told by its place.
    "tune": (equality_notices, machine_notices),
    "validate": (open_notices,),
}

UNSURE = (partial(has_outcome, "cannot tell"), ExitCode.CANNOT_TELL)
SLOWER = (partial(has_outcome, "slower"), ExitCode.REGRESSION)
UNSTABLE = (is_unstable, ExitCode.UNSTABLE)

# Kind to what decides its exit code beside a mismatch and Ctrl-C. Without a row: the speed of a training or a
# loop changes with what is learnt, so its spread is no fault of it; a sweep is told by laws, and nothing in
# it is right or wrong.
CODES: Mapping[str, tuple[tuple[Callable[[Record], object], ExitCode], ...]] = {
    "bench": (
        (lambda record: record.goal and record.goal.enforced and not record.goal.met, ExitCode.REGRESSION),
        SLOWER,
        UNSURE,
        UNSTABLE,
    ),
    "compare": (SLOWER, UNSURE),
    # The comparison with the profile before does not decide: the two were not measured in turns.
    "profile": (UNSTABLE,),
    "gate": tuple((partial(has_standing, standing), code) for standing, code in STANDINGS.items()),
    "replay": (
        (lambda record: record.again and record.again.outcome == "cannot tell", ExitCode.CANNOT_TELL),
    ),
    # Too short a soak cannot tell.
    "soak": (
        (lambda record: record.soak and not record.soak.enough, ExitCode.CANNOT_TELL),
        (
            lambda record: (
                record.soak and any(not each.name.startswith(SLOWER_IN) for each in record.soak.alarms)
            ),
            ExitCode.REGRESSION,
        ),
    ),
    # That nothing was found is no equality: the record says how large a difference can still be.
    "statistical": (
        (lambda record: record.statistical and record.statistical.differences, ExitCode.MISMATCH),
        (
            lambda record: record.statistical and record.statistical.pairs < record.statistical.needed,
            ExitCode.CANNOT_TELL,
        ),
    ),
    "tune": (
        (partial(has_learnt, "worse"), ExitCode.REGRESSION),
        (partial(has_learnt, "cannot tell"), ExitCode.CANNOT_TELL),
        UNSURE,
    ),
    # Some envs of a side had no counterpart.
    "validate": (
        (lambda record: record.validation and record.validation.envs_not_compared, ExitCode.CANNOT_TELL),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A speed to be reached."""

    env_steps_per_s: float
    enforced: bool = False  # Whether missing it is a failure, and not only said

    def __post_init__(self) -> None:
        if not 0 < self.env_steps_per_s < inf:
            raise InputError(f"a target of {self.env_steps_per_s:g} steps a second: expected more than 0")


def goal_of(record: Record, wanted: Wanted | None) -> SpeedTarget | None:
    """Hold a finished run against what was wanted: its median has to reach it.

    The floor is the lower bound of the median with 95% on its side: a target for this machine that the
    same code does not miss by chance.
    """
    values = headline(record)
    if wanted is None or record.partial:
        return None
    around = sign_interval(values, FLOOR_MISS_IN)
    return SpeedTarget(
        env_steps_per_s=wanted.env_steps_per_s,
        floor=around[0] if around else None,
        enforced=wanted.enforced,
        met=record.metrics[record.method.headline].median >= wanted.env_steps_per_s,
    )
