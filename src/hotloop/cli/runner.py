"""What bench and profile have in common: targets measured one after another, each record kept and shown."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.child import settled
from hotloop.cli.console import bar, emit, remark, show, stdout_kept_clean
from hotloop.cli.results import record_path
from hotloop.core.errors import ExitCode, SetupError, worst
from hotloop.core.files import save
from hotloop.core.target import Target

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hotloop.core.progress import Progress
    from hotloop.core.record import Record
    from hotloop.lab.measure.target import Opener


Experiment = Callable[[Target, "Progress"], "Record"]


def check(targets: Sequence[Target], policy: str, opener: "Opener", **looked_into: bool) -> None:
    """Refuse what cannot be built, played, looked into or counted before the first target is measured."""
    from hotloop.lab.measure import target as measured

    with stdout_kept_clean():
        measured.check(targets, policy, opener=opener, **looked_into)


def measure(
    targets: Sequence[Target], experiment: Experiment, keep: "Callable[[Record], Path]"
) -> "list[Record]":
    """Run an experiment on each target and keep its record; an interrupted one is the last."""
    records: list[Record] = []
    for target in targets:
        with bar(target.name) as progress, stdout_kept_clean():
            records.append(experiment(target, progress))
        records[-1] = kept(records[-1], keep)
        if records[-1].partial:
            break
    return records


def kept(record: "Record", keep: "Callable[[Record], Path]") -> "Record":
    """Keep a record and say where; one that the disk does not take is still told, with the code of that.

    What somebody's code did to the process is undone first, and said in it.
    """
    from hotloop.judge.judge import unsaved

    record = settled(record)
    try:
        remark(f"saved {keep(record)}")
    except SetupError as error:
        remark(f"not saved: {error}")
        return unsaved(record)
    return record


def kept_in(output: Path, record: "Record", *beside: tuple[str, str | bytes]) -> "Record":
    """Keep a record as the file, or in the folder, that was asked for, and what goes beside it."""
    return kept(record, lambda each: save(record_path(output, each), each.to_json(), *beside))


def tell(
    records: "Sequence[Record]",
    view: "RenderableType",
    *,
    as_json: bool,
    as_list: bool,
    brief: str | None = None,
) -> int:
    """Print the records, or draw them; returns the exit code of the gravest.

    `brief` stands in the place of their notices.
    """
    from hotloop.report.facts import notices
    from hotloop.report.terminal import draw

    if as_json:
        texts = [record.to_json() for record in records]
        emit(f"[{','.join(texts)}]\n" if as_list else texts[0])
    else:
        show(view)
    remark(draw(notices(records)) if brief is None else brief)
    return worst(ExitCode(record.exit_code) for record in records)


def tell_one(record: "Record", *, as_json: bool) -> int:
    """Print a record, or draw it as its kind is drawn; returns its exit code."""
    from hotloop.report.facts import notices
    from hotloop.report.kinds.record import record_sections
    from hotloop.report.terminal import draw

    if as_json:
        emit(record.to_json())
    else:
        show(draw(record_sections(record)))
    remark(draw(notices([record])))
    return record.exit_code
