"""Rules: each one of a diagnosis as data, with the evidence it needs and what to do.

Where a rule's evidence is not in a record, `has` says so, and `get` is what to run to have it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from hotloop.judge import calls, evidence, names
from hotloop.judge.case import Case
from hotloop.judge.course import NEEDS, is_long, memory_points, speed_points
from hotloop.judge.evidence import Sight, rows_over
from hotloop.judge.names import pattern
from hotloop.judge.stages import views


def always(_: Case) -> bool:
    return True


def is_foreign_env(case: Case) -> bool:
    return case.record.kind == "profile" and case.record.target.impl == "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One thing that can be wrong with a loop."""

    name: str
    symptom: str
    needs: str  # The evidence, in words
    look: Callable[[Case], Iterator[Sight]]
    remedy: str
    check: str = ""  # The command that shows what it came to; the usual one where it is empty
    get: str = ""  # What to run where the evidence is not there
    concerns: Callable[[Case], bool] = always  # Whether it could matter here at all
    # Whether the evidence is in the record.
    has: Callable[[Case], bool] = lambda case: bool(case.rows or case.functions)
    is_fault: bool = False  # Whether it comes before all others: no other figure holds as long as it is there
    is_of_run: bool = False  # Whether only the whole run shows it, and none of its phases
    is_of_stage: bool = False  # Whether only one phase at a time shows it
    is_note: bool = False  # Whether it is about Hotloop and no advice about the user's code


PROFILE = "hotloop profile {target}"

MEMORY, THREADS, TORCH, CALLS = (
    f"hotloop profile --probe {name} {{target}}" for name in ("memory", "threads", "torch", "cprofile")
)

WORKERS = pattern("wait for workers", names.SKEW.pattern)

LONGER = "{again}, for longer"

AGAIN = "{again}"  # The same once more: the records of this version have it

# In the order in which they may claim a row: the particular before the general.
RULES: tuple[Rule, ...] = (
    Rule(
        name="rival",
        symptom="a slower way of a phase is chosen",
        needs="both ways measured in turns",
        look=evidence.rival,
        concerns=lambda case: bool(case.alternatives) or case.record.target.world is not None,
        has=lambda case: case.alternatives is not None,
        remedy="take the other way: {keys}",
        get="hotloop diagnose on the machine of the record, without --quick",
    ),
    Rule(
        name="path",
        symptom="a path that did not run",
        needs="counters kept by the code that did the steps",
        look=evidence.path_not_taken,
        has=lambda case: bool(case.record.path.ran),
        remedy="find what leaves the fast path: the build, a setting, an action's type",
        check="hotloop doctor",
    ),
    Rule(
        name="start",
        symptom="the program had hardly begun",
        needs="sampled functions, imports among them",
        look=rows_over(names.IMPORTS, 0.3),
        concerns=lambda case: bool(case.functions),
        remedy="measure a longer run: most of this one was importing modules",
    ),
    Rule(
        name="growth",
        symptom="memory grows",
        needs=f"memory over {NEEDS}",
        look=evidence.growth,
        has=lambda case: (
            case.fact("memory", "growth_bytes_low") is not None
            or any(is_long(memory_points(each)) for each in (case.record, *views(case.record)))
        ),
        remedy="find out what keeps it: --probe memory names the lines; a buffer stops growing at its size",
        check=MEMORY,
        get=LONGER,
        is_fault=True,
    ),
    Rule(
        name="decay",
        symptom="the speed falls",
        needs=f"the speed over {NEEDS}",
        look=evidence.decay,
        concerns=lambda case: case.is_loop and not case.record.work.runs,
        has=lambda case: any(is_long(speed_points(each)[1]) for each in views(case.record) or (case.record,)),
        remedy="find what grows with every step: a list that is searched, a log, an index, a cache",
        get=LONGER,
        is_fault=True,
        is_of_stage=True,
    ),
    Rule(
        name="teacher-on",
        symptom="the teacher is not off in PPO",
        needs="rows of the teacher, and for how many steps it was asked (supervised_steps, fade_steps)",
        look=evidence.teacher_left_on,
        concerns=lambda case: case.is_loop and bool(case.named(names.TEACHER)),
        has=lambda case: evidence.imitation_steps(case) is not None,
        remedy="call the teacher only while its labels are learnt from",
        is_of_run=True,
        get="give hotloop.run params=dict(supervised_steps=..., fade_steps=...), and count the steps",
    ),
    Rule(
        name="teacher",
        symptom="teacher calls",
        needs="a row of the teacher's calls",
        look=rows_over(names.TEACHER, 0.1),
        concerns=lambda case: case.is_loop,
        remedy="label all envs in one call, label only some of the steps, or store the labels and reuse them",
    ),
    Rule(
        name="eval",
        symptom="evaluated too often",
        needs="a row of the evaluation",
        look=evidence.evaluation,
        concerns=lambda case: case.is_loop,
        remedy="evaluate a tenth as often, or in another process beside the training",
    ),
    Rule(
        name="logging",
        symptom="logging in the loop",
        needs="a row, or sampled functions, that write logs",
        look=evidence.logging,
        remedy="log a tenth as often, and then the means over the steps in between",
    ),
    Rule(
        name="commits",
        symptom="commits in the loop",
        needs="the line that takes most of the time, by samples",
        look=evidence.lever_at(names.COMMIT_CODE),
        remedy="commit once for many steps: each commit waits for the disk",
    ),
    Rule(
        name="query",
        symptom="a database query in the loop",
        needs="the line that takes most of the time, by samples",
        look=evidence.lever_at(names.QUERY_CODE),
        remedy="add an index if EXPLAIN QUERY PLAN says SCAN, or ask once for many steps",
    ),
    Rule(
        name="inserts",
        symptom="single inserts",
        needs="rows with calls, and env-steps; or SQL by --probe cprofile",
        look=calls.inserts,
        remedy="store a whole step, or a whole rollout, in one call: arrays, executemany",
    ),
    Rule(
        name="index",
        symptom="an index rebuilt for nothing",
        needs="counters of rebuilds, and of queries or changes",
        look=evidence.rebuilt,
        concerns=lambda case: bool(case.named(names.INDEX)) or has_counter(case, "rebuild"),
        has=lambda case: has_counter(case, "rebuild"),
        remedy="rebuild it only when something has moved and somebody asks, or only the part that moved",
        get="have the env tell counters() with rebuilds and queries, and: " + PROFILE,
    ),
    Rule(
        name="skew",
        symptom="thread or worker skew",
        needs="the waiting for workers by the first and the last, or CPU time by thread",
        look=evidence.skew,
        concerns=lambda case: case.record.method.threads > 1 or bool(case.named(WORKERS)),
        has=lambda case: case.looked("threads") or bool(case.named(names.SKEW)),
        remedy="give the workers even work: mix long and short episodes, or more envs a worker",
        get=THREADS,
    ),
    Rule(
        name="barriers",
        symptom="threads wait for each other",
        needs="rows that wait, or a step on several threads with its phases",
        look=evidence.barriers,
        remedy="fewer and longer parallel stretches, or fewer threads",
        check='hotloop compare "{target}" "{target} threads=1"',
    ),
    Rule(
        name="copies",
        symptom="copies between device and host",
        needs="rows that copy, or torch's own operators",
        look=evidence.copies,
        concerns=lambda case: case.on_gpu or bool(case.named(names.COPIES)),
        has=lambda case: bool(case.named(names.ON_GPU)) or case.looked("torch"),
        remedy="keep it on the device, copy a rollout at once from pinned memory, drop .item() and .cpu()",
        get=TORCH,
    ),
    Rule(
        name="store",
        symptom="storing experience",
        needs="a row of what is stored",
        look=rows_over(names.STORE, 0.1),
        remedy="write into arrays that are allocated once, in the type that is learnt from",
    ),
    Rule(
        name="small-batch",
        symptom="forward calls with a small batch",
        needs="a row of the forward calls, and the steps they were for",
        look=evidence.small_batch,
        has=lambda case: bool(case.record.work.agent_steps) or not case.named(names.STUDENT),
        concerns=lambda case: bool(case.named(names.STUDENT)),
        remedy="step more envs between two calls",
        get="count the steps of the loop: run.count(steps=...)",
    ),
    Rule(
        name="python",
        symptom="Python for each env",
        needs="calls of the env's step, and how many envs there are",
        look=evidence.python_per_env,
        remedy="step all envs in one call: a vector env that computes on arrays, or native code",
    ),
    Rule(
        name="calls",
        symptom="a Python function called over and over in a step",
        needs="how often each function is called",
        look=calls.over_and_over,
        concerns=lambda case: case.looked("cprofile") or (is_foreign_env(case) and calls.is_opaque(case)),
        has=lambda case: case.looked("cprofile"),
        remedy="do it for all of them in one call: NumPy on whole arrays, numba, or native code",
        get=CALLS,
    ),
    Rule(
        name="resets",
        symptom="resets dominate",
        needs="a row of the resets",
        look=rows_over(names.RESETS, 0.15),
        remedy="make a reset cheaper, keep prepared states to start from, or let episodes last longer",
    ),
    Rule(
        name="garbage",
        symptom="garbage collection",
        needs="the collector's pauses",
        look=evidence.garbage,
        has=lambda case: evidence.pauses_of(case)[0] is not None,
        concerns=lambda case: not case.record.work.runs,
        remedy="call gc.freeze() after start-up, make fewer objects that refer to each other, "
        "or collect between updates",
        get=AGAIN,
    ),
    Rule(
        name="allocation",
        symptom="allocation in every step",
        needs="allocations by step",
        look=evidence.allocations,
        has=lambda case: case.fact("memory", "allocations_per_env_step") is not None,
        concerns=is_foreign_env,
        remedy="allocate once and write into it: out=, in-place operators, buffers made before the loop",
        check=MEMORY,
        get=MEMORY,
    ),
    Rule(
        name="precision",
        symptom="mixed precision is off on a GPU",
        needs="the device, and whether mixed precision is on",
        look=evidence.half_precision,
        concerns=lambda case: case.on_gpu and case.is_loop,
        has=lambda case: case.setting("mixed_precision", "amp", "bf16") is not None,
        remedy="multiply in bfloat16: train.mixed_precision=true, or torch.autocast",
        get="give hotloop.run variant=dict(mixed_precision=False)",
    ),
    Rule(
        name="idle-core",
        symptom="a core is idle",
        needs="CPU time, and time without a core, of the whole run; how many threads or workers it may use",
        look=evidence.idle_core,
        concerns=lambda case: case.is_loop and not case.record.work.runs and (case.cores or 1) > 1,
        has=lambda case: case.busy is not None and evidence.says_threads(case),
        remedy="step on more threads, let torch use more threads, or do two things at once",
        get="give hotloop.run variant=dict(threads=...), num_workers or torch_threads",
    ),
    Rule(
        name="crowd",
        symptom="more threads than cores",
        needs="CPU time, and time without a core, of the whole run",
        look=evidence.crowd,
        has=lambda case: case.busy is not None or case.record.method.threads > (case.cores or inf),
        remedy="use no more threads in all than there are cores: OMP_NUM_THREADS, torch.set_num_threads, "
        "threads=, workers",
        get=AGAIN,
    ),
    Rule(
        name="waiting",
        symptom="a row waits instead of working",
        needs="rows that wait, or the CPU time of spans or sampled functions",
        look=evidence.waits,
        remedy="give it something to do meanwhile, or make what it waits for faster: --causal says which",
    ),
    Rule(
        name="unaccounted",
        symptom="time in no row",
        needs="a tree that adds up",
        look=evidence.unaccounted,
        has=lambda case: case.record.unaccounted_ns is not None,
        concerns=lambda case: bool(case.rows),
        remedy="put spans around what has none, or name functions with --time",
    ),
    Rule(
        name="instrument",
        is_note=True,
        symptom="the instrument is too heavy",
        needs="what the instrument cost",
        look=evidence.heavy,
        has=lambda case: case.record.overhead is not None,
        concerns=lambda case: bool(case.rows),
        remedy="fewer and longer spans, marks in hot loops, fewer functions after --time; "
        "or look from outside with --probe pyspy",
    ),
)


def has_counter(case: Case, word: str) -> bool:
    return any(word in name.lower() for name in case.record.path.counters)
