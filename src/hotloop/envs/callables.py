"""Callables by name, `path.py:function` or `module:function`: what they return, and which a file may name.

Envs are numbered so that the files and ports of several do not collide. A file, such as a record that is run
again, may have nothing called but our worlds, registered ids, and code of the current project.
"""

import ast
import importlib.util
import inspect
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.machinery import PathFinder
from itertools import dropwhile
from pathlib import Path
from types import ModuleType
from typing import Any

from hotloop.core.errors import InputError, TheirError, unknown
from hotloop.core.files import INSTALLED, confinement
from hotloop.core.machine import git
from hotloop.core.process import lifeline
from hotloop.core.process.lifeline import Activity
from hotloop.core.settings import Target, names_callable

VARIABLE = "HOTLOOP_FIRST_INSTANCE"  # Where the numbers of this process begin

# The argument that a callable may have, and what is replaced in the values of keys.
KEY, PLACE = "instance", "{instance}"

NUMBERS_LENT = 1_000  # Numbers that another process gets


class Numbers:
    """Numbers one after another, of which a process that is started meanwhile gets none that is taken."""

    def __init__(self, first: int) -> None:
        self._next = first

    def take(self, count: int = 1) -> int:
        """Reserve `count` consecutive numbers and return the first."""
        first, self._next = self._next, self._next + count
        os.environ[VARIABLE] = str(self._next)
        return first


NUMBERS = Numbers(int(os.environ.get(VARIABLE, "0")))


def lent() -> dict[str, str]:
    """The environment variable that gives a process numbers of its own."""
    return {VARIABLE: str(NUMBERS.take(NUMBERS_LENT))}


def is_numbered(value: object) -> bool:
    """Whether a key's value has the number in it."""
    return isinstance(value, str) and PLACE in value


def numbered(keys: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Keys with the number in place of `{instance}`."""
    spelled = str(number)
    return {
        key: value.replace(PLACE, spelled) if isinstance(value, str) else value for key, value in keys.items()
    }


LAST_LINES = 3  # Lines of a user's traceback that are worth showing
OURS = f"{Path(__file__).parents[1]}/"  # The folder of Hotloop's own files


def call(target: str, given: Mapping[str, object], instance: int | None = None) -> Any:
    """What the callable returns for the given keys; InputError with its own last words where it raises.

    `instance` is the number of what it makes, where that was taken already.
    """
    return maker(target, given)(NUMBERS.take() if instance is None else instance)


def maker(target: str, given: Mapping[str, object]) -> Callable[[int], Any]:
    """What calls it with the given keys for one number after another; it is looked for and checked once."""
    function, arguments = fitting(target, given)

    def make(number: int) -> Any:
        try:
            with lifeline.doing(Activity.MAKE):
                return function(**arguments(number))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise TheirError(f"{target} raised: {last_words(error)}{lifeline.at_step()}") from error

    return make


def bound(target: str, given: Mapping[str, object]) -> Callable[[], Any]:
    """The callable with the given keys as its arguments; InputError where they do not fit."""
    function, arguments = fitting(target, given)
    return partial(function, **arguments(NUMBERS.take()))


def fitting(
    target: str, given: Mapping[str, object]
) -> tuple[Callable[..., Any], Callable[[int], dict[str, object]]]:
    """The callable, and its arguments by the number of what it makes; InputError where they do not fit."""
    function = find(target)
    own = {KEY: PLACE} if KEY in parameters_of(function) else {}
    asked = {**own, **given}
    fixed = {key: literal(value) for key, value in asked.items() if not is_numbered(value)}
    others = {key: value for key, value in asked.items() if is_numbered(value)}
    try:
        inspect.signature(function).bind(**asked)
    except TypeError as error:
        raise InputError(f"{target}: {error}; give its arguments as key=value") from None
    except ValueError:  # no signature to look at, as with some built-in functions
        pass
    return function, lambda number: {
        **fixed,
        **{key: literal(value) for key, value in numbered(others, number).items()},
    }


def parameters_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of its arguments; of a class that hands on whatever it is given, its base's too."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):  # no signature to look at, as with some built-in functions
        return ()
    hands_on = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in found.values())
    if not (hands_on and isinstance(function, type)):
        return tuple(found)
    home = next(number for number, each in enumerate(function.__mro__) if "__init__" in vars(each))
    bases = function.__mro__[home + 1 :]
    return tuple(dict.fromkeys([*found, *(parameters_of(bases[0]) if bases else ())]))


def required_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of its arguments that have no default."""
    try:
        found = inspect.signature(function).parameters
    except ValueError:
        return ()
    return tuple(name for name, each in found.items() if each.default is each.empty)


LENT: dict[str, Callable[..., Any]] = {}  # Functions that Python code gave, by the names they go by here


def lend(function: Callable[..., Any], name: str | None = None) -> str:
    """A name under which a function is found in this process, whether or not it can be imported."""
    called = name or getattr(function, "__qualname__", type(function).__name__)
    spelled = f"{getattr(function, '__module__', None)}:{called}"
    free = (spelled, *(f"{spelled}#{n}" for n in range(2, len(LENT) + 3)))
    chosen = next(each for each in free if LENT.get(each, function) is function)
    LENT[chosen] = function
    return chosen


def find(target: str) -> Callable[..., Any]:
    """The callable itself, its module imported from a file or by name."""
    if target in LENT:
        return LENT[target]
    place, _, name = target.rpartition(":")
    module = load_file(Path(place)) if place.endswith(".py") else load_module(place)
    try:
        found = getattr(module, name)
    except AttributeError:
        known = sorted(each for each, value in vars(module).items() if callable(value) and each[0] != "_")
        raise unknown("callable", name, known, f"{place} has {', '.join(known) or 'none'}") from None
    # a model plays by `forward` and `select`, and so need not be called itself
    is_model = all(callable(getattr(found, each, None)) for each in ("forward", "select"))
    if not (callable(found) or is_model):
        raise InputError(f"{target} is a {type(found).__name__}: expected something that can be called")
    if (folder := confinement()) is not None:
        folder.function(target, found)
    result: Callable[..., Any] = found
    return result


def load_file(path: Path) -> ModuleType:
    """Run a file as a module, once; its own folder is where its imports look first, as for a script.

    A file that is called like an installed package, which it may want to import, comes after that.
    """
    place = lifeline.anchored(path).resolve()
    if (limits := confinement()) is not None:
        limits.code(place)
    if not place.is_file():
        raise InputError(f"there is no file {path}: write the target as path.py:callable")
    name, folder = module_name(place), str(place.parent)
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) == str(place):
        return known
    if folder not in sys.path:
        sys.path.insert(0 if name == path.stem else len(sys.path), folder)
    if "" not in sys.path:
        sys.path.append("")  # a module that was built in the current folder
    spec = importlib.util.spec_from_file_location(name, place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with lifeline.doing(Activity.MAKE):
            spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[name]
        raise InputError(f"{path} cannot be imported: {last_words(error)}") from error
    return module


def module_name(path: Path) -> str:
    """What a file is called as a module: as itself, unless a package that is installed is called so."""
    folders = [each for each in sys.path if each and Path(each).resolve() != path.resolve().parent]
    try:
        installed = PathFinder.find_spec(path.stem, folders)
    except (ImportError, ValueError):
        installed = None
    is_package = installed is not None and installed.submodule_search_locations is not None
    return f"{path.stem}_file" if is_package and installed and installed.origin else path.stem


def load_module(name: str) -> ModuleType:
    """Import a module by name, looking in the current folder too."""
    if "" not in sys.path:
        sys.path.insert(0, "")
    folder = confinement()
    if folder is not None:
        folder.module(name)
    try:
        with lifeline.doing(Activity.MAKE):
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        raise InputError(f"there is no module {missing!r}: install it, or give a path.py:callable") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InputError(f"{name} cannot be imported: {last_words(error)}") from error
    if folder is not None:
        folder.loaded(module)
    return module


def literal(value: object) -> object:
    """A word from the command line as the number, truth or text it spells."""
    if not isinstance(value, str):
        return value
    truths = {"true": True, "false": False, "none": None}
    if value.lower() in truths:
        return truths[value.lower()]
    try:
        read: object = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return value
    return read


def last_words(error: BaseException) -> str:
    """The end of a traceback in one line: where it happened, in their code, and what was said."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = list(dropwhile(lambda frame: frame.filename.startswith(OURS), frames)) or frames
    places = [f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in theirs[-LAST_LINES:]]
    return f"{type(error).__name__}: {message_of(error)} ({' > '.join(places)})"


def message_of(error: BaseException) -> str:
    """Return what an error says of itself; a user's own class may raise even then."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever it raises, it is no message
        return "it cannot say what"


# Ids of installed packages; a `gym:` id with another colon names a module to import.
REGISTERED = re.compile(r"(?:gym:[\w./-]+|pettingzoo:\w+(?:\.\w+)*)")

# The end of a key's value that names a callable: a network, a teacher, a player.
FILE = re.compile(r"\.py:\w+$")


def check_calls(source: Path, targets: Sequence[Target]) -> None:
    """Refuse a file that would call something outside this project."""
    for target in targets:
        for name in called_by(target):
            if not may_call(name):
                what = target.words if name == target.name else name
                raise InputError(
                    f"{source} would call {what!a}, which is not code of this project: look at it first, "
                    f"then give --trust {source} to run it all the same"
                )


def called_by(target: Target) -> Iterator[str]:
    """Names of callables in a target: its own, what finds its phases, and files that its keys name."""
    yield target.name
    if target.phases is not None:
        yield target.phases
    yield from (name for name in target.time if names_callable(name))
    texts = {key: value for key, value in target.keys.items() if isinstance(value, str)}
    for key, value in texts.items():
        is_seat = key in ("hero", "villain") and not value.startswith(("run:", "tape:"))
        if FILE.search(value) or (is_seat and names_callable(value)):
            yield value


def may_call(name: str) -> bool:
    """Whether a name that stands in a file is one of ours, a registered id, or in the current project."""
    if ":" not in name or REGISTERED.fullmatch(name):
        return True
    place, _, attribute = name.rpartition(":")
    file = file_of(place)
    if file is None or not in_project(file):
        return False
    module = load_file(file) if place.endswith(".py") else load_module(place)
    if attribute not in vars(module):
        return True
    # Whether it was written in this project, rather than imported into it.
    home = sys.modules.get(str(getattr(vars(module)[attribute], "__module__", "")))
    written = getattr(home, "__file__", None)
    return written is not None and in_project(Path(written))


def file_of(place: str) -> Path | None:
    """The file before the colon of a callable's name, or that of the module it names."""
    return Path(place) if place.endswith(".py") else module_file(place)


def newer(source: Path, targets: Sequence[Target]) -> Iterator[str]:
    """What is to be said of code that was changed after a file that names it was written."""
    for name in dict.fromkeys(target.name for target in targets):
        if ":" not in name or REGISTERED.fullmatch(name):
            continue
        file = file_of(name.rpartition(":")[0])
        if file is not None and changed_at(file) > changed_at(source):
            yield f"{file} was changed after {source} was written: what runs now may not be what ran then"


def changed_at(file: Path) -> int:
    """In nanoseconds; 0 where there is no such file."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def module_file(name: str) -> Path | None:
    """Where the outermost package of a module lies, found without importing anything."""
    top = name.partition(".")[0]
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found = importlib.util.find_spec(top) if top else None
    except (ImportError, ValueError):
        return None
    if found is None:
        return None
    places = list(found.submodule_search_locations or ()) or [found.origin or ""]
    return Path(places[0]) if found.has_location or found.submodule_search_locations else None


def in_project(path: Path) -> bool:
    """Whether a file lies in the repository around the current folder, or in that folder without one.

    What is installed in it is not of it; and neither the whole disk nor a home is a project.
    """
    here = Path.cwd().resolve()
    root = Path(git(here, "rev-parse", "--show-toplevel") or here).resolve()
    if root in (Path(root.anchor), Path.home().resolve()):
        return False
    file = path.resolve()
    library = Path(sysconfig.get_path("stdlib")).resolve()
    return file.is_relative_to(root) and not file.is_relative_to(library) and not INSTALLED & set(file.parts)


def announced(source: Path, targets: Sequence[Target], trusted: Path | None) -> list[str]:
    """What is to be said before a file's targets run; refuses what it may not call, and trust in another.

    That is what a trusted file calls, and which code was changed since.
    """
    if trusted is None:
        check_calls(source, targets)
        return list(newer(source, targets))
    if trusted.resolve() != source.resolve():
        raise InputError(f"--trust {trusted} is not what is replayed: give --trust {source}, or leave it out")
    calls = [
        f"{source} calls {target.words if name == target.name else name!a}"
        for target in targets
        for name in called_by(target)
        if ":" in name
    ]
    return [*calls, *newer(source, targets)]
