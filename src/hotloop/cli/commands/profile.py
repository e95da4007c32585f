"""hotloop profile and diagnose: where the time of a step goes, and what to change first."""

import json as json_format
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hotloop.cli.isolated import undo_leftovers
from hotloop.cli.main import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.results import (
    DIAGNOSIS,
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
from hotloop.core.errors import Code, ExitCode, InputError, SetupError, notice
from hotloop.core.files import save, small_text
from hotloop.core.machine import git
from hotloop.core.settings import Target
from hotloop.options.option import PROFILES, RECORDS, flag_of
from hotloop.options.profile import (
    SECONDS,
    DiagnoseOptions,
    DiagnoseProgramOptions,
    ProfileOptions,
    ProfileProgramOptions,
)

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.core.registry import Probe
    from hotloop.judge.diagnose import Candidate, Diagnosis, Since
    from hotloop.judge.expect import Trial
    from hotloop.lab.measure.target import Opener
    from hotloop.lab.profile.trace import Tracer
    from hotloop.report.section import Page


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


FOLDERS = (PROFILES, RECORDS)  # Where records lie by default

Measured = TypeVar("Measured")


def diagnose(options: DiagnoseOptions) -> int:
    """Diagnose a record, or delay the parts of its target; write the page and show it."""
    from hotloop.report.kinds import diagnose as sections
    from hotloop.report.terminal import draw

    path = options.record or newest_record()
    record = load(path)
    if options.causal:
        return delay_parts(record, path, options)
    before = load(options.since) if options.since else None
    diagnosis = diagnose_record(record, path, quick=options.quick)
    since = judge_change(before, record, quick=options.quick) if before else None
    plain = {**asdict(diagnosis), "since": asdict(since) if since else None}
    write_page(lambda when: sections.page(diagnosis, when, since), plain)
    if options.json:
        emit(json_format.dumps(plain, indent=1, allow_nan=False) + "\n")
    else:
        show(draw((*sections.diagnosis(diagnosis), *(sections.changed(since) if since else ()))))
    return ExitCode.FINE


def newest_record() -> Path:
    """Return the newest record of this folder that says where time went."""
    from hotloop.judge.diagnose import KINDS

    for path, record in readable_records():
        if record.kind in KINDS:
            return path
    raise InputError(
        "there is nothing here to diagnose: hotloop profile TARGET, hotloop train TARGET or hotloop.run in a "
        "loop of your own makes a record"
    )


def readable_records() -> "Iterator[tuple[Path, Record]]":
    """Yield the records that lie where commands keep them, the newest first."""
    from hotloop.report.files import SPEEDSCOPE, TRACE

    paths = [path for folder in FOLDERS for path in folder.glob("*.json")]
    for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        if path.name.endswith((SPEEDSCOPE, TRACE)) or path.name.startswith(DIAGNOSIS):
            continue
        try:
            record = load(path)
        except InputError:
            continue
        yield path, record


def load(path: Path) -> "Record":
    """Return the record of a file with its metrics."""
    from hotloop.core.record import read
    from hotloop.stats.summary import with_metrics

    return with_metrics(read(path))


def diagnose_record(record: "Record", path: Path, *, quick: bool) -> "Diagnosis":
    """Diagnose a record, with what this machine knows beside it where it is of this machine."""
    from hotloop.core.machine import machine
    from hotloop.core.project import find_file, read
    from hotloop.judge import diagnose as judge
    from hotloop.judge.expect import expect
    from hotloop.lab.alternatives import alternatives, copy_bytes_per_s

    judge.check(record)
    here = machine()["fingerprint"]
    measures = record.machine["fingerprint"] == here and not quick
    ways = (
        try_measuring("both ways of a phase", "no other way was measured", lambda: alternatives(record))
        if measures
        else None
    )
    others = [each for _, each in readable_records()]
    project = find_file()  # what the owner expects by device and phase is in its file
    expected = expect(
        record,
        others,
        here,
        copy_bytes_per_s() if measures else None,
        read(project).expect if project else {},
    )
    return judge.diagnose(record, ways, expected, file=str(path))


def try_measuring(label: str, failed: str, measure: Callable[[], Measured]) -> Measured | None:
    """Measure under a bar; what cannot be opened here is said, and None returned."""
    try:
        with bar(label) as progress:
            progress(0, 1)
            return measure()
    except (InputError, SetupError) as error:
        remark(f"! {failed}: {error}")
        return None


def judge_change(before: "Record", after: "Record", *, quick: bool) -> "Since":
    """Hold what was predicted of the earlier record against what came of it, in turns if possible."""
    from hotloop.core.machine import machine
    from hotloop.judge import diagnose as judge
    from hotloop.lab.alternatives import in_turns

    if before.run_id == after.run_id:
        raise InputError(f"{before.run_id} is the newest record itself: measure again after the change")
    here = machine()["fingerprint"]
    is_here = all(each.machine["fingerprint"] == here for each in (before, after))
    predicted = next(predictions(before.run_id), None)
    candidates = judge.diagnose(before).candidates if predicted is None else predicted
    ratio = None
    if is_here and not quick:
        failed = "they were not measured in turns"
        ratio = try_measuring("before and after in turns", failed, lambda: in_turns(before, after))
    return judge.since(before, after, candidates, ratio)


def predictions(run_id: str) -> "Iterator[tuple[Candidate, ...]]":
    """Yield what earlier diagnoses of a record predicted, the latest first."""
    from hotloop.core.record.codec import ForeignError, from_plain, parse
    from hotloop.judge.diagnose import Candidate

    paths = sorted(
        PROFILES.glob(f"{DIAGNOSIS}*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True
    )
    for path in paths:
        try:
            kept = parse(small_text(path))
            if isinstance(kept, dict) and kept.get("run_id") == run_id:
                yield tuple(from_plain(Candidate, each) for each in kept["candidates"])
        except (OSError, ForeignError, InputError, KeyError, TypeError, UnicodeDecodeError):
            continue


def write_page(page: "Callable[[str], Page]", plain: "Mapping[str, Any]") -> None:
    """Write a page with its checklist, and beside it as JSON what --since reads; say where."""
    from hotloop.report import markdown

    make_room(PROFILES)
    now = utc_now()
    text = markdown.draw_page(page(f"{now:%Y-%m-%d %H:%M} UTC"))
    beside = json_format.dumps(plain, indent=1, allow_nan=False) + "\n"
    remark(f"saved {save(PROFILES / f'{DIAGNOSIS}{now:%Y%m%d-%H%M}.md', text, ('.json', beside))}")


def delay_parts(record: "Record", path: Path, options: DiagnoseOptions) -> int:
    """Play the target of a profile with delays in its parts; other loops are run after the dashes."""
    from hotloop.lab.causal import TURNS, delay_target

    if record.slow is None:
        if record.kind == "train":
            loop = f"hotloop train {record.target.words} run=NAME"
        else:
            loop = record.target.name if record.work.runs else "python YOUR_LOOP.py"
        raise InputError(f"--causal runs a loop with delays in it: hotloop diagnose --causal -- {loop}")
    check_slow_trust(path, record.slow, options.trust)
    with bar(record.target.name) as progress, stdout_kept_clean():
        trials = delay_target(record, tuple(options.time or ()), options.turns or TURNS, progress)
    if left := undo_leftovers():
        remark(f"! {notice(Code.UNTIDY, target=record.target.name, what=', '.join(left)).text}")
    return show_causal(record.target.words, trials, as_json=options.json)


def show_causal(target: str, trials: "Sequence[Trial]", *, as_json: bool) -> int:
    """Say what delays came to, and keep it; return 4 if a part did not have enough turns."""
    from hotloop.judge.expect import UNTOLD, causal
    from hotloop.report.kinds import diagnose as sections
    from hotloop.report.terminal import draw

    found = causal(trials)
    plain = {"target": target, "parts": [asdict(each) for each in found]}
    write_page(lambda when: sections.causal_page(target, found, when), plain)
    if as_json:
        emit(json_format.dumps(plain, indent=1, allow_nan=False) + "\n")
    else:
        show(draw(sections.causal(target, found)))
    known = all(each.slope_interval and each.said != UNTOLD for each in found)
    return ExitCode.FINE if known else ExitCode.CANNOT_TELL


def diagnose_program(words: tuple[str, ...], options: DiagnoseProgramOptions) -> int:
    """Delay each part of a program in turns and show what that costs; return 4 if it cannot tell."""
    from hotloop.lab.causal import delay_program

    program = program_of(words)
    if not options.causal:
        raise InputError(
            f"diagnose reads records: hotloop profile -- {program.name}, then hotloop diagnose; "
            "or delay its parts with --causal"
        )
    with bar(program.name) as progress:
        trials = delay_program(program, options.turns, options.runs, progress)
    return show_causal(program.name, trials, as_json=options.json)
