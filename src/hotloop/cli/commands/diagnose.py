"""hotloop diagnose: what to change first, and what it would buy."""

import json as json_format
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hotloop.cli.isolated import undo_leftovers
from hotloop.cli.main import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.results import DIAGNOSIS, check_slow_trust, make_room, program_of
from hotloop.core.clock import utc_now
from hotloop.core.errors import Code, ExitCode, InputError, SetupError, notice
from hotloop.core.files import save, small_text
from hotloop.options.diagnose import DiagnoseOptions, DiagnoseProgramOptions
from hotloop.options.option import PROFILES, RECORDS

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.judge.diagnose import Candidate, Diagnosis, Since
    from hotloop.judge.expect import Trial
    from hotloop.report.section import Page

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
