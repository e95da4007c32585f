"""hotloop profile: where the time of a step goes."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.console import remark
from hotloop.cli.results import check_repository, check_slow_trust, make_room
from hotloop.cli.results import commit as commit_files
from hotloop.cli.runner import check, kept, measure, tell
from hotloop.cli.targets import names_several, program_of, reporting, targets_of
from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.files import save
from hotloop.core.target import Target
from hotloop.options.option import flag_of
from hotloop.options.profile import SECONDS, ProfileOptions, ProfileProgramOptions
from hotloop.options.shared import PROFILES

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.core.registry import Probe
    from hotloop.lab.measure.target import Opener
    from hotloop.lab.profile.trace import Tracer
    from hotloop.report.files import Kept


def profile(options: ProfileOptions) -> int:
    """Profile targets, a running process or a slow step; returns the gravest exit code."""
    from hotloop.lab.measure.target import Opener
    from hotloop.lab.profile import probes as probes_lab

    if options.replay_slow is not None:
        return run_again(options.replay_slow, options)
    if options.commit:
        check_repository()
    name, pid = pid_named(options)
    if name is None:
        return attach(pid, options)
    if pid is not None or options.seconds is not None:
        raise InputError("--pid and --seconds are for a process that runs already: leave out the target")
    target = reporting(Target.typed(name, options.words), options.phases)
    check_new(options.record, targets_of(target))
    probes = probes_lab.choose(options.probe or ())
    target, games = game_of(target, options)
    targets = targets_of(target)
    with closing(Opener()) as opener:
        check(targets, options.policy, opener)
        probes_lab.check(probes, targets, tuple(options.time or ()))
        make_room(PROFILES)
        return profile_all(target, options, probes, opener, games)


def pid_named(options: ProfileOptions) -> tuple[str | None, int | None]:
    """Return the target and the process; a target that is a number names a process, as for `top`."""
    target, pid = options.target, options.pid
    if target is None or not target.isdecimal() or int(target) == 0:
        return target, pid
    if options.words or pid not in (None, int(target)):
        more = " ".join(options.words or [f"--pid {pid}"])
        raise InputError(f"{target} names a process that is running: leave out {more}")
    return None, int(target)


def game_of(target: Target, options: ProfileOptions) -> tuple[Target, int | None]:
    """Return the target with players in its seats and how many games are counted; others as they are."""
    from hotloop.lab.sim.seated import as_game, games_of, is_seated

    if not is_seated(target):
        return target, None
    if options.policy != "random" or options.record or options.trace:
        raise InputError(
            "a player is named, so whole games are looked at: leave out --policy, --record and --trace"
        )
    return as_game(target), games_of(target) if options.steps is None else None


def check_new(path: Path | None, targets: list[Target]) -> None:
    """Refuse to overwrite a tape, and one of several targets."""
    if path is not None and len(targets) > 1:
        raise InputError(f"--record is for one target, not {len(targets)}: name a preset")
    if path is not None and path.exists():
        raise InputError(f"{path} exists: give --record another name")


def profile_all(
    target: Target,
    options: ProfileOptions,
    probes: "Sequence[Probe]",
    opener: "Opener",
    games: int | None,
) -> int:
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
            if options.trace:
                tracers[name] = Tracer()
            folder = folder_of(room, name)
            picture = partial(pictured, name, folder)
            plan = lab.ProfilePlan(
                target=each,
                opener=opener,
                steps=options.steps,
                policy=options.policy,
                time=tuple(options.time or ()),
                tape=options.record,
                tracer=tracers.get(name),
                garbage=options.gc,
                games=games,
                probes=tuple(probes),
                baselines=PROFILES,
                files=folder,
                picture=picture,
            )
            found = lab.profile(plan, progress)
            opener.close()  # before it is said what was left running
            return found

        keep = keeper(room, tracers, commit=options.commit)
        records = measure(targets_of(target), experiment, keep)
    view = draw(profiles(records, slow_steps=options.slow))
    return tell(records, view, as_json=options.json, as_list=names_several(target.name))


def keeper(room: Path, tracers: "Mapping[str, Tracer]", *, commit: bool) -> "Callable[[Record], Path]":
    """What keeps a record, its page, its trace and the files of its probes under one name."""
    from hotloop.report.files import beside, folder_of, markdown_page

    def keep(record: "Record") -> Path:
        path = PROFILES / f"profile-{utc_now():%Y%m%d-%H%M}.md"
        name = record.target.name
        more = [*beside(record, folder_of(room, name)), *trace_files(tracers.get(name), record)]
        kept = save(path, markdown_page(record), *more)
        if commit:
            commit_files([kept, kept.with_suffix(".json")], f"profile: {name}")
        return kept

    return keep


def attach(pid: int | None, options: ProfileOptions) -> int:
    """Look at a process that runs already."""
    from hotloop.lab.profile import probes
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.kinds.profile import profile as sections
    from hotloop.report.terminal import draw

    given = {name: getattr(options, name) for name in ("steps", "time", "record", "trace")}
    others = {"probe": options.probe not in (None, ["pyspy"])} | given
    flags = [flag_of(name) for name, value in others.items() if value]
    if flags:
        raise InputError(f"{flags[0]} is for a target: name one, or look at a process with --pid alone")
    if pid is None:
        raise InputError("profile needs a TARGET, or --pid PID: hotloop profile --help says how")
    probes.check_process(pid)
    make_room(PROFILES)
    seconds = options.seconds or SECONDS
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        folder = folder_of(Path(made), f"pid:{pid}")
        folder.mkdir()
        remark(f"looking at process {pid} for {seconds} s")
        record = probes.attach(pid, folder, seconds, partial(pictured, f"pid:{pid}", folder))
        record = kept(record, keeper(Path(made), {}, commit=options.commit))
    return tell([record], draw(sections(record)), as_json=options.json, as_list=False)


def run_again(path: Path, options: ProfileOptions) -> int:
    """Run one slow step of a record again and say what came of it; a word after it is its number."""
    from hotloop.core.record import read
    from hotloop.lab.profile.slow import find_slow_step, rerun
    from hotloop.report.kinds.profile import again
    from hotloop.report.terminal import draw

    record, rank = read(path), rank_of([*filter(None, (options.target, *(options.words or ())))])
    slow, _ = find_slow_step(record, rank)
    check_slow_trust(path, slow, options.trust)
    make_room(PROFILES)

    def experiment(_: Target, progress: "Progress") -> "Record":
        return rerun(record, rank, progress)

    def keep(replayed: "Record") -> Path:
        return save(PROFILES / f"replay-{utc_now():%Y%m%d-%H%M}.json", replayed.to_json())

    records = measure([Target(record.target.name)], experiment, keep)
    return tell(records, draw(again(records[0])), as_json=options.json, as_list=False)


def rank_of(words: Sequence[str]) -> int:
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


def profile_program(words: tuple[str, ...], options: ProfileProgramOptions) -> int:
    """Look at a program as it runs, keep and show the record; returns its exit code."""
    from hotloop.lab.programs import profile as lab
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.kinds.profile import program_profile as sections
    from hotloop.report.terminal import draw

    program, chosen = program_of(words), lab.choose(options.probe or ())
    if options.commit:
        check_repository()
    make_room(PROFILES)
    name = program.name
    with tempfile.TemporaryDirectory(prefix="hotloop-", ignore_cleanup_errors=True) as made:
        folder = folder_of(Path(made), name)

        def experiment(_: Target, progress: "Progress") -> "Record":
            picture = partial(pictured, name, folder)
            return lab.profile(program, chosen, progress, files=folder, picture=picture)

        records = measure([Target(name)], experiment, keeper(Path(made), {}, commit=options.commit))
    return tell(records, draw(sections(records[0])), as_json=options.json, as_list=False)
