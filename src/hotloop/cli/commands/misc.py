"""hotloop doctor, guide, mcp, new, report, top and worlds: the commands that measure nothing to keep."""

import json as json_format
import keyword
import os
import re
import sys
import tempfile
from dataclasses import asdict, astuple, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.main import bar, emit, remark, show
from hotloop.core.errors import ExitCode, InputError, WriteError, unknown
from hotloop.core.files import save, write_new
from hotloop.core.machine import need
from hotloop.core.registry import components, find, presets
from hotloop.core.registry import worlds as all_worlds
from hotloop.core.settings import describe
from hotloop.options.misc import (
    FORMATS,
    DoctorOptions,
    GuideOptions,
    McpOptions,
    NewOptions,
    ReportOptions,
    TopOptions,
    WorldsOptions,
)
from hotloop.options.option import PROFILES, RECORDS

if TYPE_CHECKING:
    from hotloop.core.world import World
    from hotloop.report.files import Shelf

TOP_JSON_S = 1  # That a look for --json takes

WORLDS = Path("src/hotloop/worlds")

MARKS = (WORLDS, Path("native/engine"), Path("CMakeLists.txt"))  # What a checkout has

TEMPLATES = {"__init__.py.in": "__init__.py", "twin.py.in": "twin.py", "world.h.in": "{name}.h"}

# Words of C++ that are none of Python, since a world's name is a namespace too.
CPP_WORDS = re.compile(
    "alignas|alignof|asm|auto|bool|case|catch|char|concept|const|consteval|constexpr|constinit|decltype|default"
    "|delete|do|double|enum|explicit|export|extern|float|friend|goto|inline|int|long|mutable|namespace|new"
    "|noexcept|operator|private|protected|public|register|requires|short|signed|sizeof|static|struct|switch"
    "|template|this|throw|typedef|typeid|typename|union|unsigned|using|virtual|void|volatile"
)

# Facts about a parameter, and their headings.
COLUMNS = {"name": "key", "default": "default", "expected": "expected", "role": "role", "help": "what it is"}


def doctor(options: DoctorOptions) -> int:
    """Examine this machine; return 4 if it is not fit to measure."""
    from hotloop.lab.doctor import examine, gather, is_fit
    from hotloop.report.kinds.listings import doctor as sections
    from hotloop.report.terminal import draw

    facts = gather()
    checks = examine(facts)
    if options.json:
        answer = {"fit": is_fit(checks), "checks": [asdict(check) for check in checks], "facts": facts}
        emit(json_format.dumps(answer, indent=1) + "\n")
    else:
        show(draw(sections(map(astuple, checks), fit=is_fit(checks))))
    return ExitCode.FINE if is_fit(checks) else ExitCode.CANNOT_TELL


def guide(options: GuideOptions) -> int:
    """Print one page for a coding agent."""
    from hotloop.mcp import guide as page

    emit(f"{json_format.dumps({'page': page()})}\n" if options.json else page())
    return ExitCode.FINE


def mcp(options: McpOptions) -> int:
    """Serve the commands as tools of a coding agent, or print the tools."""
    need("mcp")
    from hotloop.mcp.server import serve, tools

    if options.json:
        emit(f"{json_format.dumps(tools(Path.cwd()), indent=1)}\n")
    else:
        serve(Path.cwd())
    return ExitCode.FINE


def new(options: NewOptions) -> int:
    """Fill in the templates of a world in the checkout around the current folder."""
    name, here = options.name, Path.cwd()
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InputError(
            f"{name!r} cannot name a world: use lower-case letters, digits and _, a letter first"
        )
    if keyword.iskeyword(name) or CPP_WORDS.fullmatch(name):
        raise InputError(f"{name!r} cannot name a world: it is a word of Python or C++; choose another name")
    around = (each for each in (here, *here.parents) if all((each / mark).exists() for mark in MARKS))
    if (checkout := next(around, None)) is None:
        raise InputError(f"{here} is not inside a checkout of Hotloop: clone it, go there and run this again")
    folder = checkout / WORLDS / name
    if folder.exists():
        raise InputError(f"{folder} exists: choose another name")
    class_name = "".join(word.capitalize() for word in name.split("_"))
    written = []
    for template, file in TEMPLATES.items():
        text = files("hotloop.worlds").joinpath("_template", template).read_text(encoding="utf-8")
        path = folder / file.format(name=name)
        write_new(path, text.replace("@name@", name).replace("@Name@", class_name))
        written.append(str(path))
    if options.json:
        emit(json_format.dumps({"world": name, "files": written}, indent=1) + "\n")
    else:
        emit("".join(f"wrote {path}\n" for path in written))
        emit(f"next: ./hotloop bench {name} builds and runs it, ./check tests it\n")
    return ExitCode.FINE


def top(options: TopOptions) -> int:
    """Watch a process until Ctrl-C, or look at it for a second."""
    from hotloop.lab.profile import probes

    named = options.process or options.pid
    assert named is not None
    if options.pid not in (None, named):
        raise InputError(f"two processes are named, {named} and --pid {options.pid}: leave one out")
    if options.json:
        with tempfile.TemporaryDirectory(prefix="hotloop-") as made:
            emit(probes.attach(named, Path(made), TOP_JSON_S).to_json())
        return ExitCode.FINE
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InputError("top needs a terminal: hotloop profile --pid PID writes files instead")
    probes.watch_process(named)
    return ExitCode.FINE


def worlds(options: WorldsOptions) -> int:
    """Show all worlds, each followed by its components, or one of them."""
    from hotloop.report.kinds import listings
    from hotloop.report.terminal import draw

    if options.name:
        chosen = [find(options.name).world]
    else:
        chosen = [
            each for name, world in all_worlds().items() for each in (world, *components(name).values())
        ]
    known = {world.name: world_facts(world) for world in chosen}
    if options.json:
        emit(json_format.dumps(known, indent=1) + "\n")
    elif options.name:
        show(draw(listings.world(chosen[0].name, known[chosen[0].name], COLUMNS)))
    else:
        show(draw(listings.worlds(known)))
    return ExitCode.FINE


def world_facts(world: "World") -> dict[str, Any]:
    """Return everything that is declared about a world and about any batch, as plain values."""
    from hotloop.envs.spec import BatchSettings

    def rows(settings: type) -> list[dict[str, Any]]:
        return [{fact: getattr(info, fact) for fact in (*COLUMNS, "env")} for info in describe(settings)]

    return {
        "summary": world.summary,
        "presets": {found.target: dict(world.presets[found.preset]) for found in presets(world)},
        "default": presets(world)[0].target,
        "phases": list(world.phases),
        "players": ["random", *world.players],
        "parameters": rows(world.parameters),
        "batch": rows(BatchSettings),
    }


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
