"""Suites: a list of targets and what to do with each, run as cells, every item in a process of its own.

An item that fails, or dies, is told of and costs no other one. What is done lies on a shelf, so that a suite
goes on after Ctrl-C where it was.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hotloop.core import project
from hotloop.core.clock import utc_now
from hotloop.core.errors import ExitCode, unknown
from hotloop.core.process.supervisor import STEP_S, ExitReport, Limits, Supervisor
from hotloop.core.progress import Progress, silent
from hotloop.core.project import Item, Suite
from hotloop.core.record import Ran, Record, SuiteRan, read
from hotloop.core.target import Target
from hotloop.lab import bench as benching
from hotloop.lab.cells import Cell, CellResult, Swept, offset_progress
from hotloop.lab.compare import compare as comparing
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.profile.profile import Asked, look
from hotloop.lab.scale import scale as scaling
from hotloop.options.scale import ScaleOptions

SHIPPED = Path(__file__).with_name("suites.toml")

WORKER = ("-P", "-m", "hotloop.lab.workers.cell")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedSuite:
    """A suite, and where its targets are opened from."""

    suite: Suite
    folder: Path


def find(name: str, here: Path | None = None) -> LocatedSuite:
    """A suite of the project around a folder, or one of those that ship; InputError with the nearest name."""
    folder = (here or Path.cwd()).resolve()
    path = project.find_file(folder)
    own = project.read(path) if path else None
    shipped = project.read(SHIPPED)
    if own and name in own.suites:
        return LocatedSuite(suite=own.suites[name], folder=own.folder)
    if name in shipped.suites:
        return LocatedSuite(suite=shipped.suites[name], folder=folder)
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


def scale(target: Target, progress: Progress = silent) -> Record:
    """How its cost grows along the keys that have several values."""
    return scaling.scale(scaling.read(target), ScaleOptions(target=target.name), progress)


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


def told(found: LocatedSuite, cells: Sequence[Cell], swept: Swept) -> SuiteRan:
    """What the items came to, in the order of the suite."""
    done = {each.cell.id: each for each in swept.done}
    items = []
    for item, cell in zip(found.suite.items, cells, strict=True):
        if cell.id not in done:
            continue
        result = done[cell.id]
        ran = Ran(
            do=item.do,
            target=item.target.words,
            against=item.against.words if item.against else None,
            record=result.record,
            refused=result.refused,
            code=result.code if result.record is None else ExitCode(result.record.exit_code),
            kept=result.kept,
        )
        items.append(ran)
    return SuiteRan(
        name=found.suite.name,
        created=utc_now().isoformat(timespec="seconds"),
        items=tuple(items),
        asked=len(cells),
        interrupted=swept.interrupted,
    )


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
        ended = Supervisor(cell.target.name, words, Limits(step_s=STEP_S), heard).run()
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
    """An item that did not live to say what became of it: somebody's code ended it, or a fault of ours."""
    why = ended.why or "it ended without a word"
    if cell.target.is_foreign:
        return refused(cell, why, ExitCode.USAGE)
    return refused(cell, f"{why}: {last}".removesuffix(": "), ExitCode.FAULT)


def refused(cell: Cell, why: str, code: ExitCode) -> CellResult:
    line = "".join(each if each.isprintable() else "?" for each in " ".join(why.split()))
    return CellResult(cell=cell, record=None, refused=line, code=code)
