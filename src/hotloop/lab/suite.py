"""Suites: a list of targets and what to do with each, run as cells, every item in a process of its own.

An item that fails, or dies, is told of and costs no other one. What is done lies on a shelf, so that a suite
goes on after Ctrl-C where it was.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from hotloop.core import project
from hotloop.core.clock import utc_now
from hotloop.core.errors import ExitCode, unknown
from hotloop.core.progress import Progress, silent
from hotloop.core.project import Item, Suite
from hotloop.core.record import Record, read
from hotloop.core.record.suite import Ran, SuiteRan
from hotloop.core.target import Target
from hotloop.lab import bench as benching
from hotloop.lab.cells import Cell, Done, Swept, within
from hotloop.lab.compare import compare as comparing
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.rounds import Rounds
from hotloop.lab.profile.profile import Asked, look

SHIPPED = Path(__file__).with_name("suites.toml")

WORKER = ("-P", "-m", "hotloop.lab.workers.cell")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A suite, and where its targets are opened from."""

    suite: Suite
    folder: Path


def find(name: str, here: Path | None = None) -> Found:
    """A suite of the project around a folder, or one of those that ship; InputError with the nearest name."""
    folder = (here or Path.cwd()).resolve()
    path = project.find_file(folder)
    own = project.read(path) if path else None
    shipped = project.read(SHIPPED)
    if own and name in own.suites:
        return Found(suite=own.suites[name], folder=own.folder)
    if name in shipped.suites:
        return Found(suite=shipped.suites[name], folder=folder)
    known = [*(own.suites if own else ()), *shipped.suites]
    raise unknown("suite", name, known, f"there are {', '.join(known)}; {project.NAME} may have others")


def bench(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """How fast it is."""
    return benching.bench(target, Rounds(**asked), progress)


def instructions(target: Target, progress: Progress = silent, **asked: Any) -> Record:
    """How fast it is, and the instructions of an env-step."""
    return benching.bench(target, Rounds(**asked), progress, extras=benching.Extras(instructions=True))


def profile(target: Target, progress: Progress = silent) -> Record:
    """Where its time goes."""
    return look(Asked(target=target), progress=progress)


def compare(target: Target, progress: Progress = silent, *, against: str) -> Record:
    """Whether it is faster than another, which is side A."""
    sides = [TargetContender(each) for each in (Target.parse(against), target)]
    return comparing.compare(sides[0], sides[1], comparing.Asked(), progress)


def cell_of(item: Item, rounds: Rounds) -> Cell:
    """What is to be done, as another process can do it."""
    asked: dict[str, Any] = asdict(rounds) if item.do in ("bench", "instructions") else {}
    if item.against is not None:
        asked = {"against": item.against.words}
    return Cell(target=item.target, experiment=f"{__name__}:{item.do}", asked=asked)


def told(found: Found, cells: Sequence[Cell], swept: Swept) -> SuiteRan:
    """What the items came to, in the order of the suite."""
    done = {each.cell.id: each for each in swept.done}
    items = [
        ran(item, done[cell.id])
        for item, cell in zip(found.suite.items, cells, strict=True)
        if cell.id in done
    ]
    return SuiteRan(
        name=found.suite.name,
        created=utc_now().isoformat(timespec="seconds"),
        items=tuple(items),
        asked=len(cells),
        interrupted=swept.interrupted,
    )


def ran(item: Item, done: Done) -> Ran:
    record = done.record
    return Ran(
        do=item.do,
        target=item.target.words,
        against=item.against.words if item.against else None,
        record=record,
        refused=done.refused,
        code=done.code if record is None else ExitCode(record.exit_code),
        kept=done.kept,
    )


class Apart:
    """Runs cells one after another, each in a process of its own that may die without harm to the others."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, cells: Sequence[Cell], progress: Progress) -> Iterator[Done]:
        for index, cell in enumerate(cells):
            moved = within(progress, index, len(cells))
            with tempfile.TemporaryDirectory(prefix="hotloop-") as place:
                done = self.one(cell, Path(place), moved)
            moved(1, 1)
            yield done

    def one(self, cell: Cell, place: Path, progress: Progress) -> Done:
        result, said = place / "done.json", place / "said.txt"
        with said.open("w") as heard:
            worker = subprocess.Popen(
                [sys.executable, *WORKER, cell.to_json(), str(result)],
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=heard,
                text=True,
                start_new_session=True,  # Ctrl-C is for us to hear, and the item's end is then ours to see to
            )
            try:
                code = watched(worker, progress)
            finally:
                end(worker)
        return read_done(cell, result) if result.exists() else died(cell, code, said.read_text())


def watched(worker: "subprocess.Popen[str]", progress: Progress) -> int:
    """Move the progress by what a worker says of it, until it ends; its exit code."""
    lines: IO[str] | None = worker.stdout
    assert lines is not None
    for line in lines:
        at, _, total = line.partition(" ")
        progress(int(at), int(total))
    return worker.wait()


def end(worker: "subprocess.Popen[str]") -> None:
    """End a worker and all it has started, where it has not ended."""
    if worker.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    if worker.stdout is not None:
        worker.stdout.close()


def read_done(cell: Cell, path: Path) -> Done:
    plain = json.loads(path.read_text(encoding="utf-8"))
    if plain["refused"]:
        return Done(cell=cell, record=None, refused=plain["refused"], code=ExitCode(plain["code"]))
    return Done(cell=cell, record=read(path.with_name("record.json")))


def died(cell: Cell, code: int, said: str) -> Done:
    """An item that did not live to say what became of it."""
    last = next((line for line in reversed(said.splitlines()) if line.strip()), "")
    how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
    return Done(cell=cell, record=None, refused=f"{how}: {last}".removesuffix(": "), code=ExitCode.FAULT)
