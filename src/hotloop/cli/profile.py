"""hotloop profile: where the time of a step goes."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.arguments import Json, Policy, Words, given_by, names_world, targets_of
from hotloop.cli.committing import check_repository
from hotloop.cli.committing import commit as commit_files
from hotloop.cli.findings import Commit, Pid, Probes, Seconds
from hotloop.cli.flags import Functions, ProfileSteps, TapeFile, TargetOrNone
from hotloop.cli.measuring import check, measure, tell
from hotloop.cli.output import remark
from hotloop.cli.place import make_room, save
from hotloop.cli.slowness import ReplaySlow, TraceFiles, check_again, run_again, trace_files
from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.core.probe import Probe
    from hotloop.core.record import Record
    from hotloop.lab.progress import Progress
    from hotloop.lab.tracing import Tracer

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
    from hotloop.lab import probing

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
        probes=probing.choose(probe or (), time or ()),
        commit=commit,
        trace=trace,
    )
    check(targets, looked.given, policy)
    probing.check(looked.probes, targets, looked.time)
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
    from hotloop.lab import previous, probing
    from hotloop.lab import profile as lab
    from hotloop.lab.tracing import Tracer
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.sections.profile import profiles
    from hotloop.report.terminal import draw

    tracers: dict[str, Tracer] = {}
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        room = Path(made)

        def experiment(name: str, progress: "Progress") -> "Record":
            if looked.trace:
                tracers[name] = Tracer()
            found = lab.profile(
                name,
                looked.given,
                looked.steps,
                progress,
                policy=looked.policy,
                time=looked.time,
                tape=looked.tape,
                tracer=tracers.get(name),
            )
            asked = probing.Asked(
                target=name,
                given=looked.given,
                policy=looked.policy,
                steps=looked.steps,
                probes=looked.probes,
                time=looked.time,
                folder=folder_of(room, name),
            )
            compared = previous.with_previous(found, previous.find(FOLDER, found.target.name))
            probed = probing.with_probes(compared, asked, progress)
            return pictured(probed, asked.folder)

        records = measure(targets_of(target), experiment, keeper(room, tracers, commit=looked.commit))
    return tell(records, draw(profiles(records)), as_json=as_json, as_list=names_world(target))


def keeper(room: Path, tracers: "Mapping[str, Tracer]", *, commit: bool) -> Any:
    """What keeps a record, its page, its trace and the files of its probes under one name."""
    from hotloop.report.files import beside, folder_of, markdown_page

    def keep(record: "Record") -> Path:
        path = FOLDER / f"profile-{utc_now():%Y%m%d-%H%M}.md"
        name = record.target.name
        more = [*beside(record, folder_of(room, name)), *trace_files(tracers.get(name), record)]
        kept = save(path, markdown_page(record), *more)
        if commit:
            commit_files([kept, kept.with_suffix(".json")], f"profile: {name}")
        return kept

    return keep


def attach(pid: int | None, seconds: int, *, commit: bool, as_json: bool) -> int:
    """Look at a process that runs already."""
    from hotloop.lab import attaching
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.sections.profile import profile as sections
    from hotloop.report.terminal import draw

    if pid is None:
        raise InputError("profile needs a TARGET, or --pid PID: hotloop profile --help says how")
    attaching.check(pid)
    make_room(FOLDER)
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        folder = folder_of(Path(made), f"pid:{pid}")
        folder.mkdir()
        remark(f"looking at process {pid} for {seconds} s")
        record = pictured(attaching.attach(pid, folder, seconds), folder)
        remark(f"saved {keeper(Path(made), {}, commit=commit)(record)}")
    return tell([record], draw(sections(record)), as_json=as_json, as_list=False)
