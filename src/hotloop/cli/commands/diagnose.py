"""hotloop diagnose: what to change first, and what it would buy."""

import json as json_format
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli import child
from hotloop.cli.console import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.results import DIAGNOSIS, check_slow_trust, make_room
from hotloop.cli.targets import program_of
from hotloop.core.clock import utc_now
from hotloop.core.errors import ExitCode, InputError, SetupError
from hotloop.core.files import save, small_text
from hotloop.core.notices import Code, notice
from hotloop.options.diagnose import DiagnoseOptions, DiagnoseProgramOptions
from hotloop.options.shared import PROFILES, RECORDS

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.core.record.comparison import Ratio
    from hotloop.judge.case import Alternative
    from hotloop.judge.diagnose import Candidate, Diagnosis, Since
    from hotloop.judge.expect import Expectations, Trial
    from hotloop.report.section import Page

FOLDERS = (PROFILES, RECORDS)  # Where records lie unless somebody says otherwise


def diagnose(options: DiagnoseOptions) -> int:
    """Diagnose a record, or delay the parts of its target; writes the page and shows it."""
    from hotloop.report.kinds import diagnose as sections
    from hotloop.report.terminal import draw

    path = options.record or newest()
    found = load(path)
    if options.causal:
        return delay(found, path, options)
    before = load(options.since) if options.since else None
    told = look(found, path, quick=options.quick)
    after = hold(before, found, quick=options.quick) if before else None
    keep(told, after)
    if options.json:
        emit(json_format.dumps(plain(told, after), indent=1, allow_nan=False) + "\n")
    else:
        show(draw((*sections.diagnosis(told), *(sections.changed(after) if after else ()))))
    return ExitCode.FINE


def delay(record: "Record", path: Path, options: DiagnoseOptions) -> int:
    """Play the target of a profile with delays in its parts; other loops are run after the dashes."""
    from hotloop.lab.diagnose.causal import TURNS
    from hotloop.lab.diagnose.parts import of_target

    if record.slow is None:
        raise InputError(
            f"--causal runs a loop with delays in it: hotloop diagnose --causal -- {loop_of(record)}"
        )
    check_slow_trust(path, record.slow, options.trust)
    with bar(record.target.name) as progress, stdout_kept_clean():
        trials = of_target(record, tuple(options.time or ()), options.turns or TURNS, progress)
    left = child.left_behind()
    if left:
        remark(f"! {notice(Code.UNTIDY, target=record.target.name, what=', '.join(left)).text}")
    return tell_causal(record.target.words, trials, as_json=options.json)


def loop_of(record: "Record") -> str:
    """What would be typed to run the loop of a record again."""
    if record.kind == "train":
        return f"hotloop train {record.target.words} run=NAME"
    return record.target.name if record.work.runs else "python YOUR_LOOP.py"


def newest() -> Path:
    """The newest record of this folder that says where time went."""
    from hotloop.judge.diagnose import KINDS

    for path in files():
        told = read_or_none(path)
        if told is not None and told.kind in KINDS:
            return path
    raise InputError(
        "there is nothing here to diagnose: hotloop profile TARGET, hotloop train TARGET or hotloop.run in a "
        "loop of your own makes a record"
    )


def files() -> list[Path]:
    """What may be records, the newest first."""
    from hotloop.report.files import SPEEDSCOPE, TRACE

    found = [path for folder in FOLDERS for path in folder.glob("*.json")]
    kept = [each for each in found if not each.name.endswith((SPEEDSCOPE, TRACE)) and not is_ours(each)]
    return sorted(kept, key=lambda path: path.stat().st_mtime_ns, reverse=True)


def is_ours(path: Path) -> bool:
    return path.name.startswith(DIAGNOSIS)


def read_or_none(path: Path) -> "Record | None":
    try:
        return load(path)
    except InputError:
        return None


def load(path: Path) -> "Record":
    from hotloop.core.record import read
    from hotloop.stats.summary import with_metrics

    return with_metrics(read(path))


def look(record: "Record", path: Path, *, quick: bool) -> "Diagnosis":
    """Diagnose a record, with what this machine knows beside it where it is of this machine."""
    from hotloop.core.machine import machine
    from hotloop.judge import diagnose as judge

    judge.check(record)
    here = machine()["fingerprint"]
    mine = record.machine["fingerprint"] == here
    others = measured(record) if mine and not quick else None
    return judge.diagnose(record, others, expected(record, here, quick=quick or not mine), file=str(path))


def measured(record: "Record") -> "tuple[Alternative, ...] | None":
    """The other ways of a phase, where the world has some; what cannot be opened here is said and no more."""
    from hotloop.lab.diagnose.alternatives import alternatives

    try:
        with bar("both ways of a phase") as progress:
            progress(0, 1)
            return alternatives(record)
    except (InputError, SetupError) as error:
        remark(f"! no other way was measured: {error}")
        return None


def expected(record: "Record", here: str, *, quick: bool) -> "Expectations":
    from hotloop.judge.expect import expect
    from hotloop.lab.diagnose.alternatives import copy_bytes_per_s

    others = [each for path in files() if (each := read_or_none(path))]
    return expect(record, others, here, None if quick else copy_bytes_per_s(), of_project())


def of_project() -> "Mapping[str, Mapping[str, tuple[float, float]]]":
    """Return what the owner expects by device and phase; nothing without a hotloop.toml."""
    from hotloop.core.project import find_file, read

    path = find_file()
    return read(path).expect if path else {}


def hold(before: "Record", after: "Record", *, quick: bool) -> "Since":
    """What was predicted of the earlier record, against what came of it."""
    from hotloop.core.machine import machine
    from hotloop.judge.diagnose import diagnose as judged
    from hotloop.judge.diagnose import since

    if before.run_id == after.run_id:
        raise InputError(f"{before.run_id} is the newest record itself: measure again after the change")
    here = machine()["fingerprint"]
    mine = all(each.machine["fingerprint"] == here for each in (before, after))
    predicted = next((kept for kept in predictions(before.run_id)), None)
    return since(
        before,
        after,
        judged(before).candidates if predicted is None else predicted,
        side_by_side(before, after) if mine and not quick else None,
    )


def side_by_side(before: "Record", after: "Record") -> "Ratio | None":
    """Both measured in turns, where they can be opened here."""
    from hotloop.lab.diagnose.alternatives import in_turns

    try:
        with bar("before and after in turns") as progress:
            progress(0, 1)
            return in_turns(before, after)
    except (InputError, SetupError) as error:
        remark(f"! they were not measured in turns: {error}")
        return None


def predictions(run_id: str) -> "Iterator[tuple[Candidate, ...]]":
    """What earlier diagnoses of a record predicted, the latest first."""
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


def keep(told: "Diagnosis", after: "Since | None") -> None:
    """Write the page with its checklist, and beside it what --since reads."""
    from hotloop.report.kinds.diagnose import page

    make_room(PROFILES)
    write(lambda when: page(told, when, after), plain(told, after))


def write(page: "Callable[[str], Page]", told: "Mapping[str, Any]") -> None:
    """Write a page and what it says as JSON beside it, and say where."""
    from hotloop.report import markdown

    now = utc_now()
    text = markdown.draw_page(page(f"{now:%Y-%m-%d %H:%M} UTC"))
    beside = json_format.dumps(told, indent=1, allow_nan=False) + "\n"
    remark(f"saved {save(PROFILES / f'{DIAGNOSIS}{now:%Y%m%d-%H%M}.md', text, ('.json', beside))}")


def plain(told: "Diagnosis", after: "Since | None") -> dict[str, Any]:
    return {**asdict(told), "since": asdict(after) if after else None}


def tell_causal(target: str, trials: "Sequence[Trial]", *, as_json: bool) -> int:
    """Say what delays came to, and keep it; nothing is told where no part had enough turns."""
    from hotloop.judge.expect import UNTOLD, causal
    from hotloop.report.kinds import diagnose as sections
    from hotloop.report.terminal import draw

    found = causal(trials)
    told = {"target": target, "parts": [asdict(each) for each in found]}
    make_room(PROFILES)
    write(lambda when: sections.causal_page(target, found, when), told)
    if as_json:
        emit(json_format.dumps(told, indent=1, allow_nan=False) + "\n")
    else:
        show(draw(sections.causal(target, found)))
    known = all(each.slope_interval and each.said != UNTOLD for each in found)
    return ExitCode.FINE if known else ExitCode.CANNOT_TELL


def diagnose_program(words: tuple[str, ...], options: DiagnoseProgramOptions) -> int:
    """Delay each part of a program in turns and show what that costs; returns 4 if it cannot tell."""
    from hotloop.lab.diagnose.causal import of_program

    program = program_of(words)
    if not options.causal:
        raise InputError(
            f"diagnose reads records: hotloop profile -- {program.name}, then hotloop diagnose; "
            "or delay its parts with --causal"
        )
    with bar(program.name) as progress:
        trials = of_program(program, options.turns, options.runs, progress)
    return tell_causal(program.name, trials, as_json=options.json)
