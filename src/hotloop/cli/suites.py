"""Running a suite before a person's eyes: one bar, each item as it is done, and one report of all."""

from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli import sweeps
from hotloop.cli.console import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.results import make_room, names_file, record_path
from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.files import save
from hotloop.options.bench import BenchOptions

if TYPE_CHECKING:
    from hotloop.core.record import SuiteRan
    from hotloop.lab.measure.loop import Rounds
    from hotloop.lab.sweep.cells import CellResult


def run(name: str, rounds: "Rounds", options: BenchOptions) -> int:
    """Do all that a suite asks for; returns the exit code of the gravest item."""
    from hotloop.lab.sweep import experiments
    from hotloop.lab.sweep.cells import FOLDER, ProcessExecutor, shelf_of, sweep

    output = options.output
    if names_file(output):
        raise InputError(f"--output {output} is for one record: name a folder for those of a suite")
    found = experiments.find(name)
    cells = [experiments.cell_of(item, rounds) for item in found.suite.items]
    make_room(output)

    def tell(done: "CellResult") -> None:
        if done.record is not None and not done.kept:
            save(record_path(output, done.record), done.record.to_json())
        elif done.record is None:
            remark(f"failed: {done.cell.target.words}: {done.refused}")

    apart = ProcessExecutor(found.folder)
    with sweeps.executor(options.on, cells, apart, timed=True) as (executor, machines):
        shelf = shelf_of(FOLDER, f"suite-{name}", cells, resume=options.resume, machines=machines)
        with bar(f"suite {name}") as progress, stdout_kept_clean():
            swept = sweep(cells, executor, shelf, progress, tell)
    return report(experiments.told(found, cells, swept), output, as_json=options.json)


def report(ran: "SuiteRan", output: Path, *, as_json: bool) -> int:
    """Keep the report of a suite as JSON and Markdown, and show it."""
    from hotloop.report import markdown
    from hotloop.report.kinds.sweep import suite as sections
    from hotloop.report.terminal import draw

    view = sections(ran)
    page = f"# Suite {ran.name}, {ran.created}\n\n{markdown.draw(view)}"
    path = output / f"suite-{ran.name}-{utc_now():%Y%m%d-%H%M}.json"
    remark(f"saved {save(path, ran.to_json(), ('.md', page))}, and the same as .md")
    if as_json:
        emit(ran.to_json())
    else:
        show(draw(view))
    return ran.code
