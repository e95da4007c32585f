"""What can be seen of an env from outside: a model's attributes, and what breaks its own interface.

A list of objects of one class is a column for each of their attributes, so that a difference is named as
`animals.energy` at an index. Names that begin with an underscore are private to a model.
"""

import inspect
import math
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from types import ModuleType
from typing import Any

import numpy as np

from hotloop.core.clock import now_ns
from hotloop.core.errors import HotloopError, InputError
from hotloop.core.notices import Code, Notice, notice
from hotloop.envs.callables import parameters_of
from hotloop.envs.foreign.inside import attribute
from hotloop.envs.foreign.outputs import is_number
from hotloop.envs.subject import Subject

LISTS = ("agents",)  # Properties that are looked at too: where models keep what lives in them
OUTPUTS = "outputs"  # A method by which a model declares what it shows: a mapping of names to values
NOTHING: dict[str, Any] = {}  # What is shown of a value that cannot be compared, or that was shown before

# What has been looked into, by its id; each thing once, since animals know their worlds and neighbours.
Known = dict[int, object]

# What has no attributes that are columns.
PLAIN = (list, tuple, Mapping, set, frozenset, np.ndarray, ModuleType, type)


def state_of(model: object) -> dict[str, Any]:
    """Return what a model declares as its outputs, otherwise its public attributes; what compares of them."""
    declared = declared_outputs(model)
    if declared is not None:
        return shown(declared, {id(model): model})
    held = attributes(model)
    held |= {name: getattr(model, name) for name in LISTS if name not in held and hasattr(model, name)}
    return shown(held, {id(model): model})


def declared_outputs(model: object) -> Mapping[str, Any] | None:
    """Return what `outputs()` of a model says; None if it has no such method, or one of another kind."""
    declare = attribute(model, OUTPUTS)
    if not callable(declare):
        return None
    try:
        inspect.signature(declare).bind()
    except (TypeError, ValueError):  # it takes arguments, so it is another method
        return None
    declared = declare()
    return declared if isinstance(declared, Mapping) else None


def settings_of(model: object, keys: Collection[str] = ()) -> frozenset[str]:
    """Return the fields of a model that hold what it was made with, such as `seed` or `log.path`.

    A setting is a plain value under the name of a constructor argument or of one of `keys`. Things in lists
    have none: what an agent was made with is the agent.
    """
    if declared_outputs(model) is not None:
        return frozenset()
    return frozenset(settings_within(model, "", frozenset(keys), {id(model): model}))


def settings_within(thing: object, path: str, keys: frozenset[str], known: Known) -> Iterator[str]:
    """Yield the fields of a thing, and of what its attributes hold, that are settings."""
    named = keys.union(parameters_of(type(thing)))
    for name, value in attributes(thing).items():
        if name in named and is_plain(value):
            yield path + name
        elif hasattr(value, "__dict__") and not (
            callable(value) or isinstance(value, PLAIN) or id(value) in known
        ):
            known[id(value)] = value
            yield from settings_within(value, f"{path}{name}.", keys, known)


def is_plain(value: object) -> bool:
    """Return whether a value is one that a constructor is told, rather than something that lives."""
    return value is None or isinstance(value, (bool, int, float, str, Enum, PurePath, np.generic))


def attributes(thing: object) -> dict[str, Any]:
    """Return public instance attributes; properties are skipped because they may have side effects."""
    held = dict(vars(thing)) if hasattr(thing, "__dict__") else {}
    slots = (name for each in type(thing).__mro__ for name in getattr(each, "__slots__", ()))
    held |= {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return {name: value for name, value in held.items() if name[0] != "_"}


def shown(held: Mapping[str, Any], known: Known) -> dict[str, Any]:
    """What can be compared of values by name, and nothing of the others."""
    found = {name: seen(value, known) for name, value in held.items()}
    return {name: value for name, value in found.items() if value is not NOTHING}


def seen(value: Any, known: Known) -> Any:
    """What can be compared of a value."""
    if value is None or isinstance(value, (str, Enum)):
        return value.name if isinstance(value, Enum) else value
    if is_number(value):
        return numbers(value)
    if isinstance(value, np.ndarray):
        return value if value.dtype != object else of_list(value.tolist(), known)
    if id(value) in known:
        return NOTHING
    known[id(value)] = value
    return inside(value, known)


def inside(value: Any, known: Known) -> Any:
    """What can be compared of something that holds others; NOTHING of code."""
    if isinstance(value, Mapping):
        # by plain keys; otherwise in order, since the text of an object says where it is in memory
        if all(isinstance(key, (str, int, float, tuple, Enum)) for key in value):
            return shown({str(key): part for key, part in value.items()}, known)
        return of_list(list(value.values()), known)
    if isinstance(value, (set, frozenset)):
        has_order = all(isinstance(part, str) for part in value) or all(map(is_number, value))
        return np.array(sorted(value)) if has_order else {"count": len(value)}
    if isinstance(value, (Sequence, deque)) and not isinstance(value, (bytes, bytearray, memoryview, range)):
        return of_list(list(value), known)
    is_code = callable(value) or isinstance(value, (ModuleType, type))
    return NOTHING if is_code else shown(attributes(value), known) or NOTHING


def numbers(value: Any) -> Any:
    """As an array; numbers of Python's that fit into none, such as fractions, by their text."""
    array = np.array(value)
    return array if array.dtype != object else np.array([repr(part) for part in array.flat])


def of_list(parts: list[Any], known: Known) -> Any:
    """Numbers and texts as an array, objects of one class as columns, others one by one."""
    if all(map(is_number, parts)) or all(isinstance(part, str) for part in parts):
        return numbers(parts)
    is_rows = all(isinstance(part, (list, tuple)) for part in parts) and len(set(map(len, parts))) == 1
    if is_rows and all(map(is_number, np.array(parts, object).flat)):
        return numbers(parts)
    if len(set(map(type, parts))) > 1 or isinstance(parts[0], PLAIN) or not attributes(parts[0]):
        return shown({str(index): part for index, part in enumerate(parts)}, known)
    fresh = [part for part in parts if id(part) not in known]
    if not fresh:
        return NOTHING
    known |= {id(part): part for part in fresh}
    held = [attributes(part) for part in fresh]
    names = dict.fromkeys(name for each in held for name in each)
    columns = {name: of_list([each.get(name) for each in held], known) for name in names}
    return {"count": len(fresh), **{n: column for n, column in columns.items() if column is not NOTHING}}


EXAMINED_STEPS = 16

BOX_NS = 200_000_000  # A slow env is looked at for as long as this


def examine(subject: Subject, actions: Iterable[Any] | None = None) -> tuple[Notice, ...]:
    """Reset and step a subject a few times at random, or go on with given actions.

    Each kind of fault is noted once, where it was first seen.
    """
    seen: dict[str, str] = {}
    space = subject.spaces[0]

    def look(where: str) -> None:
        for fault in faults(subject, space):
            seen.setdefault(fault.partition(":")[0], f"{fault}, {where}")

    try:
        if actions is None:
            subject.reset()
            look("at the reset")
        begin = now_ns()
        for step, chosen in enumerate(drawn(subject) if actions is None else actions, 1):
            subject.step(chosen)
            look(f"at step {step}")
            if now_ns() - begin > BOX_NS:
                break
    except HotloopError as error:  # the measurement is done all the same
        seen.setdefault("raised", str(error))
    return tuple(notice(Code.INTERFACE, target=subject.spec.name, fault=fault) for fault in seen.values())


def drawn(subject: Subject) -> Sequence[Any]:
    """Random actions; none if an env does not say what its actions are."""
    try:
        return subject.draw(np.random.default_rng(0), EXAMINED_STEPS)
    except InputError:
        return ()


def faults(subject: Subject, space: Any) -> Iterator[str]:
    answers = subject.answers()
    for name, rows in answers.items():
        is_real = rows.dtype.kind == "f" and name.startswith(("observations", "rewards"))
        if is_real and np.isnan(rows).any():
            yield f"{name} is not a number (NaN): every mean of it will be none either"
    observation = in_numpy(subject.observation)
    if hasattr(space, "contains") and not contains(space, observation):
        yield f"the observation is not in its space: {described(observation)} in {described(space)}"


def in_numpy(value: Any) -> Any:
    """Arrays of other libraries as NumPy's, which a space knows."""
    if isinstance(value, Mapping):
        return {key: in_numpy(part) for key, part in value.items()}
    if type(value) is tuple:
        return tuple(map(in_numpy, value))
    return value if isinstance(value, np.generic) or not hasattr(value, "__array__") else np.asarray(value)


def contains(space: Any, observation: Any) -> bool:
    try:
        if space.contains(observation):
            return True
        rows = isinstance(observation, np.ndarray) and observation.shape[1:] == space.shape
        return rows and all(map(space.contains, observation))  # of a batch that has no space for all
    except (TypeError, ValueError, AttributeError, KeyError):
        return False


def described(value: Any) -> str:
    """The shape, type and range of an array, to the last digit; the name of another thing."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size:
        low, high = float(np.min(value)), float(np.max(value))
        finite = math.isfinite(low) and math.isfinite(high)
        around = f" from {exactly(low)} to {exactly(high)}" if finite else ""
        return f"{value.dtype} {list(value.shape)}{around}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {described(part)}' for key, part in value.items())}}}"
    return " ".join(str(value).split())[:80]


def exactly(number: float) -> str:
    """A number that can be told from its neighbours: rounded, 1 + 2e-16 would lie in a space from 0 to 1."""
    short = f"{number:g}"
    return short if float(short) == number else repr(number)
