"""hotloop profile: where the time of a step goes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hotloop.cli.arguments import Json, Policy, Words, given_by, names_world, targets_of
from hotloop.cli.flags import TargetOrNone
from hotloop.cli.measuring import check, measure, tell
from hotloop.cli.place import make_room, save
from hotloop.cli.slowness import ReplaySlow, TraceFiles, run_again, trace_files
from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.lab.progress import Progress

FOLDER = Path(".design")

EXAMPLES = (
    "hotloop profile grid/toy",
    "hotloop profile grid/toy agents=100 encoder=original",
    "hotloop profile grid/toy --steps 1000000 --json",
    "hotloop profile grid",
    "hotloop profile gym:CartPole-v1",
    "hotloop profile gym:CartPole-v1 num_envs=4 vector=async",
    "hotloop profile my_env.py:make --time my_env.Env._get_obs",
    "hotloop profile grid/toy --trace",
    "hotloop profile --replay-slow .design/profile-20250102-0304.json 2",
)


def profile(  # noqa: PLR0913 - one argument a flag
    target: TargetOrNone = None,
    words: Words = None,
    *,
    steps: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Env-steps with and without the instrument, each.  [default: 200000; a slow target fewer]",
        ),
    ] = None,
    policy: Policy = "random",
    time: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A function to look at, as module.Class.method; may be repeated."),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="TAPE", help="Write the actions that were played to a tape.")
    ] = None,
    trace: TraceFiles = False,
    replay_slow: ReplaySlow = None,
    json: Json = False,
) -> int:
    """Where the time of a step goes.

    Two of the target play the same actions, random ones or those of a policy, in alternation: one timed,
    one clean. Throughput comes from the clean one only, and what the instrument cost is said with its
    interval. One of our worlds is taken apart by phase; somebody else's environment, or a loop with a
    policy in it, into env.step, env.reset, the policy, the functions of --time and spans of its own.
    The slowest step calls are kept with what came before them: --replay-slow runs one of them again.
    Writes .design/profile-<YYYYMMDD-HHMM>.md and .json (UTC) and never overwrites.
    """
    if replay_slow is not None:
        return run_again(replay_slow, target, FOLDER, as_json=json)
    if target is None:
        raise InputError("profile needs a TARGET: hotloop profile --help says how")
    targets = targets_of(target)
    given = given_by(words)
    check(targets, given, policy)
    make_room(FOLDER)
    looked_at = {"policy": policy, "time": tuple(time or ()), "tape": new_file(record, targets)}
    return run(target, given, steps, looked_at, as_json=json, traced=trace)


def new_file(path: Path | None, targets: "list[str]") -> Path | None:
    """A tape is never overwritten, and is of one target."""
    if path is not None and len(targets) > 1:
        raise InputError(f"--record is for one target, not {len(targets)}: name a preset")
    if path is not None and path.exists():
        raise InputError(f"{path} exists: give --record another name")
    return path


def run(
    target: str,
    given: dict[str, object],
    steps: int | None,
    looked_at: dict[str, Any],
    *,
    as_json: bool,
    traced: bool,
) -> int:
    from rich.console import Group

    from hotloop.lab import profile as lab
    from hotloop.lab.tracing import Tracer
    from hotloop.report import markdown, terminal
    from hotloop.report.shifts import shifts
    from hotloop.report.slow import draw_slow

    tracers: dict[str, Tracer] = {}

    def experiment(name: str, progress: "Progress") -> "Record":
        if traced:
            tracers[name] = Tracer()
        return lab.profile(name, given, steps, progress, tracer=tracers.get(name), **looked_at)

    def keep(record: "Record") -> Path:
        path = FOLDER / f"profile-{utc_now():%Y%m%d-%H%M}.md"
        tracer = tracers.get(record.target.name)
        traces = trace_files(tracer, record) if tracer else []
        return save(path, markdown.draw_profile(record), (".json", record.to_json()), *traces)

    records = measure(targets_of(target), experiment, keep)
    views = (view for record in records for view in (terminal.draw_profile(record), draw_slow(record)))
    view = Group(*views, shifts(records))
    return tell(records, view, as_json=as_json, as_list=names_world(target))
