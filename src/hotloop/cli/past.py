"""Records of earlier runs: the baselines of a run, and a folder of them as one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.output import remark
from hotloop.cli.place import keep_new, make_room_for
from hotloop.core.errors import ExitCode, InputError

if TYPE_CHECKING:
    from hotloop.core.record import Record


VALIDATION = "validate"
"""The kind of records that hold no speed."""


def part_words(words: Sequence[str] | None, baselines: Sequence[str] | None) -> tuple[list[str], list[str]]:
    """Part key=value words from baselines after the first, which are words of their own on a command line."""
    given = list(words or ())
    if not baselines:
        return given, []
    return [word for word in given if "=" in word], [*baselines, *(word for word in given if "=" not in word)]


def find_baselines(words: Sequence[str]) -> "tuple[Record, ...]":
    """Read what files and names of saved baselines stand for."""
    from hotloop.core.machine import machine
    from hotloop.lab.baselines import find

    here = machine() if words else {}
    return tuple(find(word, here) for word in words)


def check_baseline(name: str | None) -> None:
    """Refuse, before anything is measured, a name that is taken or a place that cannot be written to."""
    if name is not None:
        from hotloop.core.machine import machine
        from hotloop.lab.baselines import check_free

        make_room_for(check_free(name, machine()["fingerprint"]))


def keep_baseline(name: str | None, record: "Record") -> None:
    """Keep a run as this machine's baseline, unless it was broken off or found wrong."""
    from hotloop.lab.baselines import baseline_path

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


def read_folder(folder: Path) -> "tuple[list[Record], list[str]]":
    """The records of a folder, oldest first, and one line for each file that is none."""
    from hotloop.core.record import read
    from hotloop.stats.metrics import with_metrics

    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}: --report takes one that holds records")
    records: list[Record] = []
    foreign: list[str] = []
    for path in sorted(folder.glob("*.json")):
        try:
            records.append(with_metrics(read(path)))
        except InputError as error:
            foreign.append(str(error))
    if not records:
        left_out = f" ({len(foreign)} other files)" if foreign else ""
        raise InputError(
            f"{folder} holds no record{left_out}: hotloop bench TARGET --output {folder} makes one"
        )
    return sorted(records, key=lambda record: record.created), foreign


def show_folder(folder: Path, *, as_json: bool) -> int:
    """Print or draw all records of a folder; what is no record is named and left out."""
    from hotloop.cli.output import emit, show
    from hotloop.report.sections.notices import left_out
    from hotloop.report.sections.overview import overview
    from hotloop.report.terminal import draw

    found, foreign = read_folder(folder)
    records = [record for record in found if record.kind != VALIDATION]
    if len(records) < len(found):
        remark(
            f"left out {len(found) - len(records)} validations: hotloop validate TARGET --rollout reads them"
        )
    if as_json:
        emit(f"[{','.join(record.to_json() for record in records)}]\n")
    elif records:
        show(draw(overview(records)))
    if foreign:
        remark(draw(left_out(foreign)))
    return ExitCode.FINE
