"""Which targets a command line means, and where results go: checked first, kept and shown at the end."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.isolated import settle_record
from hotloop.cli.main import bar, emit, remark, show, stdout_kept_clean
from hotloop.core.errors import ExitCode, InputError, SetupError, WriteError, worst
from hotloop.core.files import save, write_new
from hotloop.core.machine import git, machine
from hotloop.core.process.lifeline import anchored
from hotloop.core.registry import find, presets
from hotloop.core.settings import Target, names_callable

if TYPE_CHECKING:
    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.core.record.profile import Slow
    from hotloop.lab.programs.launch import Program
    from hotloop.report.files import Shelf
    from hotloop.report.section import Section


DIAGNOSIS = "diagnosis-"  # What the names of files begin with that say what follows from a record
VALIDATION = "validate"  # The kind of records that hold no speed

Experiment = Callable[[Target, "Progress"], "Record"]
SaveRecord = Callable[["Record"], Path]

WordPair = tuple[Sequence[str], Sequence[str]]  # Of one kind, and of the other


def reporting(target: Target, phases: str | None, time: list[str] | None = None) -> Target:
    """Return the target with what finds its phases, and functions to time: both are for user code."""
    for flag, given in (("--phases", phases), ("--time", time)):
        if given and not target.is_foreign:
            raise InputError(f"{flag} is for others' code: {target.name} has its own phases; leave it out")
    return replace(target, phases=phases, time=tuple(time or ()))


def names_world(name: str) -> bool:
    """Return whether a name stands for all presets of a world."""
    return "/" not in name and not names_callable(name)


def names_several(name: str) -> bool:
    """Return whether a name stands for several targets: all presets of a world, or callables, `my.py:f,g`."""
    return names_world(name) or len(callables_of(name)) > 1


def callables_of(name: str) -> list[str]:
    """Return the callables of one file or module that a name lists."""
    place, _, names = name.rpartition(":")
    several = names.split(",")
    is_list = place and all(each.isidentifier() for each in several)
    return [f"{place}:{each}" for each in several] if is_list else [name]


def targets_of(target: Target) -> list[Target]:
    """Return the targets that one stands for, each with its keys."""
    if target.is_foreign:
        return [replace(target, name=name) for name in callables_of(target.name)]
    found = find(target.name)
    names = [each.target for each in presets(found.world)] if names_world(target.name) else [found.target]
    return [Target(name, target.keys) for name in names]


def program_of(words: tuple[str, ...]) -> "Program":
    """Return the program of the words after `--`."""
    from hotloop.lab.programs.launch import Program

    if not words:
        raise InputError("nothing stands after --: give a command there, such as -- python train.py")
    return Program(words)


def check_trust(source: Path, targets: Sequence[Target], trusted: Path | None) -> None:
    """Refuse what a file would call outside this project; where it is trusted, say first what that is."""
    from hotloop.envs.callables import announced

    for line in announced(source, targets, trusted):
        remark(line)


def check_slow_trust(source: Path, slow: "Slow", trusted: Path | None) -> None:
    """Do the same for what a record says of its slow steps: the target, and its policy."""
    from hotloop.lab.measure.policy import names_code

    policy = [Target(slow.policy)] if names_code(slow.policy) else []
    check_trust(source, [slow.profiled_target, *policy], trusted)


def measure(targets: Sequence[Target], experiment: Experiment, keep: SaveRecord) -> "list[Record]":
    """Run an experiment on each target and keep its record; an interrupted one is the last."""
    records: list[Record] = []
    for target in targets:
        with bar(target.name) as progress, stdout_kept_clean():
            record = experiment(target, progress)
        records.append(keep_record(record, keep))
        if record.partial:
            break
    return records


def keep_record(record: "Record", keep: SaveRecord) -> "Record":
    """Keep a record and say where; one that the disk does not take is still shown, with the code of that.

    What user code did to the process is undone first, and said in it.
    """
    record = settle_record(record)
    try:
        remark(f"saved {keep(record)}")
    except SetupError as error:
        from hotloop.judge.judge import unsaved

        remark(f"not saved: {error}")
        return unsaved(record)
    return record


def save_record(output: Path, record: "Record", *beside: tuple[str, str | bytes]) -> "Record":
    """Keep a record as the file, or in the folder, that was asked for, and what goes beside it."""
    return keep_record(record, lambda each: save(record_path(output, each), each.to_json(), *beside))


def saver(output: Path, baseline: str | None = None) -> SaveRecord:
    """Return what saves a record where it was asked for, and as a baseline if it is to be one."""

    def keep(record: "Record") -> Path:
        path = save(record_path(output, record), record.to_json())
        keep_baseline(baseline, record)
        return path

    return keep


def print_records(
    records: "Sequence[Record]",
    sections: "Sequence[Section] | None" = None,
    *,
    as_json: bool,
    as_list: bool = False,
    brief: str | None = None,
) -> int:
    """Print the records, or draw them; return the exit code of the gravest.

    Without `sections` there is one record, drawn as its kind is; `brief` stands in the place of notices.
    """
    from hotloop.report.section import notices
    from hotloop.report.terminal import draw

    if as_json:
        texts = [record.to_json() for record in records]
        emit(f"[{','.join(texts)}]\n" if as_list else texts[0])
    elif sections is not None:
        show(draw(sections))
    else:
        from hotloop.report.kinds.record import record_sections

        show(draw(record_sections(records[0])))
    remark(draw(notices(records)) if brief is None else brief)
    return worst(ExitCode(record.exit_code) for record in records)


def record_path(output: Path, record: "Record") -> Path:
    """Return where a record goes: a name that ends in .json is its file, any other a folder."""
    return output if names_file(output) else output / f"{record.run_id}.json"


def names_file(output: Path) -> bool:
    return output.suffix == ".json"


def make_room(output: Path) -> None:
    """Make the folder of an output before anything is measured; refuse one that cannot be written to."""
    make_folder(output.parent if names_file(output) else output)


def make_room_for(path: Path) -> None:
    """Refuse, before anything is played, a file that exists or whose folder cannot be written to."""
    if anchored(path).exists():
        raise InputError(f"{path} exists and is never overwritten: give another name")
    make_folder(path.parent)


def make_folder(folder: Path) -> None:
    place = anchored(folder)  # user code may have left, or removed, the current folder
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot make the folder {folder}: {error.strerror}; choose another output"
        ) from None
    if not os.access(place, os.W_OK | os.X_OK):
        raise InputError(f"cannot write to {folder}: no permission; choose another output")


def write_named(path: Path, content: bytes) -> None:
    """Write a file under the name that was given for it; never over another."""
    try:
        write_new(path, content)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error


def split_baselines(words: Sequence[str]) -> WordPair:
    """Split baselines that are kept, in files or by name, from commits of the project, which are measured."""
    from hotloop.judge.baselines import is_kept

    here, kept, commits = machine(), [], []
    for word in words:
        rev = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
        is_commit, is_saved = bool(git(Path.cwd(), *rev)), is_kept(word, here)
        if is_saved or not is_commit:
            kept.append(word)
        else:
            commits.append(word)
        if is_saved and is_commit:
            remark(f"{word} is a saved baseline here and a commit, too: the baseline is taken")
    return kept, commits


def find_baselines(words: Sequence[str]) -> "tuple[Record, ...]":
    """Read what files and names of saved baselines stand for."""
    from hotloop.judge.baselines import find as find_baseline

    if not words:
        return ()
    here = machine()
    return tuple(find_baseline(word, here) for word in words)


def check_baseline(name: str | None) -> None:
    """Refuse, before anything is measured, a name that is taken or a place that cannot be written to."""
    if name is not None:
        from hotloop.judge.baselines import check_free

        make_room_for(check_free(name, machine()["fingerprint"]))


def keep_baseline(name: str | None, record: "Record") -> None:
    """Keep a run as this machine's baseline, unless it was broken off or found wrong."""
    from hotloop.judge.baselines import baseline_path

    if name is None:
        return
    if record.partial or ExitCode(record.exit_code) is ExitCode.MISMATCH:
        why = "interrupted" if record.partial else "not equal"
        remark(f"not saved as baseline {name}: the run was {why}")
        return
    path = baseline_path(name, record.machine["fingerprint"])
    write_named(path, record.to_json().encode())
    remark(f"saved {path}")


def read_folder(folder: Path) -> "Shelf":
    """The records of a folder, oldest first, and one line for each file that is none."""
    from hotloop.core.record import read
    from hotloop.report.files import SPEEDSCOPE, TRACE, Entry, Shelf
    from hotloop.stats.summary import with_metrics

    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}: --report takes one that holds records")
    entries, foreign = [], []
    for path in sorted(folder.glob("*.json")):
        if path.name.endswith((SPEEDSCOPE, TRACE)) or path.name.startswith(DIAGNOSIS):  # said of records
            continue
        try:
            entries.append(Entry(record=with_metrics(read(path)), path=path))
        except InputError as error:
            foreign.append(str(error))
    if not entries:
        left_out = f" ({len(foreign)} other files)" if foreign else ""
        raise InputError(
            f"{folder} holds no record{left_out}: hotloop bench TARGET --output {folder} makes one"
        )
    entries.sort(key=lambda entry: entry.record.created)
    return Shelf(entries=tuple(entries), left_out=tuple(foreign))


def show_folder(folder: Path, *, as_json: bool) -> int:
    """Print or draw all records of a folder; what is no record is named and left out."""
    from hotloop.report.files import draw_shelf
    from hotloop.report.kinds.record import overview
    from hotloop.report.section import left_out
    from hotloop.report.terminal import draw

    found = read_folder(folder)
    shelf = replace(found, entries=tuple(each for each in found.entries if each.record.kind != VALIDATION))
    if validations := len(found.entries) - len(shelf.entries):
        remark(f"left out {validations} validations: hotloop validate TARGET --adoption reads them")
    if as_json:
        emit(f"[{','.join(record.to_json() for record in shelf.records)}]\n")
    elif shelf.entries:
        view, shelf = draw_shelf(shelf, lambda each: draw(overview(each.records)))
        show(view)
    if shelf.left_out:
        remark(draw(left_out(shelf.left_out)))
    return ExitCode.FINE
