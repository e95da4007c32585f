"""Evidence: what each rule of a diagnosis sees in a case; it looks at the record and runs nothing."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median
from typing import Any

from hotloop.core.record.codec import Interval
from hotloop.core.record.comparison import Ratio
from hotloop.core.record.profile import Pauses
from hotloop.judge import names
from hotloop.judge.case import WHOLE, Alternative, Case, Part, Row, gain, speed_up
from hotloop.judge.course import find_fall, find_rise
from hotloop.judge.judge import OVERHEAD_SHARE, UNACCOUNTED_SHARE

SURELY = 0.5  # Of what a row must take, by the lower end of its interval: one slow window is no fault
SMALL_BATCH = 64  # Rows of one forward call, up to which the call costs about as much as its rows
LEAST_AT = 0.05  # Of the time, that a line takes which is worth advice
RARER = 10.0  # How many times as rarely one may evaluate, or write a log, and still see a training
SHORT_CALL_NS = 200_000  # A call of one env that is shorter has much of Python's own in it
ALLOCATIONS = 50  # An env-step, from which on they are worth a look
ALLOCATED_BYTES = 65_536

SERIAL = 1.25  # Threads that have something to do on average, up to which a loop is called serial
IDLE_CORES = 0.5  # Cores that had no work, from which on a row that waits is told with them
CROWDED = 1.5  # Threads that have something to do for each core, from which on they stand in each other's way
WAITED = 0.15  # Of its time that a row was on a core for, up to which it is called waiting

# Half the bytes: what mixed precision could at most make of a matrix product that memory bounds.
BFLOAT16 = 2.0


# Settings that say how many step envs, and how many torch has.
CREW, TORCH_THREADS = ("threads", "num_threads", "num_workers", "workers"), "torch_threads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a rule sees in a case."""

    said: str  # The evidence, in a sentence
    row: Row | None = None
    # Of the wall time that the change would touch; None where it buys no time that is known.
    part: Part | None = None
    factor: float = inf  # How many times as fast that part would be; infinite where it goes away
    factors: Interval | None = None  # The interval of that, where it was measured
    at_most: bool = False  # Whether the factor is a bound and no promise
    keys: Mapping[str, object] = field(default_factory=dict)  # What would be typed to make the change

    @property
    def gain(self) -> float | None:
        """Times as fast end to end."""
        return gain(self.part, self.factor) if self.part else None

    @property
    def interval(self) -> Interval | None:
        """Of the gain: from the smallest share at the smallest factor to the largest at the largest."""
        if self.part is None or (self.part.interval is None and self.factors is None):
            return None
        low, high = self.factors or (self.factor, self.factor)
        return speed_up(self.part.low, low), speed_up(self.part.high, high)


def told(row: Row) -> str:
    """A row's share in words: of what it is part of, and of everything."""
    if row.parent is not None and row.of_parent is not None:
        return f"{row.name} is {row.of_parent:.0%} of {row.parent} = {row.part.share:.1%} of the time"
    return f"{row.name} is {row.part.share:.1%} of the time"


def rows_over(words: "re.Pattern[str]", least: float, factor: float = inf, **more: Any) -> Any:
    """What looks for rows of such names that take more than so much."""

    def look(case: Case) -> Iterator[Sight]:
        for row in case.named(words):
            if row.part.share >= least and row.part.low >= least * SURELY:
                yield Sight(said=told(row), row=row, part=row.part, factor=factor, **more)

    return look


def lever_at(words: "re.Pattern[str]", factor: float = inf) -> Any:
    """Return what looks whether the line that takes most of the lever's time has such code."""

    def look(case: Case) -> Iterator[Sight]:
        line, row = case.hottest_line, case.lever
        if line is None or row is None or not words.search(line[0].partition(": ")[2].lower()):
            return
        part = row.part.scaled(line[1])
        if part.share >= LEAST_AT:
            yield Sight(
                said=f"{told(row)}, {line[1]:.0%} of that at {line[0]}", row=row, part=part, factor=factor
            )

    return look


def logging(case: Case) -> Iterator[Sight]:
    """Rows that write logs, or the line of the lever that does."""
    found = [*lever_at(names.LOGGING_CODE, RARER)(case)]
    yield from found or rows_over(names.LOGGING, 0.02, RARER)(case)


def copies(case: Case) -> Iterator[Sight]:
    """Rows that copy, or operators of torch that do."""
    yield from rows_over(names.ON_GPU if case.on_gpu else names.COPIES, 0.03)(case)
    for found in case.record.findings:
        for table in found.tables if found.probe == "torch" else ():
            rows = [dict(zip(table.columns, each, strict=False)) for each in table.rows]
            spent = {str(each["operator"]): each["self_cpu_ns"] + each["self_device_ns"] for each in rows}
            whole = sum(spent.values())
            moved = {name: ns for name, ns in spent.items() if names.COPIES.search(name.lower())}
            share = sum(moved.values()) / whole if whole else 0.0
            if share >= 0.1:
                moving = ", ".join(moved)
                yield Sight(said=f"{moving} are {share:.0%} of what torch did", part=Part(share=share))


def imitation_steps(case: Case) -> int | None:
    """Env-steps that a teacher was asked for; None where nobody said."""
    told = [case.setting(name) for name in ("supervised_steps", "fade_steps")]
    return None if all(each is None for each in told) else sum(int(each or 0) for each in told)


def teacher_left_on(case: Case) -> Iterator[Sight]:
    """A teacher that is called after the steps of imitation are over."""
    asked, steps = imitation_steps(case), case.record.work.env_steps
    if asked is None or not steps or asked >= steps:
        return
    loop_calls = max((row.calls for row in case.rows if row.matches(names.ENV_STEP)), default=0)
    for row in case.named(names.TEACHER):
        calls = loop_calls or steps
        wanted = asked / steps
        if row.calls > (wanted + 0.05) * calls and row.part.share >= 0.02:
            beyond = 1 - wanted * calls / row.calls
            said = f"{told(row)}; imitation ends after {wanted:.0%} of the steps, and it is called in all"
            yield Sight(said=said, row=row, part=row.part.scaled(beyond))


def small_batch(case: Case) -> Iterator[Sight]:
    """Forward calls of few rows: the call costs more than they do."""
    samples = case.record.work.agent_steps
    for row in case.named(names.STUDENT):
        batch = samples / row.calls if row.calls and samples else inf
        if batch < SMALL_BATCH and row.part.share >= 0.1 and "learn" not in row.path:
            said = f"{told(row)}, in calls of {batch:.0f} rows"
            yield Sight(said=said, row=row, part=row.part, factor=SMALL_BATCH / max(batch, 1.0), at_most=True)


def python_per_env(case: Case) -> Iterator[Sight]:
    """Several envs, each stepped by a call of its own from Python."""
    envs, steps = case.setting("num_envs") or 1, case.record.work.env_steps
    if envs < 2 or case.record.target.impl == "native":
        return
    for row in case.rows:
        single = row.matches(names.ENV_STEP) and row.calls >= 0.9 * steps and row.mean_ns < SHORT_CALL_NS
        if single and steps and row.part.share >= 0.2 and not below(row, case):
            said = f"{told(row)}: {row.calls:,} calls of {row.mean_ns / 1e3:.1f} µs for {envs} envs"
            yield Sight(said=said, row=row, part=row.part, factor=float(envs), at_most=True)


def below(row: Row, case: Case) -> bool:
    """Whether another row of the kind is above it, which has it already."""
    return any(
        row.path.startswith(f"{each.path}/") and each.matches(names.ENV_STEP) and each.calls == row.calls
        for each in case.rows
    )


def skew(case: Case) -> Iterator[Sight]:
    """Workers, or threads, of which one is waited for."""
    yield from rows_over(names.SKEW, 0.05)(case)
    for found in case.record.findings:
        for table in found.tables if found.probe == "threads" and case.record.method.threads > 1 else ():
            shares = [row[2] for row in table.rows if len(row) > 2 and isinstance(row[2], float)]
            busy = sorted((each for each in shares if each > 0.05), reverse=True)
            if len(busy) > 1 and busy[0] > 1.5 * sum(busy) / len(busy):
                lost = 1 - sum(busy) / len(busy) / busy[0]
                ends = f"{busy[0]:.0%} of the time, the least busy {busy[-1]:.0%}"
                said = f"the busiest of {len(busy)} threads works {ends}"
                yield Sight(said=said, part=Part(share=lost), at_most=True)


def garbage(case: Case) -> Iterator[Sight]:
    pauses, wall_ns = pauses_of(case)
    share = pauses.total_ns / wall_ns if pauses and wall_ns else 0.0
    if pauses and share >= 0.02:
        said = (
            f"{pauses.collections:,} collections took {share:.1%} of the time, "
            f"the longest {pauses.longest_ns / 1e6:.1f} ms"
        )
        yield Sight(said=said, part=Part(share=share))


def pauses_of(case: Case) -> tuple[Pauses | None, int]:
    """The pauses that were seen, and the time they are part of."""
    record = case.record
    if record.slow is not None:
        return record.slow.pauses, sum(map(int, record.values.get("instrumented_wall_ns", ())))
    if record.resources is not None and record.resources.pauses is not None:
        return record.resources.pauses, case.wall_ns
    return None, 0


def allocations(case: Case) -> Iterator[Sight]:
    count = case.fact("memory", "allocations_per_env_step")
    size = case.fact("memory", "allocated_bytes_per_env_step")
    if count is not None and size is not None and (count >= ALLOCATIONS or size >= ALLOCATED_BYTES):
        yield Sight(said=f"{count:,.0f} allocations of {size:,.0f} bytes in all an env-step")


def evaluation(case: Case) -> Iterator[Sight]:
    every, calls = case.setting("every"), case.record.work.updates
    for sight in rows_over(names.EVALUATION, 0.05, RARER)(case):
        apart = round(calls / sight.row.calls) if sight.row.calls and calls else 0
        often = f", once in {apart} updates" if apart > 1 else ", after every update" if apart else ""
        keys = {"train.eval.every": int(every * RARER)} if isinstance(every, int) and every else {}
        yield replace(sight, said=sight.said + often, keys=keys)


def half_precision(case: Case) -> Iterator[Sight]:
    if case.setting("mixed_precision", "amp", "bf16") is not False:
        return
    rows = [row for row in case.rows if row.is_leaf and row.matches(names.LEARNING)]
    part = together(rows)
    if part.share >= 0.2:
        said = f"{', '.join(row.name for row in rows)} are {part.share:.0%} of the time, in float32 on a GPU"
        keys = {"train.mixed_precision": "true"} if case.record.kind == "train" else {}
        yield Sight(said=said, part=part, factor=BFLOAT16, at_most=True, keys=keys)


def together(rows: list[Row]) -> Part:
    """Several rows as one part; its interval is at most the sum of theirs."""
    ends = (sum(row.part.low for row in rows), sum(row.part.high for row in rows))
    known = any(row.part.interval for row in rows)
    return Part(share=sum(row.part.share for row in rows), interval=ends if known else None)


def path_not_taken(case: Case) -> Iterator[Sight]:
    """Steps that left the way that was asked for, by the counters of who did them."""
    path, steps = case.record.path, case.record.work.env_steps
    asked = "native" if path.requested == "auto" else path.requested
    native = path.counters.get("native_steps")
    ran = native / steps if native is not None and steps else path.ran.get(asked, 1.0)
    if path.ran and ran < 1:
        yield Sight(said=f"{1 - ran:.1%} of the steps did not run as {asked}", part=None)
        return
    for name, count in path.counters.items():
        if count and names.SLOW_PATH.search(name.lower()):
            yield Sight(said=f"the counter {name} is {count:,} in {steps:,} steps")


def unaccounted(case: Case) -> Iterator[Sight]:
    share = (case.record.unaccounted_ns or 0) / case.wall_ns if case.wall_ns else 0.0
    if share > UNACCOUNTED_SHARE and not (case.is_step and case.record.method.threads > 1):
        yield Sight(said=f"{share:.1%} of the time is in no row")


def heavy(case: Case) -> Iterator[Sight]:
    cost = case.record.overhead
    least = (cost.ci95[0] if cost.ci95 else cost.ratio) if cost else 1.0
    if cost and least > 1 + OVERHEAD_SHARE:
        yield Sight(
            said=f"profiling took {cost.ratio:.2f}x the time of the clean run: short rows look too large"
        )


def growth(case: Case) -> Iterator[Sight]:
    """Memory that goes on rising when a run has settled, by the probe or by the looks at it."""
    low = case.fact("memory", "growth_bytes_low")
    if low is not None:
        if low > 64:
            each = case.fact("memory", "growth_bytes_per_env_step")
            yield Sight(said=f"memory grows by {each:,.0f} bytes an env-step, at least {low:,.0f}")
        return
    rise = find_rise(case.record)
    if rise:
        yield Sight(said=rise.said)


def decay(case: Case) -> Iterator[Sight]:
    """A speed that falls from look to look, with the row that takes longer and longer."""
    fall = find_fall(case.record)
    if fall:
        row = next((row for row in case.rows if row.path == fall.row), None)
        yield Sight(said=fall.said, row=row, part=Part(share=fall.lost))


def idle_core(case: Case) -> Iterator[Sight]:
    busy, cores = case.busy, case.cores
    if busy is None or cores is None or cores < 2 or busy > SERIAL:
        return
    part, keys = spreadable(case, cores)
    said = f"{busy:.2f} threads had something to do on average, and there are {cores} cores"
    if keys and part.share >= 0.05:
        yield Sight(said=said, part=part, factor=float(cores), at_most=True, keys=keys)


def spreadable(case: Case, cores: int) -> tuple[Part, dict[str, object]]:
    """What more threads could share, by the settings that say how many there are.

    Nobody knows that of a loop that says nothing: one thing may have to come after another.
    """
    mine = "train." if case.record.kind == "train" else ""
    keys = larger_crew(case, cores)
    rows = [row for row in case.rows if keys and row.matches(names.ENV_STEP) and not below(row, case)]
    if is_below(case.setting(TORCH_THREADS), cores) and case.setting(f"{TORCH_THREADS}_by") != "measured":
        rows += [row for row in case.rows if row.is_leaf and row.matches(names.LEARNING)]
        keys[mine + TORCH_THREADS] = cores
    return (together(rows) if rows or mine else WHOLE), keys


def larger_crew(case: Case, cores: int) -> dict[str, object]:
    """What lets more of them step the envs: of somebody's envs in a training, workers in their processes."""
    if case.record.kind == "train" and case.record.target.impl == "foreign":
        return {"vector": "async"} if case.setting("vector") == "sync" else {}
    return next(({name: cores} for name in CREW if is_below(case.setting(name), cores)), {})


def says_threads(case: Case) -> bool:
    """Whether it is known how many threads or workers there may be."""
    return any(case.setting(name) is not None for name in (*CREW, TORCH_THREADS))


def is_below(value: object, cores: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value < cores


def crowd(case: Case) -> Iterator[Sight]:
    """More threads with something to do than cores, beyond what was there before the run."""
    busy, cores = case.busy, case.cores
    load = case.record.machine.get("load") or 0.0
    asked = case.record.method.threads
    if cores and asked > cores:
        yield Sight(said=f"{asked} threads on {cores} cores")
    elif busy is not None and cores and busy > CROWDED * cores + load:
        lost = case.record.resources.ready_share if case.record.resources else None
        said = f"{busy:.1f} threads had something to do on average, on {cores} cores"
        yield Sight(said=said, part=Part(share=min((lost or 0) / busy, 0.9)), at_most=True)


def barriers(case: Case) -> Iterator[Sight]:
    """Rows that wait for each other, and what an env's step has beyond its phases on several threads."""
    yield from rows_over(names.BARRIER, 0.05)(case)
    if case.record.method.threads < 2:
        return
    for row in case.rows:
        inside = [each for each in case.rows if each.path.rpartition("/")[0] == row.path]
        if row.name in ("environment", "step") and inside:
            rest = row.part.share - sum(each.part.share for each in inside)
            if rest >= 0.1:
                said = f"{rest:.0%} of the time is the call into {row.name} and its threads' waiting"
                yield Sight(said=said, part=Part(share=rest), at_most=True)


def rebuilt(case: Case) -> Iterator[Sight]:
    """An index that is built anew more often than anything in it moves or is asked for."""
    counters = case.record.path.counters
    builds = sum(count for name, count in counters.items() if "rebuild" in name.lower())
    reasons = [
        count for name, count in counters.items() if re.search("quer|lookup|moved|changed", name.lower())
    ]
    if builds and reasons and builds > max(reasons):
        rows = case.named(names.INDEX)
        row = rows[0] if rows else None
        wasted = 1 - max(reasons) / builds
        said = f"{builds:,} rebuilds for {max(reasons):,} queries or changes"
        part = row.part.scaled(wasted) if row else None
        yield Sight(said=f"{told(row)}; {said}" if row else said, row=row, part=part)


def waits(case: Case) -> Iterator[Sight]:
    """Rows called waiting, and rows that were hardly on a core; functions only where no row was."""
    seen = set[str]()
    for sight in rows_over(names.WAITS, 0.1, at_most=True)(case):
        if sight.row.worked is None or sight.row.worked < 0.5:
            seen.add(sight.row.path)
            yield replace(sight, said=sight.said + idle_cores(case))
    sampled = [row for row in case.functions if row.is_leaf]
    for row in hardly_on_core(case, case.clocked) or hardly_on_core(case, sampled):
        if row.path not in seen:
            said = f"{told(row)}, on a core for {row.worked:.0%} of it{idle_cores(case)}"
            yield Sight(said=said, row=row, part=row.part, at_most=True)


def idle_cores(case: Case) -> str:
    """Return how many cores had work while a row waited; empty if that is not known, or all of them had."""
    busy, cores = case.busy, case.cores
    if busy is None or cores is None or busy > cores - IDLE_CORES:
        return ""
    return f"; {busy:.1f} of {cores} cores had work"


def hardly_on_core(case: Case, rows: Sequence[Row]) -> list[Row]:
    """Those of a tenth of the time and more that waited, where others worked."""
    return [
        row
        for row in rows
        if row.worked is not None and row.part.share >= 0.1 and row.worked < WAITED * most_worked(case, row)
    ]


def most_worked(case: Case, row: Row) -> float:
    """The share of its time that any other row was on a core for, on a busy machine the usual one of them."""
    among = [each for each in case.functions if each.is_leaf] if row.sampled else case.rows
    others = [each.worked for each in among if each is not row and each.part.share >= 0.05]
    used = case.record.resources
    crowded = used is not None and (used.ready_share or 0.0) > 0.2
    known = [each for each in others if each is not None]
    if crowded:
        return median(known) if known else 0.0
    return max(known, default=1.0)


def rival(case: Case) -> Iterator[Sight]:
    """Another way of doing a phase, which was measured beside the one that ran.

    What it buys is by a whole step where that was measured: a way of one phase changes others too, by the
    work it does in them and by what it leaves in the caches.
    """
    for other in case.alternatives or ():
        for row in case.rows:
            if row.name == other.phase and row.is_leaf:
                part, times = touched(case, row, other)
                there = f"{other.words} was {other.ratio.estimate:.2f} times as fast there"
                all_of_it = f" and {times.estimate:.2f} times in a whole step" if other.whole else ""
                yield Sight(
                    said=f"{told(row)}; {there}{all_of_it}, measured in turns",
                    row=row,
                    part=part,
                    factor=times.estimate,
                    factors=(times.low, times.high),
                    keys=other.keys,
                )


def touched(case: Case, row: Row, other: Alternative) -> tuple[Part, Ratio]:
    """What another way of a phase makes faster, and how many times: the step it is in, or the phase alone."""
    if other.whole is None:
        return row.part, other.ratio
    step = case.above(row)
    return (step.part if case.is_loop and step else WHOLE), other.whole
