"""hotloop profile: where the time of a step goes."""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotloop.cli.console import remark
from hotloop.cli.flags import (
    Functions,
    Json,
    Policy,
    ProfileSteps,
    TapeFile,
    TargetOrNone,
    Words,
    given_by,
    names_world,
    targets_of,
)
from hotloop.cli.results import check_repository, make_room, save
from hotloop.cli.results import commit as commit_files
from hotloop.cli.runner import check, measure, tell
from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.registry import probes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotloop.core.probe import Probe
    from hotloop.core.progress import Progress
    from hotloop.core.record import Finding, Record
    from hotloop.lab.profile.trace import Tracer


FOLDER = Path(".design")

SECONDS = 5
"""That a running process is looked at."""

EXAMPLES = (
    "hotloop profile grid/toy",
    "hotloop profile grid/toy agents=100 encoder=original",
    "hotloop profile grid/toy --steps 1000000 --json",
    "hotloop profile grid",
    "hotloop profile gym:CartPole-v1",
    "hotloop profile gym:CartPole-v1 num_envs=4 vector=async",
    "hotloop profile my_env.py:make --time my_env.Env._get_obs",
    "hotloop profile my_env.py:make --probe cprofile,memory",
    "hotloop profile my_env.py:make --probe line --time my_env.Env._get_obs",
    "hotloop profile --pid 12345 --seconds 10",
    "hotloop profile grid/toy --trace",
    "hotloop profile --replay-slow .design/profile-20250102-0304.json 2",
)

STACKS = ".speedscope.json"
"""What the names of files with stacks end in."""

Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="NAME",
        help=f"Look in a further pass: {', '.join(probes())}, or all; may be repeated, or a list with "
        "commas.  [default: phases,resources]",
    ),
]

Pid = Annotated[
    int | None,
    typer.Option(metavar="PID", min=1, help="Instead of a target: a process that runs already (py-spy)."),
]

Seconds = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="How long to look at that process.  [default: 5]")
]

Commit = Annotated[bool, typer.Option("--commit", help="Commit the page and the record with git.")]

TRACE, SPEEDSCOPE = ".trace.json", ".speedscope.json"
"""What the names of the files end in; the rest is the profile's."""

ReplaySlow = Annotated[
    Path | None,
    typer.Option(
        metavar="RECORD [K]",
        help="Profile nothing: run a slow step of that record again, the first or the one numbered K.",
    ),
]

TraceFiles = Annotated[
    bool,
    typer.Option(
        "--trace", help="Write sampled steps for Perfetto (.trace.json) and speedscope (.speedscope.json)."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """How the targets are looked at, whichever they are."""

    given: dict[str, object]
    steps: int | None
    policy: str
    time: tuple[str, ...]
    tape: Path | None
    probes: "tuple[Probe, ...]"
    commit: bool
    trace: bool


def profile(  # noqa: PLR0913 - one argument a flag
    target: TargetOrNone = None,
    words: Words = None,
    *,
    steps: ProfileSteps = None,
    policy: Policy = "random",
    probe: Probes = None,
    time: Functions = None,
    record: TapeFile = None,
    pid: Pid = None,
    seconds: Seconds = None,
    commit: Commit = False,
    trace: TraceFiles = False,
    replay_slow: ReplaySlow = None,
    json: Json = False,
) -> int:
    """Where the time of a step goes.

    Two of the target play the same actions, random ones or those of a policy, in alternation: one timed,
    one clean. Throughput comes from the clean one only, and what the instrument cost is said with its
    interval. One of our worlds is taken apart by phase; somebody else's environment, or a loop with a
    policy in it, into env.step, env.reset, the policy, the functions of --time and spans of its own.
    Each --probe then looks at a pass of its own: every function, samples from outside, lines, memory,
    threads, torch, instructions. The slowest step calls are kept with the way to them: --replay-slow runs
    one again. Writes .design/profile-<YYYYMMDD-HHMM>.md and .json (UTC), the probes'
    files and a page beside them, and never overwrites. Compares with the previous profile of the target.
    """
    from hotloop.lab.profile import probes as probes_lab

    if replay_slow is not None:
        check_again(steps=steps, probe=probe, time=time, record=record, pid=pid, commit=commit, trace=trace)
        return run_again(replay_slow, [*filter(None, (target, *(words or ())))], FOLDER, as_json=json)
    if commit:
        check_repository()
    if target is None:
        is_other = probe not in (None, ["pyspy"])
        check_alone(probe=is_other, steps=steps, time=time, record=record, trace=trace)
        return attach(pid, seconds or SECONDS, commit=commit, as_json=json)
    if pid is not None or seconds is not None:
        raise InputError("--pid and --seconds are for a process that runs already: leave out the target")
    targets = targets_of(target)
    looked = Looked(
        given=given_by(words),
        steps=steps,
        policy=policy,
        time=tuple(time or ()),
        tape=new_file(record, targets),
        probes=probes_lab.choose(probe or (), time or ()),
        commit=commit,
        trace=trace,
    )
    check(targets, looked.given, policy)
    probes_lab.check(looked.probes, targets, looked.time)
    make_room(FOLDER)
    return run(target, looked, as_json=json)


def check_alone(**flags: object) -> None:
    """Refuse what a process that runs already cannot be asked."""
    given = [name for name, value in flags.items() if value]
    if given:
        raise InputError(f"--{given[0]} is for a target: name one, or look at a process with --pid alone")


def new_file(path: Path | None, targets: "list[str]") -> Path | None:
    """A tape is never overwritten, and is of one target."""
    if path is not None and len(targets) > 1:
        raise InputError(f"--record is for one target, not {len(targets)}: name a preset")
    if path is not None and path.exists():
        raise InputError(f"{path} exists: give --record another name")
    return path


def run(target: str, looked: Looked, *, as_json: bool) -> int:
    """Profile the targets, keep what was found and show it."""
    from rich.console import Group

    from hotloop.lab.profile import profile as lab
    from hotloop.lab.profile.trace import Tracer
    from hotloop.report.shifts import shifts

    tracers: dict[str, Tracer] = {}
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        room = Path(made)

        def experiment(name: str, progress: "Progress") -> "Record":
            if looked.trace:
                tracers[name] = Tracer()
            folder = folder_of(room, name)
            return lab.profile(
                name,
                looked.given,
                looked.steps,
                progress,
                policy=looked.policy,
                time=looked.time,
                tape=looked.tape,
                tracer=tracers.get(name),
                extras=lab.Extras(
                    probes=looked.probes,
                    baselines=FOLDER,
                    files=folder,
                    picture=partial(pictured, name, folder),
                ),
            )

        records = measure(targets_of(target), experiment, keeper(room, tracers, commit=looked.commit))
    view = Group(*map(draw, records), shifts(records))
    return tell(records, view, as_json=as_json, as_list=names_world(target))


def keeper(room: Path, tracers: "Mapping[str, Tracer]", *, commit: bool) -> Any:
    """What keeps a record, its page, its trace and the files of its probes under one name."""
    from hotloop.report import markdown

    def keep(record: "Record") -> Path:
        path = FOLDER / f"profile-{utc_now():%Y%m%d-%H%M}.md"
        name = record.target.name
        more = [*beside(record, folder_of(room, name)), *trace_files(tracers.get(name), record)]
        kept = save(path, markdown.draw_profile(record), *more)
        if commit:
            commit_files([kept, kept.with_suffix(".json")], f"profile: {name}")
        return kept

    return keep


def draw(record: "Record") -> Any:
    """A profile for the terminal: the phases, what probes found, and how it stands to the previous one."""
    from rich.console import Group

    from hotloop.report import terminal
    from hotloop.report.comparisons import draw_comparisons
    from hotloop.report.findings import draw_findings
    from hotloop.report.slow import draw_slow

    compared = [draw_comparisons(record.comparisons)] if record.comparisons else []
    timed = [terminal.draw_profile(record), draw_slow(record)] if record.method.rounds else []
    return Group(*timed, draw_findings(record.findings), *compared)


def attach(pid: int | None, seconds: int, *, commit: bool, as_json: bool) -> int:
    """Look at a process that runs already."""
    from hotloop.lab.profile import attach as attaching

    if pid is None:
        raise InputError("profile needs a TARGET, or --pid PID: hotloop profile --help says how")
    attaching.check(pid)
    make_room(FOLDER)
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        folder = folder_of(Path(made), f"pid:{pid}")
        folder.mkdir()
        remark(f"looking at process {pid} for {seconds} s")
        record = attaching.attach(pid, folder, seconds, partial(pictured, f"pid:{pid}", folder))
        remark(f"saved {keeper(Path(made), {}, commit=commit)(record)}")
    return tell([record], draw(record), as_json=as_json, as_list=False)


def folder_of(room: Path, target: str) -> Path:
    """Where the probes of a target write, until it is known under which name their files are kept."""
    return room / re.sub(r"[^\w.-]+", "-", target)


def pictured(target: str, folder: Path, found: "Finding") -> "Finding":
    """Draw the stacks that a probe saw; its finding then names the pictures too."""
    from hotloop.core.record import stacks
    from hotloop.report import flames

    drawn = []
    for name in found.files:
        if name.endswith(STACKS):
            drawn.append(name.removesuffix(STACKS) + ".svg")
            title = f"{target}, {found.probe}"
            (folder / drawn[-1]).write_text(flames.draw(stacks.read(folder / name), title))
    return replace(found, files=(*found.files, *drawn))


def beside(record: "Record", folder: Path) -> "list[tuple[str, str | bytes]]":
    """Suffix and content of all that lies beside the page; a web page only where a probe was asked for."""
    files = [name for found in record.findings for name in found.files]
    kept: list[tuple[str, str | bytes]] = [(".json", record.to_json())]
    if any(found.probe != "resources" for found in record.findings):
        kept.append((".html", page(record, folder)))
    return kept + [(f".{name}", (folder / name).read_bytes()) for name in files]


def page(record: "Record", folder: Path) -> str:
    from hotloop.core.record import stacks
    from hotloop.report.page import draw_page

    pictures = {
        found.probe: stacks.read(folder / name)
        for found in record.findings
        for name in found.files
        if name.endswith(STACKS)
    }
    return draw_page(record, pictures)


def check_again(**flags: object) -> None:
    """Refuse what running a slow step again cannot be asked."""
    given = [name for name, value in flags.items() if value]
    if given:
        raise InputError(
            f"--{given[0]} does not go with --replay-slow, which runs a step as its record says: leave it out"
        )


def run_again(path: Path, words: "Sequence[str]", folder: Path, *, as_json: bool) -> int:
    """Run one slow step of a record again and say what came of it; a word after it is its number."""
    from hotloop.core.record import read
    from hotloop.lab.profile import rerun
    from hotloop.report.slow import draw_again

    record, rank = read(path), rank_of(words)
    rerun.find(record, rank)
    make_room(folder)

    def experiment(_: str, progress: "Progress") -> "Record":
        return rerun.rerun(record, rank, progress)

    def keep(replayed: "Record") -> Path:
        return save(folder / f"replay-{utc_now():%Y%m%d-%H%M}.json", replayed.to_json())

    records = measure([record.target.name], experiment, keep)
    return tell(records, draw_again(records[0]), as_json=as_json, as_list=False)


def rank_of(words: "Sequence[str]") -> int:
    """Which of the slow steps is meant; the first, unless a number follows the record."""
    if not words:
        return 1
    if len(words) > 1 or not words[0].isdecimal() or int(words[0]) < 1:
        raise InputError(
            f"--replay-slow RECORD {' '.join(words)}: expected the number of one slow step, such as 1; "
            "the target and its settings are the record's"
        )
    return int(words[0])


def trace_files(tracer: "Tracer | None", record: "Record") -> list[tuple[str, str]]:
    """The suffixes and contents of the files of a trace; none where there was no tracer."""
    if tracer is None:
        return []
    from hotloop.report.facts import code_line, machine_line
    from hotloop.report.speedscope import draw_speedscope
    from hotloop.report.trace import draw_trace

    about = {
        "target": record.target.name,
        "run_id": record.run_id,
        "machine": machine_line(record.machine),
        "commit": code_line(record.code),
        "policy": record.method.policy,
    }
    trace = tracer.trace(record.slow, about)
    return [(TRACE, draw_trace(trace)), (SPEEDSCOPE, draw_speedscope(trace))]
