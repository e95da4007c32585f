"""Rules: each one of a diagnosis as a row of a table, with the evidence it needs and what to do.

If a rule's evidence is not in a record, `has` says so, and `get` is what to run to have it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from hotloop.core.record import Record
from hotloop.judge import evidence
from hotloop.judge.case import Case, pattern
from hotloop.judge.course import NEEDS, is_long, memory_points, speed_points, views, weight, where
from hotloop.judge.evidence import Look, Observation, lever_at, rows_over


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing that can be wrong with a loop."""

    name: str
    symptom: str
    needs: str  # The evidence, in words
    look: Look
    remedy: str
    check: str = ""  # The command that shows what the change came to; empty for the usual one
    get: str = ""  # What to run if the evidence is not there
    concerns: Callable[[Case], bool] = lambda _: True  # Whether it could matter here at all
    # Whether the evidence is in the record.
    has: Callable[[Case], bool] = lambda case: bool(case.rows or case.functions)
    is_fault: bool = False  # Whether it comes first: no other figure holds as long as it is there
    is_of_run: bool = False  # Whether only the whole run shows it, and none of its phases
    is_of_stage: bool = False  # Whether only one phase at a time shows it
    is_note: bool = False  # Whether it is about Hotloop and no advice about the user's code


PROFILE, AGAIN, LONGER = "hotloop profile {target}", "{again}", "{again}, for longer"
MEMORY, THREADS, TORCH, CALLS = (
    f"hotloop profile --probe {name} {{target}}" for name in ("memory", "threads", "torch", "cprofile")
)
QUERY_CODE = pattern(
    r"\.execute\((?!.*\b(insert|update|delete|create)\b)", r"\.fetch(one|many|all)\(", "read_sql"
)
WORKERS = pattern("wait for workers", evidence.SKEW.pattern)


def is_user_env(case: Case) -> bool:
    return case.record.kind == "profile" and case.record.target.impl == "foreign"


def has_rebuilds(case: Case) -> bool:
    return any("rebuild" in name.lower() for name in case.record.path.counters)


# In the order in which they may claim a row: the particular before the general.
RULES: tuple[Rule, ...] = (
    Rule(
        "rival",
        "a slower way of a phase is chosen",
        "both ways measured in turns",
        evidence.rival,
        "take the other way: {keys}",
        concerns=lambda case: bool(case.alternatives) or case.record.target.world is not None,
        has=lambda case: case.alternatives is not None,
        get="hotloop diagnose on the machine of the record, without --quick",
    ),
    Rule(
        "path",
        "a path that did not run",
        "counters kept by the code that did the steps",
        evidence.path_not_taken,
        "find what leaves the fast path: the build, a setting, an action's type",
        has=lambda case: bool(case.record.path.ran),
        check="hotloop doctor",
    ),
    Rule(
        "start",
        "the program had hardly begun",
        "sampled functions, imports among them",
        rows_over(pattern("^importing modules"), 0.3),
        "measure a longer run: most of this one was importing modules",
        concerns=lambda case: bool(case.functions),
    ),
    Rule(
        "growth",
        "memory grows",
        f"memory over {NEEDS}",
        evidence.growth,
        "find out what keeps it: --probe memory names the lines; a buffer stops growing at its size",
        has=lambda case: (
            case.fact("memory", "growth_bytes_low") is not None
            or any(is_long(memory_points(each)) for each in (case.record, *views(case.record)))
        ),
        check=MEMORY,
        get=LONGER,
        is_fault=True,
    ),
    Rule(
        "decay",
        "the speed falls",
        f"the speed over {NEEDS}",
        evidence.decay,
        "find what grows with every step: a list that is searched, a log, an index, a cache",
        concerns=lambda case: case.is_loop and not case.record.work.runs,
        has=lambda case: any(is_long(speed_points(each)[1]) for each in views(case.record) or (case.record,)),
        get=LONGER,
        is_fault=True,
        is_of_stage=True,
    ),
    Rule(
        "teacher-on",
        "the teacher is not off in PPO",
        "rows of the teacher, and for how many steps it was asked (supervised_steps, fade_steps)",
        evidence.teacher_left_on,
        "call the teacher only while its labels are learnt from",
        concerns=lambda case: case.is_loop and bool(case.named(evidence.TEACHER)),
        has=lambda case: evidence.imitation_steps(case) is not None,
        is_of_run=True,
        get="give hotloop.run params=dict(supervised_steps=..., fade_steps=...), and count the steps",
    ),
    Rule(
        "teacher",
        "teacher calls",
        "a row of the teacher's calls",
        rows_over(evidence.TEACHER, 0.1),
        "label all envs in one call, label only some of the steps, or store the labels and reuse them",
        concerns=lambda case: case.is_loop,
    ),
    Rule(
        "eval",
        "evaluated too often",
        "a row of the evaluation",
        evidence.evaluation,
        "evaluate a tenth as often, or in another process beside the training",
        concerns=lambda case: case.is_loop,
    ),
    Rule(
        "logging",
        "logging in the loop",
        "a row, or sampled functions, that write logs",
        evidence.logging,
        "log a tenth as often, and then the means over the steps in between",
    ),
    Rule(
        "commits",
        "commits in the loop",
        "the line that takes most of the time, by samples",
        lever_at(pattern(r"\.commit\(")),
        "commit once for many steps: each commit waits for the disk",
    ),
    Rule(
        "query",
        "a database query in the loop",
        "the line that takes most of the time, by samples",
        lever_at(QUERY_CODE),
        "add an index if EXPLAIN QUERY PLAN says SCAN, or ask once for many steps",
    ),
    Rule(
        "inserts",
        "single inserts",
        "rows with calls, and env-steps; or SQL by --probe cprofile",
        evidence.inserts,
        "store a whole step, or a whole rollout, in one call: arrays, executemany",
    ),
    Rule(
        "index",
        "an index rebuilt for nothing",
        "counters of rebuilds, and of queries or changes",
        evidence.rebuilt,
        "rebuild it only when something has moved and somebody asks, or only the part that moved",
        concerns=lambda case: bool(case.named(evidence.INDEX)) or has_rebuilds(case),
        has=has_rebuilds,
        get="have the env tell counters() with rebuilds and queries, and: " + PROFILE,
    ),
    Rule(
        "skew",
        "thread or worker skew",
        "the waiting for workers by the first and the last, or CPU time by thread",
        evidence.skew,
        "give the workers even work: mix long and short episodes, or more envs a worker",
        concerns=lambda case: case.record.method.threads > 1 or bool(case.named(WORKERS)),
        has=lambda case: case.has_probed("threads") or bool(case.named(evidence.SKEW)),
        get=THREADS,
    ),
    Rule(
        "barriers",
        "threads wait for each other",
        "rows that wait, or a step on several threads with its phases",
        evidence.sync_barriers,
        "fewer and longer parallel stretches, or fewer threads",
        check='hotloop compare "{target}" "{target} threads=1"',
    ),
    Rule(
        "copies",
        "copies between device and host",
        "rows that copy, or torch's own operators",
        evidence.copies,
        "keep it on the device, copy a rollout at once from pinned memory, drop .item() and .cpu()",
        concerns=lambda case: case.on_gpu or bool(case.named(evidence.COPIES)),
        has=lambda case: bool(case.named(evidence.ON_GPU)) or case.has_probed("torch"),
        get=TORCH,
    ),
    Rule(
        "store",
        "storing experience",
        "a row of what is stored",
        rows_over(pattern(r"\bstore", "buffer", "replay"), 0.1),
        "write into arrays that are allocated once, in the type that is learnt from",
    ),
    Rule(
        "small-batch",
        "forward calls with a small batch",
        "a row of the forward calls, and the steps they were for",
        evidence.small_batch,
        "step more envs between two calls",
        has=lambda case: bool(case.record.work.agent_steps) or not case.named(evidence.STUDENT),
        concerns=lambda case: bool(case.named(evidence.STUDENT)),
        get="count the steps of the loop: run.count(steps=...)",
    ),
    Rule(
        "python",
        "Python for each env",
        "calls of the env's step, and how many envs there are",
        evidence.python_per_env,
        "step all envs in one call: a vector env that computes on arrays, or native code",
    ),
    Rule(
        "calls",
        "a Python function called over and over in a step",
        "how often each function is called",
        evidence.called_often(evidence.IN_FILE, evidence.FOR_EACH, 0.2),
        "do it for all of them in one call: NumPy on whole arrays, numba, or native code",
        # Most of a step is in one function, whose calls were not counted.
        concerns=lambda case: (
            case.has_probed("cprofile")
            or (
                is_user_env(case)
                and any(row.is_leaf and row.part.share >= evidence.OPAQUE for row in case.functions)
            )
        ),
        has=lambda case: case.has_probed("cprofile"),
        get=CALLS,
    ),
    Rule(
        "resets",
        "resets dominate",
        "a row of the resets",
        rows_over(pattern("reset"), 0.15),
        "make a reset cheaper, keep prepared states to start from, or let episodes last longer",
    ),
    Rule(
        "garbage",
        "garbage collection",
        "the collector's pauses",
        evidence.garbage,
        "call gc.freeze() after start-up, make fewer objects that refer to each other, "
        "or collect between updates",
        has=lambda case: evidence.pauses_of(case)[0] is not None,
        concerns=lambda case: not case.record.work.runs,
        get=AGAIN,
    ),
    Rule(
        "allocation",
        "allocation in every step",
        "allocations by step",
        evidence.allocations,
        "allocate once and write into it: out=, in-place operators, buffers made before the loop",
        has=lambda case: case.fact("memory", "allocations_per_env_step") is not None,
        concerns=is_user_env,
        check=MEMORY,
        get=MEMORY,
    ),
    Rule(
        "precision",
        "mixed precision is off on a GPU",
        "the device, and whether mixed precision is on",
        evidence.half_precision,
        "multiply in bfloat16: train.mixed_precision=true, or torch.autocast",
        concerns=lambda case: case.on_gpu and case.is_loop,
        has=lambda case: case.setting("mixed_precision", "amp", "bf16") is not None,
        get="give hotloop.run variant=dict(mixed_precision=False)",
    ),
    Rule(
        "idle-core",
        "a core is idle",
        "CPU time, and time without a core, of the whole run; how many threads or workers it may use",
        evidence.idle_core,
        "step on more threads, let torch use more threads, or do two things at once",
        concerns=lambda case: case.is_loop and not case.record.work.runs and (case.cores or 1) > 1,
        # The settings say how many threads or workers there may be.
        has=lambda case: (
            case.busy is not None
            and any(case.setting(name) is not None for name in (*evidence.CREW, evidence.TORCH_THREADS))
        ),
        get="give hotloop.run variant=dict(threads=...), num_workers or torch_threads",
    ),
    Rule(
        "crowd",
        "more threads than cores",
        "CPU time, and time without a core, of the whole run",
        evidence.oversubscribed_cores,
        "use no more threads in all than there are cores: OMP_NUM_THREADS, torch.set_num_threads, "
        "threads=, workers",
        has=lambda case: case.busy is not None or case.record.method.threads > (case.cores or inf),
        get=AGAIN,
    ),
    Rule(
        "waiting",
        "a row waits instead of working",
        "rows that wait, or the CPU time of spans or sampled functions",
        evidence.waits,
        "give it something to do meanwhile, or make what it waits for faster: --causal says which",
    ),
    Rule(
        "unaccounted",
        "time in no row",
        "a tree that adds up",
        evidence.unaccounted,
        "put spans around what has none, or name functions with --time",
        has=lambda case: case.record.unaccounted_ns is not None,
        concerns=lambda case: bool(case.rows),
    ),
    Rule(
        "instrument",
        "the instrument is too heavy",
        "what the instrument cost",
        evidence.heavy,
        "fewer and longer spans, marks in hot loops, fewer functions after --time; "
        "or look from outside with --probe pyspy",
        is_note=True,
        has=lambda case: case.record.overhead is not None,
        concerns=lambda case: bool(case.rows),
    ),
)

WORTH = 1.02  # Times as fast, below which a change is not worth a word
Seen = tuple[Rule, Observation]


def find_observations(case: Case) -> Iterator[Seen]:
    """Return what every rule sees; of a run in phases, in the phase where it matters most."""
    stages = views(case.record)
    if not stages:
        yield from look(case, set(), RULES)
        return
    claimed = set[str]()
    yield from look(case, claimed, [rule for rule in RULES if rule.is_of_run])
    found = staged(case, stages, claimed)
    yield from found
    known = {rule.name for rule, _ in found}
    rest = [rule for rule in RULES if not (rule.is_of_stage or rule.is_of_run or rule.name in known)]
    yield from (seen for seen in look(case, set(), rest) if seen[1].row is None)


def staged(case: Case, stages: Sequence[Record], claimed: set[str]) -> list[Seen]:
    """Return what rules see in each phase, with gains of the whole run, and each advice once."""
    best: dict[tuple[str, str | None], Seen] = {}
    for stage in stages:
        of_run = weight(case.record, stage)
        there = f"{where(case.record, stage)} ({of_run:.0%} of the run)"
        for rule, sight in look(Case(stage, case.alternatives), set(claimed), RULES):
            part = sight.part.scaled(of_run) if sight.part else None
            seen = replace(sight, part=part, said=f"{there}: {sight.said}")
            bought = WORTH if seen.gain is None else seen.gain
            key = rule.name, sight.row.path if sight.row else None
            if bought >= WORTH and (key not in best or bought > (best[key][1].gain or 0.0)):
                best[key] = rule, seen
    return list(best.values())


def look(case: Case, claimed: set[str], rules: Iterable[Rule]) -> Iterator[Seen]:
    """Return what rules see; a row is claimed by the first that sees it."""
    for rule in rules:
        for sight in rule.look(case) if is_looked_at(rule, case) else ():
            path, bought = sight.row.path if sight.row else None, sight.gain
            # A row, one above it or one below it has its advice already: time is saved once.
            is_claimed = path is not None and any(
                f"{path}/".startswith(f"{each}/") or each.startswith(f"{path}/") for each in claimed
            )
            if not is_claimed and (bought is None or bought >= WORTH):
                claimed.update([path] if path else [])
                yield rule, sight


def is_looked_at(rule: Rule, case: Case) -> bool:
    """Return whether a rule gives advice here: it matters, and its evidence is there."""
    return not rule.is_note and rule.concerns(case) and rule.has(case)
