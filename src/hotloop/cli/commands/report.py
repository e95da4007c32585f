"""hotloop report: every record of a folder as one page, or in the format of another tool."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.console import bar, emit, remark
from hotloop.core.errors import ExitCode, InputError, WriteError, unknown
from hotloop.core.files import save
from hotloop.options.report import FORMATS, ReportOptions
from hotloop.options.shared import PROFILES, RECORDS

if TYPE_CHECKING:
    from hotloop.core.record import Record
    from hotloop.report.page.shelf import Shelf

# Where commands keep records unless somebody says otherwise.
PLACES = (RECORDS, PROFILES, Path("artifacts/gate"))

RUNS = Path("train_dir")

PAGE = Path("report.html")


def report(options: ReportOptions) -> int:
    """Write or serve the page, or print the records in another format."""
    folder, results, name = options.folder, options.read or [], options.format
    if name not in FORMATS:
        raise unknown("format", name, FORMATS, f"expected one of {', '.join(FORMATS)}")
    if options.serve and folder is None:
        return served([*PLACES], options)
    folders = places(folder)
    if options.accept is not None and options.why is not None:
        return accepted(folders, options.accept, options.why)
    if options.serve:
        return served(folders, options)
    from hotloop.report.page.shelf import draw_shelf

    shelf = shelf_of(folders, results)
    if not shelf.entries:
        raise InputError(f"{without_records(folders, shelf)}: hotloop bench TARGET makes one")
    chosen, title = "json" if options.json else name, title_of(folder)
    text, shown = draw_shelf(shelf, lambda each: drawn(each, chosen, title))
    for reason in shown.left_out:
        remark(f"left out: {reason}")
    return kept(text, options.output, is_page=chosen == "html")


def places(folder: Path | None) -> list[Path]:
    """The folders that are meant; InputError where there are none."""
    found = [folder] if folder else [each for each in PLACES if each.is_dir()]
    missing = [each for each in found if not each.is_dir()]
    if missing or not found:
        named = (
            f"there is no folder {missing[0]}" if missing else f"there is neither {PLACES[0]} nor {PLACES[1]}"
        )
        raise InputError(f"{named}: give one that holds records; hotloop bench TARGET makes one")
    return found


def title_of(folder: Path | None) -> str:
    """Of the folder that was named, or else of the project."""
    return f"Hotloop: {(folder or Path.cwd()).resolve().name}"


def shelf_of(folders: list[Path], results: list[Path]) -> "Shelf":
    """All records, and those that other tools' results make."""
    from dataclasses import replace

    from hotloop.report.formats import read_results
    from hotloop.report.page.shelf import Entry, read_shelf

    with bar("reading records"):
        shelf = with_budgets(read_shelf(folders))
    imported = [Entry(record=record) for path in results for record in read_results(path)]
    entries = sorted((*shelf.entries, *imported), key=lambda entry: entry.record.created)
    return replace(shelf, entries=tuple(entries))


def without_records(folders: list[Path], shelf: "Shelf") -> str:
    """Folders that hold no record."""
    left_out = f" ({len(shelf.left_out)} other files)" if shelf.left_out else ""
    return f"{' and '.join(map(str, folders))} holds no record{left_out}"


def with_budgets(shelf: "Shelf") -> "Shelf":
    """The budgets of the project around this folder, where it has some; a file that does not fit is named."""
    from dataclasses import replace

    from hotloop.core.project import find_file, read

    path = find_file()
    if path is None:
        return shelf
    try:
        return replace(shelf, budgets=tuple(read(path).budgets.values()))
    except InputError as error:
        return replace(shelf, left_out=(*shelf.left_out, str(error)))


def drawn(shelf: "Shelf", name: str, title: str) -> str:
    if name == "html":
        from hotloop.report.page.page import draw_page

        return draw_page(shelf, title)
    if name == "json":
        return f"[{','.join(record.to_json() for record in shelf.records)}]\n"
    if name == "markdown":
        return summarised(shelf.records)
    from hotloop.report.formats import EXPORTS

    return EXPORTS[name](shelf.records)


def summarised(records: "list[Record]") -> str:
    """What a pull request shows."""
    from hotloop.report.kinds.record import overview
    from hotloop.report.markdown import draw

    return draw(overview([record for record in records if record.metrics or record.comparisons]))


def kept(text: str, output: Path | None, *, is_page: bool) -> int:
    """Write to a file where one is named, and pages always; print the rest."""
    if output is None and not is_page:
        emit(text)
        return ExitCode.FINE
    if output is not None and output.is_dir():
        raise InputError(f"--output {output} is a folder: name a file in it")
    place = output or PAGE
    if is_page and is_page_of_ours(place):
        write_over(place, text)
    elif place.exists():
        raise InputError(f"{place} is there and no page of hotloop report: name another file with --output")
    else:
        place = save(place, text)
    remark(f"saved {place}")
    return ExitCode.FINE


def is_page_of_ours(path: Path) -> bool:
    """Return whether a file is a page that this command wrote."""
    from hotloop.report.page.page import HEAD

    try:
        with path.open("rb") as file:
            return file.read(len(HEAD.encode())) == HEAD.encode()
    except OSError:
        return False


def write_over(path: Path, text: str) -> None:
    """Replace a page at once, so that a reader never meets half of one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise WriteError(f"cannot write {path}: {error.strerror}") from error


def accepted(folders: list[Path], run: str, why: str) -> int:
    """Write down beside a record that its level is the right one."""
    from hotloop.core.record import accept
    from hotloop.report.page.shelf import read_shelf

    entries = {entry.record.run_id: entry for entry in read_shelf(folders).entries}
    if run not in entries:
        raise unknown("run", run, list(entries), "hotloop report --format csv lists them")
    path = entries[run].path
    assert path
    remark(f"saved {accept(path.parent, run, why)}")
    return ExitCode.FINE


def served(folders: list[Path], options: ReportOptions) -> int:
    """Serve until somebody ends it: the first record, and the folder it is in, may be still to come."""
    from hotloop.report.page.serve import Server, Site

    site = Site(folders, RUNS, title_of(options.folder), lambda: shelf_of(folders, options.read or []))
    with Server(options.host, options.port, site) as server:
        emit(f"{server.address}\n")
        remark("Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            site.over.set()
    return ExitCode.FINE
