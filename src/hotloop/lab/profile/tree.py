"""Rows that add up: the tree of a watched loop, and the phases of a native step."""

from collections.abc import Iterable, Mapping, Sequence

from hotloop.core.record.profile import WALL, Spread
from hotloop.core.time_tree import TimeTree, join
from hotloop.envs.foreign.inside import ENV_STEP
from hotloop.envs.subject import Subject

LOOP = "loop"  # The span around one turn

# What the loop does beside the env and the policy: Python, and the counting of work.
OTHER = "everything else"

ELSE = f"{WALL}/{OTHER}"

PhaseTimes = Mapping[str, int]  # Phase to ns, with `step` for the whole of it, as a batch reports them


def native_place(paths: Iterable[str], whole: str) -> str:
    """Where what an env times itself stands among the paths of a loop: below its step inside its wrappers.

    `whole` is the name of a row of its own, if it has one.
    """
    known, parent = list(paths), f"{WALL}/{ENV_STEP}"
    while inner := [path for path in known if is_step_of(parent, path)]:
        parent = inner[0]
    return f"{parent}/{whole}" if whole else parent


def is_step_of(parent: str, path: str) -> bool:
    """Whether a path is the step of what one wrapper has inside; that of a vector env has several inside."""
    above, _, name = path.rpartition("/")
    return above == parent and name.endswith(".step") and name != "envs.step"


def loop_times(
    subject: Subject, tops: Iterable[TimeTree], wall_ns: int, calls: int, native_before: Mapping[str, int]
) -> TimeTree:
    """Return the rows of one turn of a loop: its spans, and below its step what an env times itself.

    `native_before` is what native phases had taken before the turn. Other threads are not in it.
    """
    loops = [top for top in tops if top.path == LOOP]
    rows = [
        row.renamed(lambda path: path.removeprefix(f"{LOOP}/")) for loop in loops for row in loop.children
    ]
    rest = TimeTree(path=OTHER, calls=calls, total_ns=sum(loop.self_ns for loop in loops))
    tree = TimeTree(calls=calls, total_ns=wall_ns, children=(*rows, rest))
    gained = {name: ns - native_before.get(name, 0) for name, ns in subject.phase_totals().items()}
    log = subject.step_log()
    if not gained or log is None:
        return tree
    step = native_place((f"{WALL}/{row.path}" for row in tree.rows), "").removeprefix(f"{WALL}/")
    place, threads = join(step, log.whole) if log.whole else step, subject.spec.threads
    whole_ns = gained.pop("step") if log.whole else 0
    parts = tuple(
        TimeTree(path=f"{place}/{name}", calls=calls, total_ns=ns // threads) for name, ns in gained.items()
    )
    if log.whole:
        parts = (TimeTree(path=place, calls=calls, total_ns=whole_ns, children=parts),)
    return tree.with_parts(step, parts)


def step_times(
    times: PhaseTimes, *, wall_ns: int, env_steps: int, threads: int, beside: Sequence[str] = ()
) -> TimeTree:
    """Return the rows of a batch's own steps: its phases, what is beside its engine, and Python.

    Threads work on a step side by side, so a phase's time is its mean over them. Of `times`, those named by
    `beside` are what a step does beside its engine, in the thread that steps: a log.
    """

    def row(path: str, ns: int, children: tuple[TimeTree, ...] = ()) -> TimeTree:
        return TimeTree(path=path, calls=env_steps, total_ns=ns, children=children)

    inside = {name: ns for name, ns in times.items() if name not in ("step", *beside)}
    phases = tuple(row(f"step/{name}", ns // threads) for name, ns in inside.items())
    step = row("step", times["step"], phases)
    others = tuple(row(name, times[name]) for name in beside)
    python = row("python", wall_ns - step.total_ns - sum(other.total_ns for other in others))
    return row("", wall_ns, (python, *others, step))


def of_env_step(spread: Spread, num_envs: int) -> Spread:
    """Return how calls of a batch varied, as times of one of its env-steps."""
    p50, p95, p99, largest = (None if ns is None else ns / num_envs for ns in spread.points)
    return Spread(path=spread.path, calls=spread.calls, p50_ns=p50, p95_ns=p95, p99_ns=p99, max_ns=largest)
