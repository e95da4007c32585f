"""hotloop profile: where the time of a step goes."""

import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotloop.cli.console import remark
from hotloop.cli.flags import (
    Functions,
    Gc,
    Json,
    Policy,
    ProfileSteps,
    Reports,
    TapeFile,
    TargetOrNone,
    Trust,
    Words,
    garbage_of,
    names_several,
    reporting,
    targets_of,
)
from hotloop.cli.results import check_repository, check_slow_trust, make_room
from hotloop.cli.results import commit as commit_files
from hotloop.cli.runner import check, kept, measure, tell
from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.files import save
from hotloop.core.registry import probe_names
from hotloop.core.target import Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hotloop.core.probe import Probe
    from hotloop.core.progress import Progress
    from hotloop.core.record.record import Record
    from hotloop.lab.measure.stepping import Garbage
    from hotloop.lab.measure.target import Opener
    from hotloop.lab.profile.trace import Tracer
    from hotloop.report.files import Kept


FOLDER = Path(".design")

SECONDS = 5
"""That a running process is looked at."""

ISOLATED = True

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
    "hotloop profile 12345 --seconds 10",
    "hotloop profile -- python train.py --steps 1000",
    "hotloop profile grid/toy --trace",
    "hotloop profile cards hero=simple villain=random num_games=500",
    "hotloop profile my_game.py:make hero=my_model.py:Model villain=random num_games=200",
    "hotloop profile --replay-slow .design/profile-20250102-0304.json 2",
)


Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="NAME",
        help=f"Look in a further pass: {', '.join(probe_names())}, or all; may be repeated, or a list with "
        "commas.  [default: phases,resources; samples in others' code]",
    ),
]

Pid = Annotated[
    int | None,
    typer.Option(
        metavar="PID", min=1, help="Instead of a target: a process that is already running (py-spy)."
    ),
]

Seconds = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="How long to look at that process.  [default: 5]")
]

Commit = Annotated[bool, typer.Option("--commit", help="Commit the page and the record with git.")]


ReplaySlow = Annotated[
    Path | None,
    typer.Option(
        metavar="RECORD [K]",
        help="Profile nothing; repeat a slow step of that record, the first or number K.",
    ),
]

TraceFiles = Annotated[
    bool,
    typer.Option(
        "--trace", help="Write sampled steps for Perfetto (.trace.json) and speedscope (.speedscope.json)."
    ),
]


SlowSteps = Annotated[
    bool,
    typer.Option(
        "--slow", help="Also print the percentiles and the slowest steps; the page always has them."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """How the targets are looked at, whichever they are."""

    steps: int | None
    policy: str
    time: tuple[str, ...]
    tape: Path | None
    probes: "tuple[Probe, ...]"
    commit: bool
    trace: bool
    gc: "Garbage"
    slow: bool
    opener: "Opener"
    games: int | None = None
    """Whole games to count, of a target with players in its seats."""


def profile(  # noqa: PLR0913 - one argument a flag
    target: TargetOrNone = None,
    words: Words = None,
    *,
    steps: ProfileSteps = None,
    policy: Policy = "random",
    probe: Probes = None,
    time: Functions = None,
    phases: Reports = None,
    record: TapeFile = None,
    pid: Pid = None,
    seconds: Seconds = None,
    commit: Commit = False,
    trace: TraceFiles = False,
    replay_slow: ReplaySlow = None,
    trust: Trust = None,
    gc: Gc = "between",
    slow: SlowSteps = False,
    json: Json = False,
) -> int:
    """Show where the time of a step goes.

    Two copies of the target take turns playing the same actions, random ones or a policy's: one is timed, the
    other is not. Throughput comes only from the untimed one, and the cost of the timing is printed with its
    interval. Our worlds are split by phase; your environment, or a loop with a policy in it, is split into
    env.step, env.reset, the policy, functions named with --time and your own spans, and a short run with
    samples finds the hot functions below them. Each --probe looks deeper in a run of its own: every function,
    samples from outside, lines, memory, threads, torch, instructions. The slowest calls are kept: --slow
    shows them, --replay-slow repeats one. Writes .design/profile-<YYYYMMDD-HHMM>.md and .json (UTC) and the
    files of the probes; compares with the previous profile. For programs see profile --help --.
    """
    from hotloop.lab.measure.target import Opener
    from hotloop.lab.profile import probes as probes_lab

    if replay_slow is not None:
        check_again(steps=steps, probe=probe, time=time, record=record, pid=pid, commit=commit, trace=trace)
        ranks = [*filter(None, (target, *(words or ())))]
        return run_again(replay_slow, ranks, FOLDER, trust, as_json=json)
    check_asked(trust, commit=commit)
    target, pid = pid_named(target, words, pid)
    if target is None:
        check_alone(probe=probe not in (None, ["pyspy"]), steps=steps, time=time, record=record, trace=trace)
        return attach(pid, seconds or SECONDS, commit=commit, as_json=json)
    if pid is not None or seconds is not None:
        raise InputError("--pid and --seconds are for a process that runs already: leave out the target")
    asked = reporting(Target.typed(target, words), phases)
    looked = Looked(
        steps=steps,
        policy=policy,
        time=tuple(time or ()),
        tape=new_file(record, targets_of(asked)),
        probes=probes_lab.choose(probe or ()),
        commit=commit,
        trace=trace,
        gc=garbage_of(gc),
        slow=slow,
        opener=Opener(),
    )
    return run(asked, looked, as_json=json)


def pid_named(
    target: str | None, words: "Sequence[str] | None", pid: int | None
) -> tuple[str | None, int | None]:
    """Return the target and the process; a target that is a number names a process, as for `top`."""
    if target is None or not target.isdecimal() or int(target) == 0:
        return target, pid
    if words or pid not in (None, int(target)):
        more = " ".join(words or [f"--pid {pid}"])
        raise InputError(f"{target} names a process that is running: leave out {more}")
    return None, int(target)


def check_asked(trust: Path | None, *, commit: bool) -> None:
    """Refuse what only a replay can be asked, and a commit where there is nothing to commit to."""
    if trust is not None:
        raise InputError("--trust goes with --replay-slow: leave it out")
    if commit:
        check_repository()


def check_alone(**flags: object) -> None:
    """Refuse what a process that runs already cannot be asked."""
    given = [name for name, value in flags.items() if value]
    if given:
        raise InputError(f"--{given[0]} is for a target: name one, or look at a process with --pid alone")


def games_asked(target: Target, looked: Looked) -> tuple[Target, Looked]:
    """Return the target with players in its seats and how many games are counted; others as they are."""
    from hotloop.lab.sim.seated import as_game, games_of, is_seated

    if not is_seated(target):
        return target, looked
    if looked.policy != "random" or looked.tape or looked.trace:
        raise InputError(
            "a player is named, so whole games are looked at: leave out --policy, --record and --trace"
        )
    return as_game(target), replace(looked, games=games_of(target) if looked.steps is None else None)


def new_file(path: Path | None, targets: list[Target]) -> Path | None:
    """A tape is never overwritten, and is of one target."""
    if path is not None and len(targets) > 1:
        raise InputError(f"--record is for one target, not {len(targets)}: name a preset")
    if path is not None and path.exists():
        raise InputError(f"{path} exists: give --record another name")
    return path


def run(target: Target, looked: Looked, *, as_json: bool) -> int:
    """Profile the targets, once they are known to be fit for it."""
    from hotloop.lab.profile import probes as probes_lab

    target, looked = games_asked(target, looked)
    targets = targets_of(target)
    with closing(looked.opener):
        check(targets, looked.policy, looked.opener)
        probes_lab.check(looked.probes, targets, looked.time)
        make_room(FOLDER)
        return profile_all(target, looked, as_json=as_json)


def profile_all(target: Target, looked: Looked, *, as_json: bool) -> int:
    """Profile the targets, keep what was found and show it."""
    from hotloop.lab.profile import profile as lab
    from hotloop.lab.profile.trace import Tracer
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.kinds.profile import profiles
    from hotloop.report.terminal import draw

    tracers: dict[str, Tracer] = {}
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        room = Path(made)

        def experiment(each: Target, progress: "Progress") -> "Record":
            name = each.name
            if looked.trace:
                tracers[name] = Tracer()
            folder = folder_of(room, name)
            found = lab.profile(
                each,
                looked.steps,
                progress,
                policy=looked.policy,
                time=looked.time,
                tape=looked.tape,
                tracer=tracers.get(name),
                opener=looked.opener,
                garbage=looked.gc,
                games=looked.games,
                extras=lab.Extras(
                    probes=looked.probes,
                    baselines=FOLDER,
                    files=folder,
                    picture=partial(pictured, name, folder),
                ),
            )
            looked.opener.close()  # before it is said what was left running
            return found

        records = measure(targets_of(target), experiment, keeper(room, tracers, commit=looked.commit))
    view = draw(profiles(records, slow_steps=looked.slow))
    return tell(records, view, as_json=as_json, as_list=names_several(target.name))


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
    from hotloop.lab.profile import attach as attaching
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.kinds.profile import profile as sections
    from hotloop.report.terminal import draw

    if pid is None:
        raise InputError("profile needs a TARGET, or --pid PID: hotloop profile --help says how")
    attaching.check(pid)
    make_room(FOLDER)
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        folder = folder_of(Path(made), f"pid:{pid}")
        folder.mkdir()
        remark(f"looking at process {pid} for {seconds} s")
        record = attaching.attach(pid, folder, seconds, partial(pictured, f"pid:{pid}", folder))
        record = kept(record, keeper(Path(made), {}, commit=commit))
    return tell([record], draw(sections(record)), as_json=as_json, as_list=False)


def check_again(**flags: object) -> None:
    """Refuse what running a slow step again cannot be asked."""
    given = [name for name, value in flags.items() if value]
    if given:
        raise InputError(
            f"--{given[0]} does not go with --replay-slow, which runs a step as its record says: leave it out"
        )


def run_again(
    path: Path, words: "Sequence[str]", folder: Path, trusted: Path | None, *, as_json: bool
) -> int:
    """Run one slow step of a record again and say what came of it; a word after it is its number."""
    from hotloop.core.record.record import read
    from hotloop.lab.profile import rerun
    from hotloop.report.kinds.slow import again
    from hotloop.report.terminal import draw

    record, rank = read(path), rank_of(words)
    slow, _ = rerun.find(record, rank)
    check_slow_trust(path, slow, trusted)
    make_room(folder)

    def experiment(_: Target, progress: "Progress") -> "Record":
        return rerun.rerun(record, rank, progress)

    def keep(replayed: "Record") -> Path:
        return save(folder / f"replay-{utc_now():%Y%m%d-%H%M}.json", replayed.to_json())

    records = measure([Target(record.target.name)], experiment, keep)
    return tell(records, draw(again(records[0])), as_json=as_json, as_list=False)


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


def trace_files(tracer: "Tracer | None", record: "Record") -> "list[Kept]":
    """The files of a trace; none where there was no tracer."""
    if tracer is None:
        return []
    from hotloop.report import files

    return files.trace_files(tracer.trace(record.slow, files.about_trace(record)))
