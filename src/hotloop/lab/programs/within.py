"""What a profiled program finds out about itself, by the module that is put before its path."""

import json
import linecache
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hotloop.core import spans
from hotloop.core.record import stacks
from hotloop.core.record.profile import Finding, Phase, Table, describe_times
from hotloop.core.record.stacks import Stack, place
from hotloop.core.registry import Obstacle
from hotloop.core.time_tree import TimeTree, grow, merge
from hotloop.probes import cprofile, memory, samples
from hotloop.probes.samples import Seen

FOLDER = Path(__file__).parents[1] / "workers" / "within"

ELSE = "everything else"

IMPORTING = ("importing modules", "", 0)

IMPORTLIB = "<frozen importlib"

# Functions whose lines are shown, and sites that memory grows at, where nobody names any
MOST_FUNCTIONS, MOST_SITES = 5, 3

NO_PYTHON = Obstacle(
    why="no Python process of the program told of itself",
    remedy="profile a Python program, started without -I, -E or -S, that ends by itself",
)

LINE_COLUMNS = ("line", "total_ns", "share", "code")


def environment(room: Path, *look: str) -> dict[str, str]:
    """What a program needs to have in its environment to look at itself."""
    before = os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": os.pathsep.join([str(FOLDER), *([before] if before else [])]),
        "HOTLOOP_WITHIN": str(room),
        "HOTLOOP_LOOK": ",".join(look),
        spans.FILE: str(room),
    }


def read_stacks(room: Path) -> Seen:
    """Time by stack, of all Python processes together."""
    seen = Seen()
    for told in read_all(room, "samples.json"):
        seen.samples += told["samples"]
        for frames, ns, cpu_ns in told["stacks"]:
            stack = without_imports(tuple((name, file, line) for name, file, line in frames))
            seen.ns[stack] += ns
            seen.cpu_ns[stack] += cpu_ns
    return seen


def without_imports(stack: Stack) -> Stack:
    """A stack up to where modules are imported, which is one thing, whatever they do then."""
    depth = next((at for at, (_, file, _) in enumerate(stack) if file.startswith(IMPORTLIB)), None)
    return stack if depth is None else (*stack[:depth], IMPORTING)


def read_all(room: Path, suffix: str) -> Iterator[Any]:
    for path in sorted(room.glob(f"*.{suffix}")):
        yield json.loads(path.read_text("utf-8"))


def hot(inside: Seen, folder: Path, outside: Seen | Obstacle) -> Finding:
    """Return the functions by samples from outside, or from inside and why; CPU time is from inside."""
    seen = inside if isinstance(outside, Obstacle) else outside
    stacks.write(folder / samples.FILE, "samples", {stack: ns / 1e9 for stack, ns in seen.ns.items()})
    worked = samples.worked_shares(inside.ns, inside.cpu_ns)
    tables = samples.tables_of(seen.ns, sum(seen.ns.values()), worked, seen.samples)
    found = Finding(
        probe="samples",
        facts={"samples": seen.samples, **samples.hottest_line(seen.ns)},
        tables=tables,
        files=(samples.FILE,),
    )
    return samples.told_inside(found, outside) if isinstance(outside, Obstacle) else found


def lines(found: Mapping[Stack, int]) -> Finding:
    """The lines of the hottest functions, by the time that was spent in them and below."""
    own: Counter[tuple[str, str]] = Counter()
    below: dict[tuple[str, str], Counter[int]] = {}
    for stack, ns in found.items():
        own[stack[-1][:2]] += ns
        for name, file, line in {frame[:2]: frame for frame in stack}.values():
            below.setdefault((name, file), Counter())[line] += ns
    hottest = [each for each, _ in own.most_common() if each[1]][:MOST_FUNCTIONS]
    tables = tuple(line_table(*each, below[each]) for each in hottest)
    return Finding(probe="line", facts={"by": "samples"}, tables=tables)


def line_table(name: str, file: str, ns: Counter[int]) -> Table:
    whole = sum(ns.values())
    rows = tuple(
        (line, ns[line], ns[line] / whole, linecache.getline(file, line).rstrip()) for line in sorted(ns)
    )
    return Table(title=f"Lines of {place((name, file, min(ns)))}", columns=LINE_COLUMNS, rows=rows)


def functions(room: Path, folder: Path) -> Finding | Obstacle:
    """What cProfile saw, of all Python processes together."""
    files = sorted(room.glob("*.pstats"))
    if not files:
        return why(room, "cprofile")
    return cprofile.of_files(files, folder)


def held(room: Path, folder: Path) -> Finding | Obstacle:
    """What memray saw of the process that allocated the most."""
    files = sorted(room.glob("*.memory.bin"), key=lambda path: path.stat().st_size)
    if not files:
        return why(room, "memory")
    kept = folder / memory.FILE
    kept.write_bytes(files[-1].read_bytes())
    return memory.of_program(kept, MOST_SITES)


def why(room: Path, name: str) -> Obstacle:
    """Why nothing was found, in the words of the first process that could not look."""
    said = [path.read_text() for path in sorted(room.glob(f"*.{name}.error"))]
    if not said:
        return NO_PYTHON
    return Obstacle(
        why=said[0], remedy="install it in the Python that runs the program, or leave the probe out"
    )


def phases(room: Path, wall_ns: int) -> tuple[Phase, ...]:
    """The spans of the program as rows of its wall time, with what is in none; empty where it uses none."""
    read = [
        TimeTree(path=path, calls=calls, total_ns=ns, cpu_ns=cpu_ns)
        for rows in read_all(room, "spans.json")
        for path, calls, ns, cpu_ns in rows
    ]
    if not read:
        return ()
    tops = grow(merge(read))
    rest_ns = max(0, wall_ns - sum(top.total_ns for top in tops))
    rest = TimeTree(path=ELSE, calls=1, total_ns=rest_ns)
    return describe_times(TimeTree(calls=1, total_ns=wall_ns, children=(*tops, rest)))
