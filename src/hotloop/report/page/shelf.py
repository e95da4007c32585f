"""What a page is about: records with the files they came from, and what was left out."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from hotloop.core.errors import InputError
from hotloop.core.project import Budget
from hotloop.core.record import (
    ACCEPTED_SUFFIX,
    FRAMES_SUFFIX,
    Accepted,
    Frames,
    Record,
    read,
    read_beside,
    read_frames,
)
from hotloop.report.files import SPEEDSCOPE, TRACE
from hotloop.stats.summary import with_metrics

# Names of files that training keeps beside its records.
NO_RECORDS = ("settings.json", "trace.json", "state.json")

CELLS = "/artifacts/sweeps/"  # Where sweeps keep each of their measurements, to go on after a break
DIAGNOSIS = "diagnosis-"  # What the names of diagnoses begin with, which are about records and lie among them
Drawn = TypeVar("Drawn")  # What a shelf is made into: a page, a text, a table


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A record and its file."""

    record: Record
    path: Path | None = None  # None if it was read out of a file of another tool's


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The records, oldest first, and all that was said beside them."""

    entries: tuple[Entry, ...]
    left_out: tuple[str, ...] = ()  # One line a file that is no record
    replays: tuple[Frames, ...] = ()  # What tapes and bundles look like, if they were drawn
    budgets: tuple[Budget, ...] = ()  # Of the project that the page is about, in the order of its file
    # Run id to why the level since it is the right one.
    accepted: Mapping[str, str] = field(default_factory=dict)

    @property
    def records(self) -> list[Record]:
        return [entry.record for entry in self.entries]


def read_shelf(folders: list[Path]) -> Shelf:
    """Return all records below some folders; what is none is named and left out."""
    entries: list[Entry] = []
    left_out: list[str] = []
    replays: list[Frames] = []
    accepted: dict[str, str] = {}
    for path in record_files(folders):
        try:
            if path.name.endswith(FRAMES_SUFFIX):
                replays.append(read_frames(path))
            elif path.name.endswith(ACCEPTED_SUFFIX):
                note = read_beside(path, Accepted, "accepted change")
                accepted[note.run_id] = note.why
            else:
                entries.append(Entry(record=with_metrics(read(path)), path=path))
        except InputError as error:
            left_out.append(str(error))
    entries.sort(key=lambda entry: entry.record.created)
    return Shelf(entries=tuple(entries), left_out=tuple(left_out), replays=tuple(replays), accepted=accepted)


def draw_shelf(shelf: Shelf, draw: Callable[[Shelf], Drawn]) -> tuple[Drawn, Shelf]:
    """Draw a shelf; return what was drawn, and the shelf without the records that cannot be.

    A file of the right form may still say what cannot be files. It is named, and costs no other record.
    """
    try:
        return draw(shelf), shelf
    except Exception:
        # Why each record cannot be drawn, not even alone; and whether a shelf can be drawn at all.
        faults = [fault_of(replace(shelf, entries=(entry,)), draw) for entry in shelf.entries]
        if not any(faults) or fault_of(replace(shelf, entries=()), draw):
            raise  # it is not the records
    left_out, entries = list(shelf.left_out), list[Entry]()
    for entry, fault in zip(shelf.entries, faults, strict=True):
        if fault:
            left_out.append(f"{entry.path or entry.record.run_id}: cannot be shown: {fault}")
        else:
            entries.append(entry)
    sound = replace(shelf, entries=tuple(entries), left_out=tuple(left_out))
    return draw(sound), sound


def fault_of(shelf: Shelf, draw: Callable[[Shelf], object]) -> str | None:
    """Return in a line why a shelf cannot be drawn; None where it can."""
    try:
        draw(shelf)
    except Exception as error:  # noqa: BLE001 - whatever a record of the right form brings about
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    return None


def record_files(folders: list[Path]) -> Iterator[Path]:
    """Yield JSON files that may be records, each once, in a fixed order."""
    found = set[Path]()
    for folder in folders:
        # A sweep's measurements, which its record sums up, are shown only if they are asked for.
        is_of_cells = CELLS in f"{folder.absolute().as_posix()}/"
        paths = folder.rglob("*.json")
        found.update(path for path in paths if is_of_cells or CELLS not in path.absolute().as_posix())
    for path in sorted(found):
        ours = path.name.endswith((SPEEDSCOPE, TRACE)) or path.name.startswith(DIAGNOSIS)
        if not ours and path.name not in NO_RECORDS and path.is_file():
            yield path
