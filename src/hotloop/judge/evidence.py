"""Evidence: what each rule of a diagnosis sees in a case; it looks at the record and runs nothing."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import median
from typing import Any

from hotloop.core.record.codec import Interval
from hotloop.core.record.profile import Pauses
from hotloop.judge.case import ENV_STEP, WHOLE, Case, Part, Row, pattern, speed_up
from hotloop.judge.course import find_fall, find_rise
from hotloop.judge.judge import OVERHEAD_SHARE, UNACCOUNTED_SHARE

# The words by which rows of any loop are known for what they are.
COPIES = pattern(
    r"device.?to.?host",
    r"host.?to.?device",
    r"\bd2h\b",
    r"\bh2d\b",
    r"to.?cpu",
    r"to.?host",
    r"memcpy",
    r"read.?back",
    r"\.cpu\b",
    r"_to_copy",
    r"\bcopy_$",
)
ON_GPU = pattern(COPIES.pattern, "stack and back")
TEACHER = pattern("teacher", "expert", "oracle", "labell?er")
STUDENT = pattern("student", "policy", "forward", "inference", r"\bact\b", "predict")
SKEW = pattern("from the first to the last", "straggler", "slowest", "skew")
LOGGING = pattern(
    r"(\b|_)logs?\b", "logg", "log_", r"\bprint", "tensorboard", "wandb", r"\bflush", "write.metrics"
)
LOGGING_CODE = pattern(r"\blog(s|ger|ging)?\.", r"\bprint\(", r"\.write(row|rows|lines)?\(", r"\.flush\(")
EVALUATION = pattern(r"eval(?!uate_actions)", "test.?episodes")
INDEX = pattern("rebuild", "build.?index", r"\bindex\b", "kd.?tree", "quad.?tree", "spatial")
INSERTS = pattern("insert", r"\bappend\b", "enqueue", r"\badd\b", r"\bput\b", r"\bpush\b")
SQL = pattern(r"'execute' of", r"\bexecute \(")
IN_FILE = pattern(r":\d+\)$")
BARRIER = pattern("barrier", r"\bjoin\b", "rendezvous", "all.?reduce", "synchroni[sz]e")
WAITS = pattern("wait", "queue", r"\brecv", r"_recv\b", "receive", r"\bpoll", "sleep", r"\block\b", "acquire")
LEARNING = pattern("forward", "backward", "student", "optimi[sz]er")
SLOW_PATH = pattern("fall.?back", "slow.?path", "python_path", "reference_steps")

SURELY = 0.5  # Part of its least share that a row's interval must reach: one slow window is no fault
SMALL_BATCH = 64  # Rows of one forward call, up to which the call costs about as much as its rows
LEAST_AT = 0.05  # Share of the time from which a single line is worth advice
RARER = 10.0  # How many times as rarely one may evaluate, or write a log, and still see a training
SHORT_CALL_NS = 200_000  # A shorter call of one env is largely Python's own overhead
ALLOCATIONS, ALLOCATED_BYTES = 50, 65_536  # Per env-step, from which they are worth a look
SERIAL = 1.25  # Runnable threads on average, up to which a loop is called serial
IDLE_CORES = 0.5  # Cores without work, from which they are named beside a row that waits
CROWDED = 1.5  # Runnable threads per core, from which they stand in each other's way
WAITED = 0.15  # Share of its time on a core, up to which a row is called waiting
BFLOAT16 = 2.0  # Half the bytes: the most that mixed precision gains where memory bounds a matrix product
MANY = 8  # Calls per round of the loop, from which one call would do
FOR_EACH = 32  # Calls of a Python function per env-step, from which it is called for each of many things
OPAQUE = 0.5  # Share of the time in one function, from which one wants to know how often it is called

# Settings that say how many step envs, and how many threads torch has.
CREW, TORCH_THREADS = ("threads", "num_threads", "num_workers", "workers"), "torch_threads"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What a rule sees in a case."""

    said: str  # The evidence, in a sentence
    row: Row | None = None
    part: Part | None = None  # Of the wall time that the change would touch; None if it buys no known time
    factor: float = inf  # How many times as fast that part would be; infinite if it goes away
    factors: Interval | None = None  # The interval of the factor, if it was measured
    at_most: bool = False  # Whether the factor is a bound and no promise
    keys: Mapping[str, object] = field(default_factory=dict)  # What would be typed to make the change

    @property
    def gain(self) -> float | None:
        """Times as fast end to end."""
        return speed_up(self.part.share, self.factor) if self.part else None

    @property
    def interval(self) -> Interval | None:
        """Of the gain: from the smallest share at the smallest factor to the largest at the largest."""
        if self.part is None or (self.part.interval is None and self.factors is None):
            return None
        low, high = self.factors or (self.factor, self.factor)
        return speed_up(self.part.low, low), speed_up(self.part.high, high)


Look = Callable[[Case], Iterator[Observation]]


def describe_share(row: Row) -> str:
    """Say what a row is a part of, and its share of all the time."""
    if row.parent is not None and row.of_parent is not None:
        return f"{row.name} is {row.of_parent:.0%} of {row.parent} = {row.part.share:.1%} of the time"
    return f"{row.name} is {row.part.share:.1%} of the time"


def rows_over(words: "re.Pattern[str]", least: float, factor: float = inf, **more: Any) -> Any:
    """Return what looks for rows of such names that take more than a share of the time."""

    def look(case: Case) -> Iterator[Observation]:
        for row in case.named(words):
            if row.part.share >= least and row.part.low >= least * SURELY:
                yield Observation(said=describe_share(row), row=row, part=row.part, factor=factor, **more)

    return look


def lever_at(words: "re.Pattern[str]", factor: float = inf) -> Look:
    """Return what looks whether the line that takes most of the lever's time has such code."""

    def look(case: Case) -> Iterator[Observation]:
        line, row = case.hottest_line, case.lever
        if line is None or row is None or not words.search(line[0].partition(": ")[2].lower()):
            return
        part = row.part.scaled(line[1])
        if part.share >= LEAST_AT:
            said = f"{describe_share(row)}, {line[1]:.0%} of that at {line[0]}"
            yield Observation(said=said, row=row, part=part, factor=factor)

    return look


def logging(case: Case) -> Iterator[Observation]:
    """Yield rows that write logs, or the line of the lever that does."""
    yield from [*lever_at(LOGGING_CODE, RARER)(case)] or rows_over(LOGGING, 0.02, RARER)(case)


def copies(case: Case) -> Iterator[Observation]:
    """Yield rows that copy, or operators of torch that do."""
    yield from rows_over(ON_GPU if case.on_gpu else COPIES, 0.03)(case)
    for _, rows in case.tables("torch"):
        spent = {str(each["operator"]): each["self_cpu_ns"] + each["self_device_ns"] for each in rows}
        whole = sum(spent.values())
        moved = {name: ns for name, ns in spent.items() if COPIES.search(name.lower())}
        share = sum(moved.values()) / whole if whole else 0.0
        if share >= 0.1:
            said = f"{', '.join(moved)} are {share:.0%} of what torch did"
            yield Observation(said=said, part=Part(share=share))


def imitation_steps(case: Case) -> int | None:
    """Return for how many env-steps a teacher was asked; None if the settings do not say."""
    steps = [case.setting(name) for name in ("supervised_steps", "fade_steps")]
    return None if all(each is None for each in steps) else sum(int(each or 0) for each in steps)


def teacher_left_on(case: Case) -> Iterator[Observation]:
    """Yield a teacher that is called after the steps of imitation are over."""
    asked, steps = imitation_steps(case), case.record.work.env_steps
    if asked is None or not steps or asked >= steps:
        return
    wanted = asked / steps
    calls = max((row.calls for row in case.rows if row.matches(ENV_STEP)), default=0) or steps
    for row in case.named(TEACHER):
        if row.calls > (wanted + 0.05) * calls and row.part.share >= 0.02:
            ends = f"imitation ends after {wanted:.0%} of the steps, and it is called in all"
            part = row.part.scaled(1 - wanted * calls / row.calls)
            yield Observation(said=f"{describe_share(row)}; {ends}", row=row, part=part)


def small_batch(case: Case) -> Iterator[Observation]:
    """Yield forward calls of few rows: the call costs more than they do."""
    samples = case.record.work.agent_steps
    for row in case.named(STUDENT):
        batch = samples / row.calls if row.calls and samples else inf
        if batch < SMALL_BATCH and row.part.share >= 0.1 and "learn" not in row.path:
            said = f"{describe_share(row)}, in calls of {batch:.0f} rows"
            factor = SMALL_BATCH / max(batch, 1.0)
            yield Observation(said=said, row=row, part=row.part, factor=factor, at_most=True)


def python_per_env(case: Case) -> Iterator[Observation]:
    """Yield several envs, each stepped by a call of its own from Python."""
    envs, steps = case.setting("num_envs") or 1, case.record.work.env_steps
    if envs < 2 or case.record.target.impl == "native":
        return
    for row in case.rows:
        single = row.matches(ENV_STEP) and row.calls >= 0.9 * steps and row.mean_ns < SHORT_CALL_NS
        if single and steps and row.part.share >= 0.2 and not is_in_step(row, case):
            said = f"{describe_share(row)}: {row.calls:,} calls of {row.mean_ns / 1e3:.1f} µs for {envs} envs"
            yield Observation(said=said, row=row, part=row.part, factor=float(envs), at_most=True)


def is_in_step(row: Row, case: Case) -> bool:
    """Return whether a row of the env's step lies above a row, with as many calls."""
    return any(
        row.path.startswith(f"{each.path}/") and each.matches(ENV_STEP) and each.calls == row.calls
        for each in case.rows
    )


def skew(case: Case) -> Iterator[Observation]:
    """Yield workers, or threads, of which one is waited for."""
    yield from rows_over(SKEW, 0.05)(case)
    for table, _ in case.tables("threads") if case.record.method.threads > 1 else ():
        shares = [row[2] for row in table.rows if len(row) > 2 and isinstance(row[2], float)]
        busy = sorted((each for each in shares if each > 0.05), reverse=True)
        if len(busy) > 1 and busy[0] > 1.5 * sum(busy) / len(busy):
            ends = f"{busy[0]:.0%} of the time, the least busy {busy[-1]:.0%}"
            said = f"the busiest of {len(busy)} threads works {ends}"
            yield Observation(said=said, part=Part(share=1 - sum(busy) / len(busy) / busy[0]), at_most=True)


def garbage(case: Case) -> Iterator[Observation]:
    """Yield pauses of the garbage collector."""
    pauses, wall_ns = pauses_of(case)
    share = pauses.total_ns / wall_ns if pauses and wall_ns else 0.0
    if pauses and share >= 0.02:
        longest = f"the longest {pauses.longest_ns / 1e6:.1f} ms"
        said = f"{pauses.collections:,} collections took {share:.1%} of the time, {longest}"
        yield Observation(said=said, part=Part(share=share))


def pauses_of(case: Case) -> tuple[Pauses | None, int]:
    """Return the pauses that were seen, and the time in ns that they are part of."""
    record = case.record
    if record.slow is not None:
        return record.slow.pauses, sum(map(int, record.values.get("instrumented_wall_ns", ())))
    if record.resources is not None and record.resources.pauses is not None:
        return record.resources.pauses, case.wall_ns
    return None, 0


def allocations(case: Case) -> Iterator[Observation]:
    """Yield memory that is allocated in every step."""
    count = case.fact("memory", "allocations_per_env_step")
    size = case.fact("memory", "allocated_bytes_per_env_step")
    if count is not None and size is not None and (count >= ALLOCATIONS or size >= ALLOCATED_BYTES):
        yield Observation(said=f"{count:,.0f} allocations of {size:,.0f} bytes in all an env-step")


def evaluation(case: Case) -> Iterator[Observation]:
    """Yield evaluations, with how many updates apart they are."""
    every, updates = case.setting("every"), case.record.work.updates
    for seen in rows_over(EVALUATION, 0.05, RARER)(case):
        between = round(updates / seen.row.calls) if seen.row.calls and updates else 0
        often = f", once in {between} updates" if between > 1 else ", after every update" if between else ""
        keys = {"train.eval.every": int(every * RARER)} if isinstance(every, int) and every else {}
        yield replace(seen, said=seen.said + often, keys=keys)


def half_precision(case: Case) -> Iterator[Observation]:
    """Yield learning in float32 on a GPU that could do it in bfloat16."""
    if case.setting("mixed_precision", "amp", "bf16") is not False:
        return
    rows = [row for row in case.rows if row.is_leaf and row.matches(LEARNING)]
    part = together(rows)
    if part.share >= 0.2:
        said = f"{', '.join(row.name for row in rows)} are {part.share:.0%} of the time, in float32 on a GPU"
        keys = {"train.mixed_precision": "true"} if case.record.kind == "train" else {}
        yield Observation(said=said, part=part, factor=BFLOAT16, at_most=True, keys=keys)


def together(rows: list[Row]) -> Part:
    """Return several rows as one part; its interval is at most the sum of theirs."""
    ends = (sum(row.part.low for row in rows), sum(row.part.high for row in rows))
    known = any(row.part.interval for row in rows)
    return Part(share=sum(row.part.share for row in rows), interval=ends if known else None)


def path_not_taken(case: Case) -> Iterator[Observation]:
    """Yield steps that left the requested path, by the counters of the code that did them."""
    path, steps = case.record.path, case.record.work.env_steps
    asked = "native" if path.requested == "auto" else path.requested
    native = path.counters.get("native_steps")
    ran = native / steps if native is not None and steps else path.ran.get(asked, 1.0)
    if path.ran and ran < 1:
        yield Observation(said=f"{1 - ran:.1%} of the steps did not run as {asked}")
        return
    for name, count in path.counters.items():
        if count and SLOW_PATH.search(name.lower()):
            yield Observation(said=f"the counter {name} is {count:,} in {steps:,} steps")


def unaccounted(case: Case) -> Iterator[Observation]:
    """Yield time that no row accounts for."""
    share = (case.record.unaccounted_ns or 0) / case.wall_ns if case.wall_ns else 0.0
    if share > UNACCOUNTED_SHARE and not (case.is_step and case.record.method.threads > 1):
        yield Observation(said=f"{share:.1%} of the time is in no row")


def heavy(case: Case) -> Iterator[Observation]:
    """Yield an instrument that costs too much."""
    cost = case.record.overhead
    least = (cost.ci95[0] if cost.ci95 else cost.ratio) if cost else 1.0
    if cost and least > 1 + OVERHEAD_SHARE:
        said = f"profiling took {cost.ratio:.2f}x the time of the clean run: short rows look too large"
        yield Observation(said=said)


def growth(case: Case) -> Iterator[Observation]:
    """Yield memory that goes on rising when a run has settled, by the probe or by the looks at it."""
    low = case.fact("memory", "growth_bytes_low")
    if low is not None:
        if low > 64:
            each = case.fact("memory", "growth_bytes_per_env_step")
            yield Observation(said=f"memory grows by {each:,.0f} bytes an env-step, at least {low:,.0f}")
    elif rise := find_rise(case.record):
        yield Observation(said=rise.said)


def decay(case: Case) -> Iterator[Observation]:
    """Yield a speed that falls from look to look, with the row that takes longer and longer."""
    if fall := find_fall(case.record):
        row = next((row for row in case.rows if row.path == fall.row), None)
        yield Observation(said=fall.said, row=row, part=Part(share=fall.lost))


def idle_core(case: Case) -> Iterator[Observation]:
    """Yield cores without work, if the settings say how many threads or workers there are.

    Of a loop that does not say, nothing is known: one thing may have to come after another.
    """
    busy, cores = case.busy, case.cores
    if busy is None or cores is None or cores < 2 or busy > SERIAL:
        return
    mine = "train." if case.record.kind == "train" else ""
    keys: dict[str, object] = {}
    if case.record.kind == "train" and case.record.target.impl == "foreign":  # in worker processes
        keys = {"vector": "async"} if case.setting("vector") == "sync" else {}
    else:
        keys = next(({name: cores} for name in CREW if is_fewer(case.setting(name), cores)), {})
    rows = [row for row in case.rows if keys and row.matches(ENV_STEP) and not is_in_step(row, case)]
    if is_fewer(case.setting(TORCH_THREADS), cores) and case.setting(f"{TORCH_THREADS}_by") != "measured":
        rows += [row for row in case.rows if row.is_leaf and row.matches(LEARNING)]
        keys[mine + TORCH_THREADS] = cores
    part = together(rows) if rows or mine else WHOLE
    if keys and part.share >= 0.05:
        said = f"{busy:.2f} threads had something to do on average, and there are {cores} cores"
        yield Observation(said=said, part=part, factor=float(cores), at_most=True, keys=keys)


def is_fewer(value: object, cores: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value < cores


def oversubscribed_cores(case: Case) -> Iterator[Observation]:
    """Yield more runnable threads than cores, beyond what ran before."""
    busy, cores, asked = case.busy, case.cores, case.record.method.threads
    load = case.record.machine.get("load") or 0.0
    if cores and asked > cores:
        yield Observation(said=f"{asked} threads on {cores} cores")
    elif busy is not None and cores and busy > CROWDED * cores + load:
        lost = case.record.resources.ready_share if case.record.resources else None
        said = f"{busy:.1f} threads had something to do on average, on {cores} cores"
        yield Observation(said=said, part=Part(share=min((lost or 0) / busy, 0.9)), at_most=True)


def sync_barriers(case: Case) -> Iterator[Observation]:
    """Yield rows that wait for each other, and the rest of a threaded step."""
    yield from rows_over(BARRIER, 0.05)(case)
    if case.record.method.threads < 2:
        return
    for row in case.rows:
        inside = [each for each in case.rows if each.path.rpartition("/")[0] == row.path]
        if row.name in ("environment", "step") and inside:
            rest = row.part.share - sum(each.part.share for each in inside)
            if rest >= 0.1:
                said = f"{rest:.0%} of the time is the call into {row.name} and its threads' waiting"
                yield Observation(said=said, part=Part(share=rest), at_most=True)


def rebuilt(case: Case) -> Iterator[Observation]:
    """Yield an index that is built anew more often than anything in it moves or is queried."""
    counters = [(name.lower(), count) for name, count in case.record.path.counters.items()]
    builds = sum(count for name, count in counters if "rebuild" in name)
    reasons = [count for name, count in counters if re.search("quer|lookup|moved|changed", name)]
    if builds and reasons and builds > max(reasons):
        row = next(iter(case.named(INDEX)), None)
        said = f"{builds:,} rebuilds for {max(reasons):,} queries or changes"
        part = row.part.scaled(1 - max(reasons) / builds) if row else None
        yield Observation(said=f"{describe_share(row)}; {said}" if row else said, row=row, part=part)


def waits(case: Case) -> Iterator[Observation]:
    """Yield rows called waiting, and rows that were hardly on a core; functions only if no row was."""
    known = set[str]()
    busy, cores, idle = case.busy, case.cores, ""
    if busy is not None and cores is not None and busy <= cores - IDLE_CORES:
        idle = f"; {busy:.1f} of {cores} cores had work"
    for seen in rows_over(WAITS, 0.1, at_most=True)(case):
        if seen.row.worked is None or seen.row.worked < 0.5:
            known.add(seen.row.path)
            yield replace(seen, said=seen.said + idle)
    sampled = [row for row in case.functions if row.is_leaf]
    for row in hardly_on_core(case, case.clocked) or hardly_on_core(case, sampled):
        if row.path not in known:
            said = f"{describe_share(row)}, on a core for {row.worked:.0%} of it{idle}"
            yield Observation(said=said, row=row, part=row.part, at_most=True)


def hardly_on_core(case: Case, rows: Sequence[Row]) -> list[Row]:
    """Return those of a tenth of the time and more that waited while others worked."""
    used, found = case.record.resources, []
    for row in rows:
        if row.worked is None or row.part.share < 0.1:
            continue
        among = [each for each in case.functions if each.is_leaf] if row.sampled else case.rows
        others = [each.worked for each in among if each is not row and each.part.share >= 0.05]
        known = [each for each in others if each is not None]
        most = max(known, default=1.0)
        if used is not None and (used.ready_share or 0.0) > 0.2:  # on a busy machine, what is usual
            most = median(known) if known else 0.0
        if row.worked < WAITED * most:
            found.append(row)
    return found


def rival(case: Case) -> Iterator[Observation]:
    """Yield another way of doing a phase, which was measured beside the one that ran.

    What it buys is by a whole step if that was measured: a way of one phase changes others too, by the
    work it does in them and by what it leaves in the caches.
    """
    for other in case.alternatives or ():
        for row in case.rows:
            if row.name != other.phase or not row.is_leaf:
                continue
            part, times, all_of_it = row.part, other.ratio, ""
            if other.whole is not None:
                above = row.path.rpartition("/")[0]
                step = next((each for each in case.rows if each.path == above), None)
                part, times = (step.part if case.is_loop and step else WHOLE), other.whole
                all_of_it = f" and {times.estimate:.2f} times in a whole step"
            there = f"{other.words} was {other.ratio.estimate:.2f} times as fast there"
            yield Observation(
                said=f"{describe_share(row)}; {there}{all_of_it}, measured in turns",
                row=row,
                part=part,
                factor=times.estimate,
                factors=(times.low, times.high),
                keys=other.keys,
            )


def inserts(case: Case) -> Iterator[Observation]:
    """Yield rows, or SQL statements as cProfile counted them, that put things away one at a time."""
    work, envs = case.record.work, case.setting("num_envs") or 1
    steps = work.env_steps
    rounds = work.updates or max(1, steps // max(int(envs), 1))  # of the loop: updates, or calls of a batch
    for row in case.named(INSERTS):
        each_step = steps and row.calls >= 0.9 * steps and row.part.share >= 0.05
        if each_step and (envs > 1 or row.calls >= MANY * rounds):
            said = f"{describe_share(row)}, in {row.calls:,} calls for {steps:,} env-steps"
            factor = row.calls / max(rounds, 1)
            yield Observation(said=said, row=row, part=row.part, factor=factor, at_most=True)
    yield from called_often(SQL, MANY, 0.05)(case)


def called_often(words: "re.Pattern[str]", least: float, share: float) -> Look:
    """Return what looks for functions that cProfile saw called so often per env-step, with such a share."""

    def look(case: Case) -> Iterator[Observation]:
        steps = case.fact("cprofile", "env_steps")
        for _, rows in case.tables("cprofile") if steps else ():
            for each in rows:
                name, own, often = str(each["function"]), each["own_share"], each["calls"] / steps
                if often >= least and own >= share and words.search(name):
                    said = f"{name} is {own:.1%} of the time under cProfile, {often:,.0f} calls an env-step"
                    yield Observation(said=said, part=Part(share=own), factor=often, at_most=True)

    return look
