"""Where results go and come from: checked before anything is measured, and never over another file."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.console import remark
from hotloop.core.errors import ExitCode, InputError, SetupError, WriteError
from hotloop.core.files import write_new
from hotloop.core.machine import git
from hotloop.core.process.lifeline import anchored

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.core.record.profile import Slow
    from hotloop.core.target import Target
    from hotloop.report.page.shelf import Shelf


DIAGNOSIS = "diagnosis-"  # What the names of files begin with that say what follows from a record
VALIDATION = "validate"  # The kind of records that hold no speed


def record_path(output: Path, record: "Record") -> Path:
    """Where a record goes: a name that ends in .json is its file, any other a folder."""
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


def keep_new(path: Path, content: bytes) -> None:
    """Write a file under the name that somebody gave it."""
    try:
        write_new(path, content)
    except OSError as error:
        raise WriteError(f"cannot write {path}: {error.strerror}") from error


def check_trust(source: Path, targets: "Sequence[Target]", trusted: Path | None) -> None:
    """Refuse what a file would call outside this project; where it is trusted, say first what that is."""
    from hotloop.envs.callables import announced

    for line in announced(source, targets, trusted):
        remark(line)


def check_slow_trust(source: Path, slow: "Slow", trusted: Path | None) -> None:
    """The same for what a record says of its slow steps: the target, and who played."""
    from hotloop.core.target import Target
    from hotloop.lab.measure.policy import names_code

    policy = [Target(slow.policy)] if names_code(slow.policy) else []
    check_trust(source, [slow.asked, *policy], trusted)


Parted = tuple[Sequence[str], Sequence[str]]  # Of one kind, and of the other


def part_words(words: Sequence[str] | None, baselines: Sequence[str] | None) -> tuple[list[str], Parted]:
    """Part key=value words from baselines after the first, which are words of their own on a command line."""
    given = list(words or ())
    if not baselines:
        return given, ([], [])
    more = [word for word in given if "=" not in word]
    return [word for word in given if "=" in word], part_commits([*baselines, *more])


def part_commits(words: Sequence[str]) -> Parted:
    """Part baselines that are kept, in files or by name, from commits of the project, which are measured."""
    from hotloop.core.machine import machine
    from hotloop.judge.baselines import is_kept

    here = machine()
    kept = [word for word in words if is_kept(word, here) or not names_commit(word)]
    for word in kept:
        if names_commit(word):
            remark(f"{word} is a saved baseline here and a commit, too: the baseline is taken")
    return kept, [word for word in words if word not in kept]


def names_commit(word: str) -> bool:
    """Whether the repository around this folder has such a commit."""
    return bool(git(Path.cwd(), "rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}"))


def find_baselines(words: Sequence[str]) -> "tuple[Record, ...]":
    """Read what files and names of saved baselines stand for."""
    from hotloop.core.machine import machine
    from hotloop.judge.baselines import find

    if not words:
        return ()
    here = machine()
    return tuple(find(word, here) for word in words)


def check_baseline(name: str | None) -> None:
    """Refuse, before anything is measured, a name that is taken or a place that cannot be written to."""
    if name is not None:
        from hotloop.core.machine import machine
        from hotloop.judge.baselines import check_free

        make_room_for(check_free(name, machine()["fingerprint"]))


def keep_baseline(name: str | None, record: "Record") -> None:
    """Keep a run as this machine's baseline, unless it was broken off or found wrong."""
    from hotloop.judge.baselines import baseline_path

    if name is None:
        return
    if record.partial or ExitCode(record.exit_code) is ExitCode.MISMATCH:
        remark(
            f"not saved as baseline {name}: the run was {'interrupted' if record.partial else 'not equal'}"
        )
        return
    path = baseline_path(name, record.machine["fingerprint"])
    keep_new(path, record.to_json().encode())
    remark(f"saved {path}")


def read_folder(folder: Path) -> "Shelf":
    """The records of a folder, oldest first, and one line for each file that is none."""
    from hotloop.core.record import read
    from hotloop.report.files import SPEEDSCOPE, TRACE
    from hotloop.report.page.shelf import Entry, Shelf
    from hotloop.stats.summary import with_metrics

    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}: --report takes one that holds records")
    entries: list[Entry] = []
    foreign: list[str] = []
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
    from dataclasses import replace

    from hotloop.cli.console import emit, show
    from hotloop.report.facts import left_out
    from hotloop.report.kinds.record import overview
    from hotloop.report.page.shelf import draw_shelf
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


def check_repository() -> None:
    """Refuse to commit where there is nothing to commit to, before anything is measured."""
    if git(Path.cwd(), "rev-parse", "--is-inside-work-tree") != "true":
        raise InputError("--commit needs a git repository around this folder: git init, or leave it out")


def commit(paths: Sequence[Path], message: str) -> None:
    """Commit these files and no other; SetupError with git's last words where it refuses."""
    names = [str(path) for path in paths]
    for words in (["add", "--force", "--", *names], ["commit", "--quiet", "-m", message, "--", *names]):
        done = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split())[-300:]
            raise SetupError(f"{', '.join(names)} saved, but git {words[0]} failed: {said}")
