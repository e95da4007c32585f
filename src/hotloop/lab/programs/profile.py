"""Profile of a program: once clean, once watched, and once more for each probe that looks by itself."""

import json
import linecache
import os
import pstats
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hotloop.core import spans
from hotloop.core.errors import unknown
from hotloop.core.progress import Progress, silent
from hotloop.core.record import RUNS_PER_S, Record, stacks
from hotloop.core.record.profile import Finding, Phase, Table, describe_times
from hotloop.core.record.stacks import Stack, place
from hotloop.core.registry import Obstacle, ProbeError
from hotloop.core.time_tree import TimeTree, grow, merge
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.profile.probes import Picture, no_picture, with_result
from hotloop.lab.programs.launch import Launcher, Program, ProgramRun
from hotloop.lab.programs.measure import ProgramRecorder
from hotloop.probes import cprofile, memory, pyspy
from hotloop.probes import samples as sampling
from hotloop.probes.pyspy import OURS, OUTSIDE_RATE, OutsideSampler
from hotloop.probes.resources import EVERY_S, ResourceSample, describe, reader
from hotloop.probes.samples import FEWEST, OUTSIDE, SampleCounts
from hotloop.probes.threads import BUSY_SHARE

FOLDER = Path(__file__).parents[1] / "workers" / "within"

ELSE = "everything else"

IMPORTING = ("importing modules", "", 0)

IMPORTLIB = "<frozen importlib"

# Functions whose lines are shown, and sites that memory grows at, by default
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


def read_stacks(room: Path) -> SampleCounts:
    """Time by stack, of all Python processes together."""
    seen = SampleCounts()
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


def samples_finding(inside: SampleCounts, folder: Path, outside: SampleCounts | Obstacle) -> Finding:
    """Return the functions by samples from outside, or from inside and why; CPU time is from inside."""
    seen = inside if isinstance(outside, Obstacle) else outside
    stacks.write(folder / sampling.FILE, "samples", {stack: ns / 1e9 for stack, ns in seen.ns.items()})
    worked = sampling.worked_shares(inside.ns, inside.cpu_ns)
    tables = sampling.tables_of(seen.ns, sum(seen.ns.values()), worked, seen.samples)
    found = Finding(
        probe="samples",
        facts={"samples": seen.samples, **sampling.hottest_line(seen.ns)},
        tables=tables,
        files=(sampling.FILE,),
    )
    return sampling.told_inside(found, outside) if isinstance(outside, Obstacle) else found


def lines_finding(found: Mapping[Stack, int]) -> Finding:
    """The lines of the hottest functions, by the time that was spent in them and below."""
    own: Counter[tuple[str, str]] = Counter()
    below: dict[tuple[str, str], Counter[int]] = {}
    for stack, ns in found.items():
        own[stack[-1][:2]] += ns
        for name, file, line in {frame[:2]: frame for frame in stack}.values():
            below.setdefault((name, file), Counter())[line] += ns
    hottest = [each for each, _ in own.most_common() if each[1]][:MOST_FUNCTIONS]
    tables = []
    for name, file in hottest:
        by_line = below[name, file]
        whole = sum(by_line.values())
        rows = tuple(
            (line, by_line[line], by_line[line] / whole, linecache.getline(file, line).rstrip())
            for line in sorted(by_line)
        )
        title = f"Lines of {place((name, file, min(by_line)))}"
        tables.append(Table(title=title, columns=LINE_COLUMNS, rows=rows))
    return Finding(probe="line", facts={"by": "samples"}, tables=tuple(tables))


def cprofile_finding(room: Path, folder: Path) -> Finding | Obstacle:
    """What cProfile saw, of all Python processes together."""
    files = sorted(room.glob("*.pstats"))
    if not files:
        return obstacle_of(room, "cprofile")
    return cprofile.describe(pstats.Stats(*map(str, files)), folder, {"processes": len(files)})


def memory_finding(room: Path, folder: Path) -> Finding | Obstacle:
    """What memray saw of the process that allocated the most."""
    files = sorted(room.glob("*.memory.bin"), key=lambda path: path.stat().st_size)
    if not files:
        return obstacle_of(room, "memory")
    kept = folder / memory.FILE
    kept.write_bytes(files[-1].read_bytes())
    return memory.of_program(kept, MOST_SITES)


def obstacle_of(room: Path, name: str) -> Obstacle:
    """Why nothing was found, in the words of the first process that could not look."""
    said = [path.read_text() for path in sorted(room.glob(f"*.{name}.error"))]
    if not said:
        return NO_PYTHON
    return Obstacle(
        why=said[0], remedy="install it in the Python that runs the program, or leave the probe out"
    )


def phases_of_spans(room: Path, wall_ns: int) -> tuple[Phase, ...]:
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


FIND_EVERY_S = 0.02  # Between two looks for the first Python process
COVERED = 0.8  # Share of the program's time that py-spy must have looked; it takes a moment to begin

TOO_SHORT = Obstacle(
    why="py-spy saw too little of the program", remedy="profile a run of at least several seconds"
)


class Spy:
    """Waits in a thread until a Python process of the program is ready, and has py-spy sample it."""

    def __init__(self, room: Path) -> None:
        self._room = room
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hotloop-spy", daemon=True)
        self._counts: Counter[Stack] = Counter()
        self._covered = 0.0
        self._obstacle: Obstacle | None = None

    def begin(self) -> None:
        """Start waiting for the program's Python."""
        self._thread.start()

    def end(self) -> None:
        """Stop py-spy if it still samples, and wait for what it writes."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def seen(self) -> SampleCounts | Obstacle:
        """Return the samples from outside, or why those from inside must do."""
        if self._obstacle is not None:
            return self._obstacle
        ns: Counter[Stack] = Counter()
        # As the program ends, Hotloop's code in it writes what it saw: that is not the program's time.
        counts = {each: count for each, count in self._counts.items() if not each[0][1].startswith(OURS)}
        for stack, count in counts.items():
            ns[without_imports(stack)] += round(count * 1e9 / OUTSIDE_RATE)
        samples = sum(counts.values())
        if samples < FEWEST or self._covered < COVERED:
            return TOO_SHORT
        return SampleCounts(ns=ns, samples=samples)

    def _run(self) -> None:
        while not (ready := sorted(self._room.glob("*.ready"), key=lambda path: path.stat().st_mtime_ns)):
            if self._over.wait(FIND_EVERY_S):
                self._obstacle = TOO_SHORT
                return
        try:
            with OutsideSampler(self._room / OUTSIDE, int(ready[0].stem), subprocesses=True) as sampler:
                begun_ns = time.time_ns()
                self._over.wait()
                ended_ns = time.time_ns()
            self._covered = (ended_ns - begun_ns) / max(1, ended_ns - ready[0].stat().st_mtime_ns)
            self._counts = sampler.counts
        except ProbeError as error:
            self._obstacle = error.obstacle


THREADS_EVERY = 4  # Samples of the whole between two of the threads

COLUMNS = ("thread", "cpu_ns", "cpu_share")


class ProcessSampler:
    """Takes samples of a program from its beginning until it is told to end, or the program has gone."""

    def __init__(self) -> None:
        self.samples: list[ResourceSample] = []
        # Process and thread to its name and the CPU ns it had used when it was last seen
        self.threads: dict[tuple[int, int], tuple[str, int]] = {}
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, pid: int) -> None:
        """Called with the program's pid as it starts."""
        import psutil

        with suppress(psutil.NoSuchProcess):
            read = reader(pid)
            self._thread = threading.Thread(
                target=self._run, args=(pid, read), name="hotloop-watch", daemon=True
            )
            self._thread.start()

    def end(self) -> None:
        self._over.set()
        if self._thread:
            self._thread.join()

    def _run(self, pid: int, read: Callable[[], ResourceSample]) -> None:
        import psutil

        number = 0
        with suppress(psutil.NoSuchProcess, ValueError):  # it has gone, or all of it has
            while True:
                self.samples.append(read())
                if number % THREADS_EVERY == 0:
                    self._look_at_threads(psutil.Process(pid))
                number += 1
                if self._over.wait(EVERY_S):
                    return

    def _look_at_threads(self, root: Any) -> None:
        import psutil

        for process in (root, *root.children(recursive=True)):
            with suppress(psutil.Error):
                for each in process.threads():
                    ns = round((each.user_time + each.system_time) * 1e9)
                    self.threads[process.pid, each.id] = (name_thread(process.pid, each.id), ns)

    def by_thread(self, wall_ns: int) -> Finding:
        """CPU time of each thread, as it was last seen."""
        used = sorted(self.threads.values(), key=lambda item: -item[1])
        rows = tuple((name, ns, ns / wall_ns) for name, ns in used)
        busy = sum(share > BUSY_SHARE for _, _, share in rows)
        table = Table(title="CPU time by thread", columns=COLUMNS, rows=rows)
        return Finding(probe="threads", facts={"threads": len(rows), "busy_threads": busy}, tables=(table,))


def name_thread(pid: int, thread: int) -> str:
    """Return the kernel's name of a thread, which is the program's own for the first one."""
    try:
        name = Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip()
    except OSError:
        name = "thread"
    return f"{name} {thread}"


ALWAYS = ("samples", "resources")  # What looks in the watched pass whether or not it is asked for

# Probes of programs; the first four look in the watched pass, each other in one of its own
KNOWN = (*ALWAYS, "line", "threads", "cprofile", "memory", "pyspy")

EVERY = "all"


@dataclass(slots=True, kw_only=True)
class ProgramProfile:
    """What the runs of a program have shown so far."""

    clean: ProgramRun | None = None
    watched: ProgramRun | None = None
    phases: tuple[Phase, ...] = ()
    results: dict[str, Finding | Obstacle] = field(default_factory=dict)  # By probe
    passes: int = 0
    partial: bool = True


def choose(words: Sequence[str]) -> tuple[str, ...]:
    """Return the probes that words name, commas between them or not."""
    names = [name.strip() for word in words for name in word.split(",") if name.strip()]
    for name in names:
        if name not in (*KNOWN, EVERY):
            raise unknown(
                "probe", name, (*KNOWN, EVERY), f"a program has {', '.join(KNOWN)}; {EVERY} means all"
            )
    return tuple(name for name in KNOWN if name in (*ALWAYS, *names) or EVERY in names)


def profile(
    program: Program,
    probes: Sequence[str] = ALWAYS,
    progress: Progress = silent,
    *,
    files: Path,
    picture: Picture = no_picture,
) -> Record:
    """Run a program clean, watched, and for each further probe; Ctrl-C leaves a record of what there is."""
    recorder, shown = ProgramRecorder("profile", program), ProgramProfile()
    apart = [name for name in probes if name in APART]
    passes = 2 + len(apart)
    files.mkdir(parents=True, exist_ok=True)
    with Launcher() as launcher, until_interrupted(shown):
        progress(0, passes)
        shown.clean = launcher.run(program)
        shown.passes = 1
        progress(1, passes)
        shown.results |= watch(launcher, program, probes, shown, files)
        for number, name in enumerate(apart, 2):
            progress(number, passes)
            shown.results[name] = APART[name](launcher, program, files)
            shown.passes += 1
    values = {
        f"{which}{name}": [float(getattr(run, name))]
        for which, run in (("", shown.clean), ("watched.", shown.watched))
        if run
        for name in ("wall_ns", "cpu_ns", "rss_peak_bytes")
    }
    record = recorder.record(
        rounds=0,
        warmup=0,
        runs=shown.passes,
        headline=RUNS_PER_S,
        values=values,
        order="clean, then watched",
        phases=shown.phases,
        partial=shown.partial,
    )
    for name, found in shown.results.items():
        record = with_result(record, name, found, picture)
    return judge(replace(record, notices=(*record.notices, *launcher.notices())))


def watch(
    launcher: Launcher, program: Program, probes: Sequence[str], shown: ProgramProfile, files: Path
) -> dict[str, Finding | Obstacle]:
    """Run it once while it samples itself and times its spans, looked at from outside meanwhile."""
    outside = ProcessSampler()
    with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        room = Path(made)
        spy = Spy(room)

        def begin(pid: int) -> None:
            outside.begin(pid)
            spy.begin()

        try:
            shown.watched = launcher.run(program, environment(room, "samples"), begin)
        finally:
            outside.end()
            spy.end()
        shown.passes += 1
        wall_ns = shown.watched.wall_ns
        shown.phases = phases_of_spans(room, wall_ns)
        seen = read_stacks(room)
    results: dict[str, Finding | Obstacle] = {}
    results["samples"] = samples_finding(seen, files, spy.seen()) if seen.ns else NO_PYTHON
    if "line" in probes:
        results["line"] = lines_finding(seen.ns) if seen.ns else NO_PYTHON
    if "threads" in probes:
        results["threads"] = outside.by_thread(wall_ns)
    # It may have been gone before two looks at it.
    if len(outside.samples) > 1:
        results["resources"] = describe(outside.samples, 0)
    return results


def run_under(name: str, launcher: Launcher, program: Program, files: Path) -> Finding | Obstacle:
    """Run a program under a probe that its Python processes take with them."""
    finding = {"cprofile": cprofile_finding, "memory": memory_finding}[name]
    with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        launcher.run(program, environment(Path(made), name))
        return finding(Path(made), files)


def under_pyspy(_: Launcher, program: Program, files: Path) -> Finding | Obstacle:
    """Run a program below py-spy, which starts it itself."""
    obstacle = pyspy.why_not()
    if obstacle is not None:
        return obstacle
    try:
        return pyspy.program(program.words, files)
    except ProbeError as error:
        return error.obstacle


# Probes that look in a run of their own
APART: Mapping[str, Callable[[Launcher, Program, Path], Finding | Obstacle]] = {
    "cprofile": partial(run_under, "cprofile"),
    "memory": partial(run_under, "memory"),
    "pyspy": under_pyspy,
}
