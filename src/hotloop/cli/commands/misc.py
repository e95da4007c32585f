"""hotloop doctor, guide, mcp, new, top and worlds: the commands that keep no record."""

import json as json_format
import keyword
import re
import sys
import tempfile
from dataclasses import asdict, astuple
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.cli.main import emit, show
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.files import write_new
from hotloop.core.machine import need
from hotloop.core.registry import components, find, presets
from hotloop.core.registry import worlds as all_worlds
from hotloop.core.settings import describe
from hotloop.options.misc import (
    DoctorOptions,
    GuideOptions,
    McpOptions,
    NewOptions,
    TopOptions,
    WorldsOptions,
)

if TYPE_CHECKING:
    from hotloop.core.world import World

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
