"""What an env says of its own steps: how long each of its phases took, and how much it did.

An env, or what is inside its wrappers, may have any of these; or a function of the user's is given the env
and returns an object that has them, or the timing of the last step itself.

- `phase_totals()`: name to nanoseconds, since the beginning
- `step_timing`: of the last step; a mapping, or an object whose attributes end in `_ns`; a method is called
- `counters()`: name to a whole number, since the beginning

Functions of the user's, by name, are in spans for as long as they are looked at.
"""

import importlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import InputError
from hotloop.core.files import confinement
from hotloop.core.record.profile import INSTRUMENT, OWN_STEP
from hotloop.core.spans import span
from hotloop.envs.callables import load_file, load_module, module_name
from hotloop.envs.foreign.inside import ENV_STEP, attribute, in_span, unwrapped

TOTALS, TIMING, COUNTERS = "phase_totals", "step_timing", "counters"

SUFFIX, WHOLE = "_ns", "step"

WHOLES = ("step", "total")  # Names of the whole of a step, beside those of its phases

Looks = Callable[[Any], Any]  # From an env to what reports of it


class Reported:
    """Where an env reports, looked for every time it is asked: what is behind an env may change."""

    def __init__(self, env: Callable[[], Any], looks: Looks | None = None) -> None:
        self._env, self._looks = env, looks

    @property
    def has_phases(self) -> bool:
        return self._looks is not None or any(
            callable(attribute(each, TOTALS))
            or hasattr(type(each), TIMING)
            or attribute(each, TIMING) is not None
            for each in self._owners()
        )

    def totals(self) -> dict[str, int] | None:
        """Nanoseconds of each phase since the beginning; None where only the last step is told."""
        for owner in self._owners():
            read = attribute(owner, TOTALS)
            if callable(read):
                return phases_of(read())
        return None

    def timing(self) -> dict[str, int]:
        """Nanoseconds of each phase of the last step; empty where nothing is told."""
        for owner in self._owners():
            told = attribute(owner, TIMING)
            if told is not None:
                return phases_of(told() if callable(told) else told)
            if self._looks is not None and (isinstance(owner, Mapping) or times_of(owner)):
                return phases_of(owner)
        return {}

    def counters(self) -> dict[str, int]:
        for owner in self._owners():
            told = attribute(owner, COUNTERS)
            told = told() if callable(told) else told
            if isinstance(told, Mapping):
                return {str(name): int(n) for name, n in told.items() if isinstance(n, (int, np.integer))}
        return {}

    def _owners(self) -> Iterator[Any]:
        env = self._env()
        if self._looks is not None:
            yield self._looks(env)
            return
        yield env
        inner = unwrapped(env)
        if inner is not env:
            yield inner


Field = tuple[str, str]  # An attribute that is a time by its name, and the row it is shown in


def times_of(owner: Any) -> Sequence[Field]:
    """Attributes that are a time by their names; only an instance's own ones are looked for each time."""
    kind: Any = type(owner)
    if "__dir__" in vars(kind):
        return times_among(dir(owner))
    own = getattr(owner, "__dict__", None)
    return (*times_of_class(kind), *times_among(own)) if own else times_of_class(kind)


@lru_cache(maxsize=256)
def times_of_class(kind: Any) -> tuple[Field, ...]:
    """Attributes that every object of a class has, such as the fields of a struct in C++."""
    return tuple(times_among(dir(kind)))


def times_among(names: Iterable[str]) -> list[Field]:
    return [(name, row_of(name)) for name in names if name.endswith(SUFFIX) and name[0] != "_"]


@lru_cache(maxsize=4096)
def row_of(name: str) -> str:
    """The row of a phase by the name under which an env reports it."""
    name = name.removesuffix(SUFFIX)
    return WHOLE if name in WHOLES else name.replace("/", ".")


def phases_of(told: Any) -> dict[str, int]:
    """Phase to nanoseconds, of whatever tells them; the whole is called `step`."""
    if told is None:
        return {}
    if isinstance(told, Mapping):
        return {row_of(str(name)): int(ns) for name, ns in told.items()}
    if not (fields := times_of(told)):
        kind = type(told).__name__
        raise InputError(f"phases come as a {kind}: expected a mapping, or attributes that end in _ns")
    return {row: int(getattr(told, name)) for name, row in fields}


class PhaseLog:
    """Keeps what an env reports of each of its steps, while a log of them is kept."""

    is_native = False

    def __init__(self, reported: Reported) -> None:
        self._reported = reported
        self._before = reported.totals()
        self._totals: dict[str, int] = {}
        self._rows: list[tuple[int, int, dict[str, int]]] = []
        self._most = self._begin = self._end = 0

    def around(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """A step whose beginning and end are known."""

        def stepped(*given: Any) -> Any:
            self._begin = now_ns()
            answer = step(*given)
            self._end = now_ns()
            return answer

        return stepped

    def note(self) -> None:
        """Take down the step that has just ended."""
        begin, end, now = self._begin, self._end, self._reported.totals()
        if now is None:
            took = self._reported.timing()
        else:
            before = self._before or {}
            took = {name: ns - before.get(name, 0) for name, ns in now.items()}
            self._before = now
        for name, ns in took.items():
            self._totals[name] = self._totals.get(name, 0) + ns
        if len(self._rows) < self._most:
            self._rows.append((end - took[WHOLE] if WHOLE in took else begin, end, took))

    def skip(self) -> None:
        """What was done meanwhile belongs to no step."""
        self._before = self._reported.totals()

    @property
    def totals(self) -> dict[str, int]:
        """Nanoseconds of each phase in the steps there were."""
        return dict(self._totals)

    @property
    def whole(self) -> str:
        """A row of its own where the env times its step as a whole, too."""
        return OWN_STEP if WHOLE in self._totals else ""

    @property
    def log_columns(self) -> tuple[int, tuple[str, ...]]:
        return 1, tuple(name for name in self._totals if name != WHOLE)

    def keep_log(self, steps: int) -> None:
        self._most = steps
        self._rows.clear()

    def take_log(self) -> NDArray[np.int64]:
        """Begin, end, no resets, no env, then the phases of each step."""
        _, names = self.log_columns
        rows = [(begin, end, 0, -1, *(took.get(n, 0) for n in names)) for begin, end, took in self._rows]
        self._rows.clear()
        return np.array(rows, np.int64).reshape(len(rows), 4 + len(names))


def log_steps(step: Callable[..., Any], log: PhaseLog | None, *, timed: bool) -> Callable[..., Any]:
    """A step in its span, after which the log is written where there is one."""
    if log is None:
        return in_span(ENV_STEP, step, timed=timed)
    region = in_span(ENV_STEP, log.around(step), timed=timed)
    note = span(INSTRUMENT.rpartition("/")[2])(log.note)

    def stepped(*given: Any) -> Any:
        answer = region(*given)
        note()
        return answer

    return stepped


def skip_resets(reset: Callable[..., Any], log: PhaseLog | None) -> Callable[..., Any]:
    """A reset whose phases belong to no step."""
    if log is None:
        return reset

    def begun(*given: Any, **more: Any) -> Any:
        answer = reset(*given, **more)
        log.skip()
        return answer

    return begun


KEPT = (staticmethod, classmethod)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One function and where it is kept."""

    name: str  # As it was asked for; its row in the tree
    owner: Any
    attribute: str
    kept: Any  # What the owner itself holds under that name

    @property
    def rows(self) -> tuple[str, str]:
        """The rows it may be in: its own, or the one that a loop has for an env's own methods."""
        return self.name, ".".join(self.name.split(".")[-2:])

    def watch(self) -> None:
        """Put every call into a span."""
        region = span(self.name.replace("/", "."))
        if isinstance(self.kept, KEPT):
            setattr(self.owner, self.attribute, type(self.kept)(region(self.kept.__func__)))
        else:
            setattr(self.owner, self.attribute, region(self.kept))

    def leave(self) -> None:
        setattr(self.owner, self.attribute, self.kept)


def home_of(target: str) -> str | None:
    """The module of a callable, in which the names of its functions need no prefix."""
    place = target.rpartition(":")[0]
    return module_name(Path(place)) if place.endswith(".py") else place or None


def find(name: str, home: str | None = None) -> Function:
    """Return the function of a name; `home` is the module a name without one is looked for in.

    A name may have its module before a colon, as targets have: `my_env.py:Env.observe`.
    """
    place, _, name = name.rpartition(":")
    if place:
        home = (load_file(Path(place)) if place.endswith(".py") else load_module(place)).__name__
    *path, attribute = name.split(".")
    owner: Any = None
    if path:
        owner = (None if place else walk(path)) or (walk([home, *path]) if home else None)
    elif home:
        owner = walk([home])
    if owner is None and len(path) == 1:
        owner = loaded_class(name, path[0])
    if owner is None:
        raise InputError(f"--time {name}: there is no {'.'.join(path) or name}: write module.Class.method")
    if attribute not in vars(owner):
        owner = next((base for base in getattr(owner, "__mro__", ()) if attribute in vars(base)), owner)
    kept = vars(owner).get(attribute)
    function = kept.__func__ if isinstance(kept, KEPT) else kept
    if not callable(function):
        known = ", ".join(each for each, value in vars(owner).items() if callable(value) and each[:2] != "__")
        raise InputError(
            f"--time {name}: {'.'.join(path)} has no function {attribute}; it has {known or 'none'}"
        )
    try:
        span("probe")(function)
        setattr(owner, attribute, vars(owner)[attribute])
    except (TypeError, AttributeError) as error:
        raise InputError(f"--time {name} cannot be timed: {error}") from None
    return Function(name=name, owner=owner, attribute=attribute, kept=kept)


def loaded_class(asked: str, name: str) -> type | None:
    """The class of that name in whatever is imported, as a profile's rows name it; refuses one of several."""
    held = (getattr(module, "__dict__", {}).get(name) for module in list(sys.modules.values()))
    named = [each for each in held if isinstance(each, type) and each.__name__ == name]
    # a file may be imported by two names
    found = {
        str(getattr(sys.modules.get(each.__module__), "__file__", each.__module__)): each
        for each in reversed(named)
    }
    found = {each.__module__: each for each in found.values()}
    if len(found) > 1:
        several = ", ".join(f"{module}.{asked}" for module in sorted(found))
        raise InputError(f"--time {asked}: there are several {name}; write one of {several}")
    return next(iter(found.values()), None)


def walk(path: Sequence[str]) -> Any:
    """The object of a dotted path: the longest part of it that is a module, then its attributes."""
    for cut in range(len(path), 0, -1):
        module = imported(".".join(path[:cut]))
        if module is None:
            continue
        found: Any = module
        for name in path[cut:]:
            found = getattr(found, name, None)
        return found
    return None


def imported(name: str) -> ModuleType | None:
    if (folder := confinement()) is not None:
        folder.module(name)
    if name in sys.modules:
        return sys.modules[name]
    if not all(part.isidentifier() for part in name.split(".")):
        return None
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@contextmanager
def watching(functions: Sequence[Function]) -> Iterator[None]:
    """Watch functions, and leave them as they were."""
    for function in functions:
        function.watch()
    try:
        yield
    finally:
        for function in reversed(functions):
            function.leave()
