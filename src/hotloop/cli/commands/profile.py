"""hotloop profile: where the time of a step goes."""

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.main import remark, stdout_kept_clean
from hotloop.cli.results import (
    SaveRecord,
    check_slow_trust,
    keep_record,
    make_room,
    measure,
    names_several,
    print_records,
    program_of,
    reporting,
    targets_of,
)
from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError, SetupError
from hotloop.core.files import save
from hotloop.core.machine import git
from hotloop.core.settings import Target
from hotloop.options.option import PROFILES, flag_of
from hotloop.options.profile import SECONDS, ProfileOptions, ProfileProgramOptions

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.core.registry import Probe
    from hotloop.lab.measure.target import Opener
    from hotloop.lab.profile.trace import Tracer


def profile(options: ProfileOptions) -> int:
    """Profile targets, a running process or a slow step; return the gravest exit code."""
    from hotloop.lab.measure import target as measured
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
    if options.record is not None and len(targets_of(target)) > 1:
        raise InputError(f"--record is for one target, not {len(targets_of(target))}: name a preset")
    if options.record is not None and options.record.exists():
        raise InputError(f"{options.record} exists: give --record another name")
    probes = probes_lab.choose(options.probe or ())
    target, games = game_of(target, options)
    targets = targets_of(target)
    with closing(measured.Opener()) as opener:
        with stdout_kept_clean():
            measured.check(targets, options.policy, opener=opener)
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
    view = profiles(records, slow_steps=options.slow)
    return print_records(records, view, as_json=options.json, as_list=names_several(target.name))


def keeper(room: Path, tracers: "Mapping[str, Tracer]", *, commit: bool) -> SaveRecord:
    """Return what keeps a record, its page, its trace and the files of its probes under one name."""
    from hotloop.report.files import about_trace, files_beside, folder_of, markdown_page, trace_files

    def keep(record: "Record") -> Path:
        path = PROFILES / f"profile-{utc_now():%Y%m%d-%H%M}.md"
        name = record.target.name
        more = [*files_beside(record, folder_of(room, name))]
        if tracer := tracers.get(name):
            more += trace_files(tracer.trace(record.slow, about_trace(record)))
        page = save(path, markdown_page(record), *more)
        if commit:
            commit_files([page, page.with_suffix(".json")], f"profile: {name}")
        return page

    return keep


def check_repository() -> None:
    """Refuse to commit where there is nothing to commit to, before anything is measured."""
    if git(Path.cwd(), "rev-parse", "--is-inside-work-tree") != "true":
        raise InputError("--commit needs a git repository around this folder: git init, or leave it out")


def commit_files(paths: Sequence[Path], message: str) -> None:
    """Commit these files and no other; SetupError with git's last words where it refuses."""
    names = [str(path) for path in paths]
    for words in (["add", "--force", "--", *names], ["commit", "--quiet", "-m", message, "--", *names]):
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[-300:]
            raise SetupError(f"{', '.join(names)} saved, but git {words[0]} failed: {said}")


def attach(pid: int | None, options: ProfileOptions) -> int:
    """Look at a process that runs already."""
    from hotloop.lab.profile import probes
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.kinds.profile import profile as sections

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
        record = keep_record(record, keeper(Path(made), {}, commit=options.commit))
    return print_records([record], sections(record), as_json=options.json)


def run_again(path: Path, options: ProfileOptions) -> int:
    """Run one slow step of a record again and say what came of it; a word after it is its number."""
    from hotloop.core.record import read
    from hotloop.lab.profile.slow import find_slow_step, rerun
    from hotloop.report.kinds.profile import again

    record, words = read(path), [*filter(None, (options.target, *(options.words or ())))]
    if len(words) > 1 or any(not word.isdecimal() or int(word) < 1 for word in words):
        raise InputError(
            f"--replay-slow RECORD {' '.join(words)}: expected the number of one slow step, such as 1; "
            "the target and its settings are the record's"
        )
    rank = int(words[0]) if words else 1
    slow, _ = find_slow_step(record, rank)
    check_slow_trust(path, slow, options.trust)
    make_room(PROFILES)

    def experiment(_: Target, progress: "Progress") -> "Record":
        return rerun(record, rank, progress)

    def keep(replayed: "Record") -> Path:
        return save(PROFILES / f"replay-{utc_now():%Y%m%d-%H%M}.json", replayed.to_json())

    records = measure([Target(record.target.name)], experiment, keep)
    return print_records(records, again(records[0]), as_json=options.json)


def profile_program(words: tuple[str, ...], options: ProfileProgramOptions) -> int:
    """Look at a program as it runs, keep and show the record; return its exit code."""
    from hotloop.lab.programs import profile as lab
    from hotloop.report.files import folder_of, pictured
    from hotloop.report.kinds.profile import program_profile as sections

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
    return print_records(records, sections(records[0]), as_json=options.json)
