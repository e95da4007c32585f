"""Threads: CPU time of every thread of the process, and what the Python ones did with theirs."""

import threading
from pathlib import Path
from typing import Any

from hotloop.core.clock import now_ns
from hotloop.core.record.profile import Finding, Table
from hotloop.core.registry import Probe, Scene, package_missing

MOST_FUNCTIONS = 8  # Of each thread

TASKS = Path("/proc/self/task")

BUSY_SHARE = 0.05  # Of the wall time, from which on a thread is called busy

FUNCTION_COLUMNS = ("thread", "function", "calls", "own_ns", "total_ns")


def look(scene: Scene) -> Finding:
    """Play twice: once looked at by the kernel only, which costs nothing, and once under yappi."""
    play = scene.draw(scene.calls)
    before, begin = cpu_ns(), now_ns()
    play()
    wall_ns, after = now_ns() - begin, cpu_ns()
    names = thread_names()
    used = {thread: ns - before.get(thread, 0) for thread, ns in after.items()}
    rows = tuple(
        (names.get(thread, f"thread {thread}"), ns, ns / wall_ns)
        for thread, ns in sorted(used.items(), key=lambda item: -item[1])
    )
    table = Table(title="CPU time by thread", columns=("thread", "cpu_ns", "cpu_share"), rows=rows)
    functions = Table(title="Functions by Python thread", columns=FUNCTION_COLUMNS, rows=by_function(scene))
    return Finding(
        probe="threads",
        facts={
            "threads": len(rows),
            "busy_threads": sum(share > BUSY_SHARE for _, _, share in rows),
            "env_steps": scene.calls * scene.env_steps,
            "wall_ns": wall_ns,
        },
        tables=(table, functions),
    )


def cpu_ns() -> dict[int, int]:
    """CPU time of each thread of this process, as of its last tick or rest.

    Where the kernel keeps an account in nanoseconds, it is that one: a worker that rests between two short
    calls is often never met by a tick.
    """
    if not Path("/proc/self/schedstat").exists():
        import psutil

        threads = psutil.Process().threads()
        return {each.id: round((each.user_time + each.system_time) * 1e9) for each in threads}
    told = {int(task.name): read(task / "schedstat") for task in TASKS.iterdir()}
    return {thread: int(words.split()[0]) for thread, words in told.items() if words}


def thread_names() -> dict[int, str]:
    """Python's name of a thread; for one that Python does not know, the kernel's."""
    known = {each.native_id: each.name for each in threading.enumerate() if each.native_id}
    tasks = TASKS.iterdir() if TASKS.exists() else ()
    native = {int(task.name): f"native {read(task / 'comm')}" for task in tasks}
    return native | known


def read(path: Path) -> str:
    """What the kernel says; nothing of a thread that has just ended."""
    try:
        return path.read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def by_function(scene: Scene) -> tuple[tuple[Any, ...], ...]:
    """What each Python thread spent its own CPU time on, under yappi."""
    import yappi

    play = scene.draw(scene.calls)
    yappi.clear_stats()
    yappi.set_clock_type("cpu")
    yappi.start()
    try:
        play()
    finally:
        yappi.stop()
    try:
        found = [row for thread in yappi.get_thread_stats() for row in functions_of(yappi, thread)]
    finally:
        yappi.clear_stats()
    return tuple(found)


def functions_of(yappi: Any, thread: Any) -> list[tuple[Any, ...]]:
    """The functions of one thread with most time of their own."""
    own = yappi.get_func_stats(filter={"ctx_id": thread.id})  # its ctx_id=0 would mean any thread
    stats = sorted(own, key=lambda each: -each.tsub)
    return [
        (
            f"{thread.name.lstrip('_')} {thread.id}",
            f"{each.name} ({'/'.join(Path(each.module).parts[-2:])}:{each.lineno})",
            each.ncall,
            round(each.tsub * 1e9),
            round(each.ttot * 1e9),
        )
        for each in stats[:MOST_FUNCTIONS]
    ]


probe = Probe(
    name="threads",
    purpose="CPU time by thread, native ones too, and the functions of Python's",
    why_not=lambda: package_missing("yappi"),
    look=look,
)
