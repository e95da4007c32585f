"""Cells: a target under an experiment, as plain data that an executor turns into a record.

Another process or another machine can run a cell: the experiment is the name of one of our functions, its
arguments are JSON. An executor yields each record as soon as it is there; a cache keeps them, so that nothing
runs twice.
"""

import json
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from hotloop.core.errors import Code, ExitCode, HotloopError, InputError, Notice, SetupError, notice
from hotloop.core.files import save
from hotloop.core.machine import code, machine
from hotloop.core.process.lifeline import anchored
from hotloop.core.process.supervisor import STEP_S, ExitReport, StandstillLimits, Supervisor
from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record, file_name, read
from hotloop.core.record.metadata import own_commit
from hotloop.core.settings import Target, hash_of, names_code
from hotloop.stats.summary import with_metrics

OURS = "hotloop.lab."  # Experiments are functions of this package: no file decides what else is called
PARTS = 1_000  # Of a cell, as progress counts it
FOLDER = Path("artifacts/sweeps")  # Where the caches of sweeps are by default
WORKER = ("-P", "-m", "hotloop.lab.workers.run", "cell")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One target under one experiment."""

    target: Target
    experiment: str  # `hotloop.lab.module:function`, called with the target, a progress and what is asked
    asked: dict[str, Any] = field(default_factory=dict)  # By name; plain JSON

    @property
    def id(self) -> str:
        """Twelve hex digits that are equal where the cells are."""
        return hash_of("cell", {"cell": self.to_json()})

    @property
    def names_code(self) -> bool:
        """Whether it needs files of the current folder, wherever it runs."""
        target = self.target
        return names_code(
            (target.name, target.phases, *target.time, *target.keys.values(), *self.asked.values())
        )

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Cell":
        plain = json.loads(text)
        return cls(
            target=Target(**plain["target"]), experiment=plain["experiment"], asked=dict(plain["asked"])
        )

    def run(self, progress: Progress = silent) -> Record:
        """Do it, here and now."""
        return function_of(self.experiment)(self.target, progress, **self.asked)


def function_of(name: str) -> Callable[..., Record]:
    """Return the function of the lab that an experiment's name means."""
    place, _, word = name.partition(":")
    if not place.startswith(OURS) or not word:
        raise InputError(f"{name} is no experiment: expected {OURS}module:function")
    found: Callable[..., Record] = getattr(import_module(place), word)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """What became of a cell."""

    cell: Cell
    record: Record | None  # None where the cell cannot be run
    refused: str = ""  # Why not
    code: ExitCode = ExitCode.FINE  # What a refusal says to the shell
    kept: bool = False  # Whether it lay on the shelf already
    tries: int = 1  # How often it was begun: again where the worker it had was lost


class Executor(Protocol):
    """What runs cells, here or elsewhere."""

    def run(self, cells: Sequence[Cell], progress: Progress) -> Iterator[CellResult]:
        """Each cell once it is done, in whichever order; closing the iterator ends what is under way."""


class LocalExecutor:
    """Runs cells in this process, one after another, so that each has the machine to itself."""

    def run(self, cells: Sequence[Cell], progress: Progress) -> Iterator[CellResult]:
        for index, cell in enumerate(cells):
            yield try_cell(cell, offset_progress(progress, index, len(cells)))


def try_cell(cell: Cell, progress: Progress = silent) -> CellResult:
    """Run a cell; if its target refuses it, the result says why, and the others go on."""
    try:
        return CellResult(cell=cell, record=cell.run(progress))
    except HotloopError as error:
        return CellResult(cell=cell, record=None, refused=str(error), code=error.exit_code)
    except MemoryError:
        what = "it does not fit into this machine's memory"
        return CellResult(cell=cell, record=None, refused=what, code=ExitCode.FAULT)


def offset_progress(progress: Progress, index: int, count: int) -> Progress:
    """Return the progress of one cell as a part of that of all."""

    def moved(at: int, total: int) -> None:
        progress(index * PARTS + min(PARTS, PARTS * at // max(total, 1)), count * PARTS)

    return moved


class ProcessExecutor:
    """Runs cells one after another, each in a process of its own that may die without harm to the others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, cells: Sequence[Cell], progress: Progress) -> Iterator[CellResult]:
        for index, cell in enumerate(cells):
            moved = offset_progress(progress, index, len(cells))
            with tempfile.TemporaryDirectory(prefix="hotloop-") as place:
                done = self.one(cell, Path(place), moved)
            moved(1, 1)
            yield done

    def one(self, cell: Cell, place: Path, progress: Progress) -> CellResult:
        heard, result = ProgressListener(progress), place / "done.json"
        words = [*WORKER, cell.to_json(), str(result), str(self.folder)]
        ended = Supervisor(cell.target.name, words, StandstillLimits(step_s=STEP_S), heard).run()
        if not result.exists():
            if ended.interrupted:
                raise KeyboardInterrupt
            return died(cell, ended, heard.printed_last)
        plain = json.loads(result.read_text(encoding="utf-8"))
        if plain["refused"]:
            return refused(cell, plain["refused"], ExitCode(plain["code"]))
        done = CellResult(cell=cell, record=read(place / "record.json"))
        if done.record is not None and done.record.partial and not ended.interrupted:
            return refused(cell, f"{cell.target.name} interrupted itself", ExitCode.USAGE)
        return done


class ProgressListener:
    """Moves the progress by what a process says of it, and keeps the last line of what is printed there."""

    def __init__(self, progress: Progress) -> None:
        self._progress, self.printed_last = progress, ""

    def said(self, stream: str, text: str) -> None:
        """Nothing is said but how far it is."""

    def printed(self, text: str) -> None:
        self.printed_last = next((line for line in reversed(text.splitlines()) if line.strip()), "")

    def moved(self, label: str, done: int, total: int) -> None:
        self._progress(done, total)


def died(cell: Cell, ended: ExitReport, last: str) -> CellResult:
    """Return the result of a cell whose process died: user code ended it, or a fault of ours."""
    why = ended.why or "it ended without a word"
    if cell.target.is_foreign:
        return refused(cell, why, ExitCode.USAGE)
    return refused(cell, f"{why}: {last}".removesuffix(": "), ExitCode.FAULT)


def refused(cell: Cell, why: str, code: ExitCode) -> CellResult:
    """Return the result of a cell that gave no record, with the reason in one line."""
    line = "".join(each if each.isprintable() else "?" for each in " ".join(why.split()))
    return CellResult(cell=cell, record=None, refused=line, code=code)


class CellCache:
    """A folder of cells' records, by the cell's id; what another machine or commit left there is not ours."""

    def __init__(self, folder: Path, machines: Collection[str] | None = None) -> None:
        self.folder = folder
        self._place = anchored(folder)
        self.fault: str | None = None  # Why the last record that was not kept was not
        self._machines = machines or {machine()["fingerprint"]}

    def find(self, cell: Cell) -> Record | None:
        """Return the record of a cell, as this machine and this code made it; None if there is none."""
        for path in sorted(self._place.glob(f"{cell.id}*.json"), reverse=True):
            try:
                record = with_metrics(read(path))
            except InputError:  # what is damaged is run again
                continue
            same = own_commit(record.code)[0] == own_commit(code(None, target=record.target.name))[0]
            if same and record.machine["fingerprint"] in self._machines and not record.partial:
                return record
        return None

    def keep(self, cell: Cell, record: Record) -> None:
        """Write a record; where the disk does not take it the sweep goes on, and says so at its end."""
        try:
            save(self._place / f"{cell.id}.json", record.to_json())
        except SetupError as error:
            self.fault = str(error)


def shelf_of(
    root: Path, kind: str, cells: Sequence[Cell], *, resume: bool, machines: Collection[str] | None = None
) -> CellCache:
    """Return the cache of a sweep: the latest one of the same cells if it is resumed, else a new one.

    Records of the machines with these fingerprints count, by default of this one.
    """
    whole = hash_of(kind, {"cells": sorted(cell.id for cell in cells)})
    name = file_name(f"{kind}-{cells[0].target.name}-{whole}")
    taken = sorted(root.glob(f"{name}*"), key=lambda path: (len(path.name), path.name))
    if resume and not taken:
        raise InputError(
            f"there is nothing to resume in {root}: no {kind} of these cells; leave out --resume"
        )
    if resume:
        return CellCache(taken[-1], machines)
    return CellCache(root / (f"{name}-{len(taken) + 1}" if taken else name), machines)


@dataclass(slots=True, kw_only=True)
class Swept:
    """What there is of a sweep."""

    done: list[CellResult] = field(default_factory=list)
    interrupted: bool = False

    @property
    def records(self) -> list[tuple[Cell, Record]]:
        return [(each.cell, each.record) for each in self.done if each.record is not None]

    @property
    def refused(self) -> list[CellResult]:
        return [each for each in self.done if each.record is None]


def run_again(done: Sequence[CellResult]) -> tuple[Notice, ...]:
    """Return the notice of cells that ran again because their worker was lost."""
    again = sum(each.tries > 1 for each in done)
    return (notice(Code.RUN_AGAIN, cells=again),) if again else ()


def sweep(
    cells: Sequence[Cell],
    executor: Executor,
    shelf: CellCache | None = None,
    progress: Progress = silent,
    tell: Callable[[CellResult], None] = lambda _: None,
    over: Callable[[], bool] = lambda: False,
) -> Swept:
    """Run the cells that the shelf has no record of; each record is kept and told as it comes.

    Ctrl-C ends it, and so does a time that is over; both leave what is done.
    """
    swept = Swept()
    found = {cell.id: shelf.find(cell) if shelf else None for cell in cells}
    for cell in cells:
        record = found[cell.id]
        if record is not None:
            swept.done.append(CellResult(cell=cell, record=record, kept=True))
            tell(swept.done[-1])
    rest = [cell for cell in cells if found[cell.id] is None]
    try:
        for each in executor.run(rest, progress):
            if each.record is not None and each.record.partial:
                swept.interrupted = True
                break
            if each.record is not None and shelf is not None:
                shelf.keep(each.cell, each.record)
            swept.done.append(each)
            tell(each)
            if over():
                break
    except KeyboardInterrupt:
        swept.interrupted = True
    return swept
