"""hotloop report: every record of a folder as one page, or in the format of another tool."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hotloop.cli.main import bar, emit, remark
from hotloop.core.errors import ExitCode, InputError, WriteError, unknown
from hotloop.core.files import save
from hotloop.options.option import PROFILES, RECORDS
from hotloop.options.report import FORMATS, ReportOptions

if TYPE_CHECKING:
    from hotloop.report.files import Shelf

# Where commands keep records by default.
PLACES = (RECORDS, PROFILES, Path("artifacts/gate"))

RUNS = Path("train_dir")

PAGE = Path("report.html")


def report(options: ReportOptions) -> int:
    """Write or serve the page, print records in another format, or accept a level; return the exit code."""
    folder, name = options.folder, options.format
    if name not in FORMATS:
        raise unknown("format", name, FORMATS, f"expected one of {', '.join(FORMATS)}")
    folders = places(folder) if folder or not options.serve else [*PLACES]
    if options.accept is not None and options.why is not None and (folder or not options.serve):
        return accept_level(folders, options.accept, options.why)
    title = f"Hotloop: {(folder or Path.cwd()).resolve().name}"
    if options.serve:
        return serve(folders, title, options)
    from hotloop.report.files import draw_shelf

    shelf = shelf_of(folders, options.read or [])
    if not shelf.entries:
        left_out = f" ({len(shelf.left_out)} other files)" if shelf.left_out else ""
        none = f"{' and '.join(map(str, folders))} holds no record{left_out}"
        raise InputError(f"{none}: hotloop bench TARGET makes one")
    chosen = "json" if options.json else name
    text, shown = draw_shelf(shelf, lambda each: draw_as(each, chosen, title))
    for reason in shown.left_out:
        remark(f"left out: {reason}")
    return write(text, options.output, is_page=chosen == "html")


def places(folder: Path | None) -> list[Path]:
    """Return the folders that are meant; InputError where there are none."""
    found = [folder] if folder else [each for each in PLACES if each.is_dir()]
    missing = [each for each in found if not each.is_dir()]
    if missing or not found:
        named = (
            f"there is no folder {missing[0]}" if missing else f"there is neither {PLACES[0]} nor {PLACES[1]}"
        )
        raise InputError(f"{named}: give one that holds records; hotloop bench TARGET makes one")
    return found


def shelf_of(folders: list[Path], results: list[Path]) -> "Shelf":
    """Return all records, those of other tools' results, and the budgets of the project around here."""
    from hotloop.core.project import find_file, read
    from hotloop.report.files import Entry, read_shelf
    from hotloop.report.formats import read_results

    with bar("reading records"):
        shelf = read_shelf(folders)
        if project := find_file():
            try:
                shelf = replace(shelf, budgets=tuple(read(project).budgets.values()))
            except InputError as error:
                shelf = replace(shelf, left_out=(*shelf.left_out, str(error)))
    imported = [Entry(record=record) for path in results for record in read_results(path)]
    entries = sorted((*shelf.entries, *imported), key=lambda entry: entry.record.created)
    return replace(shelf, entries=tuple(entries))


def draw_as(shelf: "Shelf", name: str, title: str) -> str:
    """Return a shelf as a page, JSON, Markdown for a pull request, or in the format of another tool."""
    if name == "html":
        from hotloop.report.page.page import draw_page

        return draw_page(shelf, title)
    if name == "json":
        return f"[{','.join(record.to_json() for record in shelf.records)}]\n"
    if name == "markdown":
        from hotloop.report.kinds.record import overview
        from hotloop.report.markdown import draw

        return draw(overview([each for each in shelf.records if each.metrics or each.comparisons]))
    from hotloop.report.formats import EXPORTS

    return EXPORTS[name](shelf.records)


def write(text: str, output: Path | None, *, is_page: bool) -> int:
    """Write to a file where one is named, and pages always, over an earlier page alone; print the rest."""
    if output is None and not is_page:
        emit(text)
        return ExitCode.FINE
    if output is not None and output.is_dir():
        raise InputError(f"--output {output} is a folder: name a file in it")
    place = output or PAGE
    if is_page and is_page_of_ours(place):
        beside = place.with_name(f".{place.name}.{os.getpid()}")
        try:  # at once, so that a reader never meets half of a page
            beside.write_text(text, "utf-8")
            beside.replace(place)
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise WriteError(f"cannot write {place}: {error.strerror}") from error
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


def accept_level(folders: list[Path], run: str, why: str) -> int:
    """Write down beside a record that its level is the right one."""
    from hotloop.core.record import accept
    from hotloop.report.files import read_shelf

    entries = {entry.record.run_id: entry for entry in read_shelf(folders).entries}
    if run not in entries:
        raise unknown("run", run, list(entries), "hotloop report --format csv lists them")
    path = entries[run].path
    assert path
    remark(f"saved {accept(path.parent, run, why)}")
    return ExitCode.FINE


def serve(folders: list[Path], title: str, options: ReportOptions) -> int:
    """Serve until Ctrl-C: the first record, and the folder it is in, may be still to come."""
    from hotloop.report.page.serve import Server, Site

    site = Site(folders, RUNS, title, lambda: shelf_of(folders, options.read or []))
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
