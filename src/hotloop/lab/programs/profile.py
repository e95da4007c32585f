"""Profile of a program: once clean, once watched, and once more for each probe that looks by itself."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hotloop.core.errors import unknown
from hotloop.core.notices import Code, notice
from hotloop.core.probe import Obstacle, ProbeError
from hotloop.core.progress import Progress, silent
from hotloop.core.record.profile import Finding, Phase
from hotloop.core.record.record import RUNS_PER_S, Record
from hotloop.judge.judge import judge
from hotloop.lab.measure.loop import until_interrupted
from hotloop.lab.profile.probes import Picture, no_picture
from hotloop.lab.programs import within
from hotloop.lab.programs.launch import Launcher, Program, Run
from hotloop.lab.programs.record import ProgramRecorder
from hotloop.lab.programs.spy import Spy
from hotloop.lab.programs.watch import Outside
from hotloop.probes import pyspy
from hotloop.probes import samples as sampling
from hotloop.probes.resources import used

ALWAYS = ("samples", "resources")
"""What looks in the watched pass whether or not it is asked for."""

KNOWN = (*ALWAYS, "line", "threads", "cprofile", "memory", "pyspy")
"""Probes of programs; the first four look in the watched pass, each other in one of its own."""

EVERY = "all"

SPANS = "spans"


@dataclass(slots=True, kw_only=True)
class SoFar:
    """What is known so far."""

    clean: Run | None = None
    watched: Run | None = None
    phases: tuple[Phase, ...] = ()
    found: dict[str, Finding | Obstacle] | None = None
    passes: int = 0
    partial: bool = True


def choose(words: Sequence[str]) -> tuple[str, ...]:
    """The probes that words name, commas between them or not."""
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
    """Where the time of a program goes; Ctrl-C leaves a record of what there is."""
    recorder = ProgramRecorder("profile", program)
    so_far = SoFar(found={})
    files.mkdir(parents=True, exist_ok=True)
    with Launcher() as launcher, until_interrupted(so_far):
        look(launcher, program, probes, so_far, progress, files)
    made = record(recorder, so_far, picture)
    return judge(replace(made, notices=(*made.notices, *launcher.notices())))


def look(
    launcher: Launcher,
    program: Program,
    probes: Sequence[str],
    so_far: SoFar,
    progress: Progress,
    files: Path,
) -> None:
    """Run it clean, watched, and for each further probe."""
    apart = [name for name in probes if name in APART]
    progress(0, 2 + len(apart))
    so_far.clean = launcher.run(program)
    assert so_far.found is not None
    so_far.passes = 1
    progress(1, 2 + len(apart))
    so_far.found.update(watch(launcher, program, probes, so_far, files))
    for number, name in enumerate(apart):
        progress(2 + number, 2 + len(apart))
        so_far.found[name] = APART[name](launcher, program, files)
        so_far.passes += 1


def watch(
    launcher: Launcher, program: Program, probes: Sequence[str], so_far: SoFar, files: Path
) -> Mapping[str, Finding | Obstacle]:
    """One run that samples itself and times its spans, looked at from outside meanwhile."""
    outside = Outside()
    with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        room = Path(made)
        spy = Spy(room)

        def begin(pid: int) -> None:
            outside.begin(pid)
            spy.begin()

        try:
            so_far.watched = launcher.run(program, within.environment(room, "samples"), begin)
        finally:
            outside.end()
            spy.end()
        so_far.passes += 1
        wall_ns = so_far.watched.wall_ns
        so_far.phases = within.phases(room, wall_ns)
        seen = within.read_stacks(room)
    found: dict[str, Finding | Obstacle] = {}
    found["samples"] = within.hot(seen, files, spy.seen()) if seen.ns else within.NO_PYTHON
    if "line" in probes:
        found["line"] = within.lines(seen.ns) if seen.ns else within.NO_PYTHON
    if "threads" in probes:
        found["threads"] = outside.by_thread(wall_ns)
    resources = outside.resources()
    if resources is not None:
        found["resources"] = resources
    return found


def under_cprofile(launcher: Launcher, program: Program, files: Path) -> Finding | Obstacle:
    with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        launcher.run(program, within.environment(Path(made), "cprofile"))
        return within.functions(Path(made), files)


def under_memray(launcher: Launcher, program: Program, files: Path) -> Finding | Obstacle:
    with TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        launcher.run(program, within.environment(Path(made), "memory"))
        return within.held(Path(made), files)


def under_pyspy(_: Launcher, program: Program, files: Path) -> Finding | Obstacle:
    obstacle = pyspy.why_not()
    if obstacle is not None:
        return obstacle
    try:
        return pyspy.program(program.words, files)
    except ProbeError as error:
        return error.obstacle


APART: Mapping[str, Callable[[Launcher, Program, Path], Finding | Obstacle]] = {
    "cprofile": under_cprofile,
    "memory": under_memray,
    "pyspy": under_pyspy,
}
"""Probes that look in a run of their own."""


def record(recorder: ProgramRecorder, so_far: SoFar, picture: Picture) -> Record:
    runs = {"": so_far.clean, "watched.": so_far.watched}
    values = {
        f"{which}{name}": [float(value)]
        for which, run in runs.items()
        if run
        for name, value in (
            ("wall_ns", run.wall_ns),
            ("cpu_ns", run.cpu_ns),
            ("rss_peak_bytes", run.rss_peak_bytes),
        )
    }
    made = recorder.record(
        rounds=0,
        warmup=0,
        runs=so_far.passes,
        headline=RUNS_PER_S,
        values=values,
        order="clean, then watched",
        phases=so_far.phases,
        partial=so_far.partial,
    )
    for name, found in (so_far.found or {}).items():
        made = with_finding(made, name, found, picture)
    return made


def with_finding(made: Record, name: str, found: Finding | Obstacle, picture: Picture) -> Record:
    """A record with what a probe found, or with a notice of why it did not look."""
    if isinstance(found, Obstacle):
        said = notice(Code.NO_PROBE, probe=name, why=found.why, remedy=found.remedy)
        return replace(made, notices=(*made.notices, said))
    made = replace(
        made,
        findings=(*made.findings, picture(found)),
        notices=(*made.notices, *sampling.notices_of(found)),
    )
    if name != "resources":
        return made
    return replace(made, resources=used(found))
