"""hotloop new world: a folder to start from."""

import json as json_format
import keyword
import re
from importlib.resources import files
from pathlib import Path

from hotloop.cli.console import emit
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.files import write_new
from hotloop.options.misc import NewOptions

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


def new(options: NewOptions) -> int:
    """Fill in the templates of a world."""
    name = options.name
    check_name(name)
    folder = checkout() / WORLDS / name
    if folder.exists():
        raise InputError(f"{folder} exists: choose another name")
    written = [write(folder, template, name) for template in TEMPLATES]
    if options.json:
        emit(json_format.dumps({"world": name, "files": [str(path) for path in written]}, indent=1) + "\n")
    else:
        emit("".join(f"wrote {path}\n" for path in written))
        emit(f"next: ./hotloop bench {name} builds and runs it, ./check tests it\n")
    return ExitCode.FINE


def check_name(name: str) -> None:
    """Refuse a name that Python, C++ or a file system could not take."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise InputError(
            f"{name!r} cannot name a world: use lower-case letters, digits and _, a letter first"
        )
    if keyword.iskeyword(name) or CPP_WORDS.fullmatch(name):
        raise InputError(f"{name!r} cannot name a world: it is a word of Python or C++; choose another name")


def checkout() -> Path:
    """The checkout around the current folder."""
    here = Path.cwd()
    for folder in (here, *here.parents):
        if all((folder / mark).exists() for mark in MARKS):
            return folder
    raise InputError(f"{here} is not inside a checkout of Hotloop: clone it, go there and run this again")


def write(folder: Path, template: str, name: str) -> Path:
    """Fill in one template."""
    text = files("hotloop.worlds").joinpath("_template", template).read_text(encoding="utf-8")
    path = folder / TEMPLATES[template].format(name=name)
    class_name = "".join(word.capitalize() for word in name.split("_"))
    write_new(path, text.replace("@name@", name).replace("@Name@", class_name))
    return path
