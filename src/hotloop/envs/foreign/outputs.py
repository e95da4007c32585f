"""What an env may give back: values that exist when its step returns, not when a reader asks for them.

An object that computes its values on reading moves work out of the timed step: it looks fast, and equal.

Also what can be seen of an env from outside: a model's attributes, and what breaks an env's own interface. A
list of objects of one class is a column for each of their attributes, so that a difference is named as
`animals.energy` at an index. Names that begin with an underscore are private to a model.
"""

import inspect
import math
import re
import sys
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from enum import Enum, auto
from inspect import getattr_static
from itertools import takewhile
from numbers import Number
from pathlib import PurePath
from types import MemberDescriptorType, ModuleType, NoneType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import now_ns
from hotloop.core.errors import Code, HotloopError, InputError, Notice, notice
from hotloop.envs.callables import parameters_of
from hotloop.envs.foreign.inside import attribute
from hotloop.envs.subject import Subject

# Packages whose arrays hold their values; JAX and torch are waited for inside the timed turn.
LIBRARIES = frozenset({"numpy", "torch", "torchvision", "jax", "jaxlib", "tensordict", "pandas"})

# How NumPy reads an object that is no array.
ARRAY_PROTOCOL = frozenset({"__array__", "__array_interface__", "__array_struct__", "__buffer__"})

# Methods of arrays, numbers and containers that could compute a value for their reader.
READS = ARRAY_PROTOCOL | {
    *("__getattribute__", "__class__", "__iter__", "__len__", "__getitem__", "__reversed__", "__contains__"),
    *("__float__", "__int__", "__index__", "__bool__", "__complex__"),
    *("keys", "values", "items", "get", "dtype", "shape", "ndim", "size", "tolist", "tobytes", "copy"),
}

# How a subclass of a tensor of torch could compute a value for its reader, beside `READS`.
TORCH_PROTOCOL = frozenset({"__torch_function__", "__torch_dispatch__", "numpy", "cpu", "detach", "to"})

ABSENT = object()

# Outputs in which an object of an unknown class is refused; infos leave it out of the comparison.
DECLARED = frozenset({"observations", "rewards", "terminals", "truncations", "next_observations"})

DEEPEST = 32  # Levels of containers within containers that are checked
HEAP_TYPE = 1 << 9  # CPython's flag of classes that were made while a program ran


class Kind(Enum):
    """How the values of a class are read."""

    VALUE = auto()  # As a whole: a number, a text, an array
    SEQUENCE = auto()
    MAPPING = auto()
    FIELDS = auto()  # By attributes, as those of a dataclass
    LAZY = auto()  # By code of its own that may compute them
    UNKNOWN = auto()


CONTAINERS: tuple[tuple[tuple[type, ...], Kind], ...] = (
    ((dict,), Kind.MAPPING),
    ((tuple, list, set, frozenset, deque), Kind.SEQUENCE),
    ((SimpleNamespace,), Kind.FIELDS),
)

VALUES = (type(None), Number, str, bytes, bytearray, Enum, np.generic, np.ndarray, range, date, timedelta)


KINDS: WeakKeyDictionary[type, Kind] = WeakKeyDictionary()  # Of the classes that were looked at


def kind_of(cls: type) -> Kind:
    """Return how values of a class are read; LAZY if a class of the env's own does the reading."""
    if cls not in KINDS:
        KINDS[cls] = classify(cls)
    return KINDS[cls]


def classify(cls: type) -> Kind:
    own = tuple(takewhile(lambda each: not is_known(each), cls.__mro__))
    if is_dataclass(cls):
        return Kind.LAZY if defines(own, ARRAY_PROTOCOL | {"__getattribute__"}) else Kind.FIELDS
    if not issubclass(cls, Enum) and issubclass(cls, (*VALUES, Mapping, Sequence)) and defines(own, READS):
        return Kind.LAZY
    if defines(own, ARRAY_PROTOCOL) or (
        is_class_of(cls, "torch", "Tensor") and defines(own, READS | TORCH_PROTOCOL)
    ):
        return Kind.LAZY
    for classes, kind in CONTAINERS:
        if issubclass(cls, classes):
            return kind
    base = next(filter(is_known, cls.__mro__))  # the first that is not the env's own
    is_of_library = base.__module__.partition(".")[0] in LIBRARIES
    # JAX's arrays carry the name of a private module
    is_value = issubclass(cls, VALUES) or is_class_of(cls, "jax", "Array") or is_of_library
    return Kind.VALUE if is_value else Kind.UNKNOWN


def is_known(cls: type) -> bool:
    """Return whether Python or a library of arrays defines a class, under the name that the class has."""
    root = cls.__module__.partition(".")[0]
    if root not in LIBRARIES and root not in sys.stdlib_module_names:
        return False
    found: Any = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        found = getattr(found, name, None)
    is_compiled = not cls.__flags__ & HEAP_TYPE
    return found is cls or is_compiled


def defines(classes: Iterable[type], names: frozenset[str]) -> bool:
    """Return whether a class body among some defines one of the names."""
    return any(not names.isdisjoint(vars(each)) for each in classes)


def is_class_of(cls: type, package: str, name: str) -> bool:
    """Return whether a class derives from one of a package, which is not imported for that."""
    home = sys.modules.get(package)
    return home is not None and issubclass(cls, getattr(home, name))


def stored_value(value: Any, name: str) -> Any:
    """Return what an object holds under a name, and run none of its code; ABSENT if code would answer."""
    found = getattr_static(value, name, ABSENT)
    if isinstance(found, MemberDescriptorType):  # of a class with slots
        try:
            return found.__get__(value)
        except AttributeError:
            return ABSENT
    is_own = getattr(value, "__dict__", {}).get(name, ABSENT) is found
    return found if is_own or not hasattr(type(found), "__get__") else ABSENT


def computes_fields(value: Any) -> bool:
    """Return whether reading a field of a dataclass runs code of its class."""
    cls = type(value)
    absent = [each.name for each in fields(value) if stored_value(value, each.name) is ABSENT]
    computed = (
        not isinstance(getattr_static(cls, name, None), (MemberDescriptorType, NoneType)) for name in absent
    )
    return any(computed) or (bool(absent) and hasattr(cls, "__getattr__"))


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass or a namespace by name."""
    if isinstance(value, SimpleNamespace):
        return dict(vars(value))
    found = {each.name: stored_value(value, each.name) for each in fields(value)}
    return {name: None if each is ABSENT else each for name, each in found.items()}


def check_output(name: str, value: Any, *, declared: bool = False, deep: int = 0) -> None:
    """Refuse a value that may be computed only when it is read; `declared` refuses unknown objects too."""
    cls = type(value)
    kind = kind_of(cls)
    if kind is Kind.FIELDS and is_dataclass(value) and computes_fields(value):
        kind = Kind.LAZY
    if kind is Kind.LAZY or (kind is Kind.UNKNOWN and declared):
        what = f"{name} is a {cls.__module__}.{cls.__qualname__}"
        if kind is Kind.UNKNOWN:
            raise InputError(
                f"{what}, whose values Hotloop cannot read: return numbers, texts, NumPy arrays, or tuples, "
                "lists, dicts, named tuples and dataclasses of them"
            )
        raise InputError(
            f"{what}, which computes its values when they are read: return a NumPy array, or a plain tuple, "
            "list or dict"
        )
    if deep > DEEPEST or kind is Kind.UNKNOWN:
        return
    if cls is np.ndarray and value.dtype == object:
        kind, value = Kind.SEQUENCE, value.ravel().tolist()
    for part, each in parts_of(kind, value):
        check_output(f"{name}.{part}", each, declared=declared, deep=deep + 1)


def parts_of(kind: Kind, value: Any) -> Iterable[tuple[object, Any]]:
    """Return the parts of a container by name; of a sequence of plain values none."""
    if kind is Kind.MAPPING:
        return list(value.items())
    if kind is Kind.FIELDS:
        return fields_of(value).items()
    if kind is Kind.SEQUENCE and any(
        # containers, arrays of objects, objects
        issubclass(cls, np.ndarray) or kind_of(cls) is not Kind.VALUE
        for cls in set(map(type, value))
    ):
        return enumerate(value)
    return ()


# What the text of an object has in it that says nothing about itself.
ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def arrays(name: str, value: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    """What was given back as named arrays, the first axis one env; what cannot be compared is left out."""
    for part, rows in leaves(name, value):
        if rows is not None:
            yield part, rows[None]


def leaves(name: str, value: Any) -> Iterator[tuple[str, NDArray[Any] | None]]:
    """Every part of what was given back: numbers and arrays as they are, all else by its text or None."""
    if kind_of(type(value)) is Kind.FIELDS:
        value = fields_of(value)
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from leaves(f"{name}.{key}", part)
    elif isinstance(value, np.ndarray) and value.dtype == object:
        yield from leaves(name, value.tolist())
    elif isinstance(value, (tuple, list)) and not all(is_number(part) for part in value):
        for index, part in enumerate(value):
            yield from leaves(f"{name}.{index}", part)
    elif is_number(value) or isinstance(value, (np.ndarray, tuple, list)) or hasattr(value, "__array__"):
        yield name, np.asarray(value)
    elif isinstance(value, (set, frozenset)):
        yield name, np.array(repr(sorted(value, key=repr)))
    else:
        # A text that is equal where the value is; an object that says only where it is kept has none.
        text = str.__repr__(value) if isinstance(value, str) else repr(value)
        yield name, None if ADDRESS.search(text) else np.array(text)


def is_number(value: Any) -> bool:
    return isinstance(value, (Number, np.generic))


def everything(parts: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """All that an env gave back, whether or not its reset gave it too."""
    return {name: rows for part, value in parts.items() for name, rows in arrays(part, value)}


def unseen(parts: Mapping[str, Any]) -> list[str]:
    """Names of what an env gave back and cannot be compared."""
    return [name for part, value in parts.items() for name, rows in leaves(part, value) if rows is None]


NO_ROWS = np.zeros((1, 0))


LISTS = ("agents",)  # Properties that are looked at too: where models keep what lives in them
OUTPUTS = "outputs"  # A method by which a model declares what it shows: a mapping of names to values
NOTHING: dict[str, Any] = {}  # What is shown of a value that cannot be compared, or that was shown before

# What has been looked into, by its id; each thing once, since animals know their worlds and neighbours.
Known = dict[int, object]

# What a constructor is told, rather than something that lives.
SETTING = (NoneType, bool, int, float, str, Enum, PurePath, np.generic)

# What has no attributes that are columns.
PLAIN = (list, tuple, Mapping, set, frozenset, np.ndarray, ModuleType, type)


def state_of(model: object) -> dict[str, Any]:
    """Return what a model declares as its outputs, otherwise its public attributes; what compares of them."""
    declared = declared_outputs(model)
    if declared is not None:
        return comparable_parts(declared, {id(model): model})
    held = attributes(model)
    held |= {name: getattr(model, name) for name in LISTS if name not in held and hasattr(model, name)}
    return comparable_parts(held, {id(model): model})


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
        if name in named and isinstance(value, SETTING):
            yield path + name
        elif hasattr(value, "__dict__") and not (
            callable(value) or isinstance(value, PLAIN) or id(value) in known
        ):
            known[id(value)] = value
            yield from settings_within(value, f"{path}{name}.", keys, known)


def attributes(thing: object) -> dict[str, Any]:
    """Return public instance attributes; properties are skipped because they may have side effects."""
    held = dict(vars(thing)) if hasattr(thing, "__dict__") else {}
    slots = (name for each in type(thing).__mro__ for name in getattr(each, "__slots__", ()))
    held |= {name: getattr(thing, name) for name in slots if hasattr(thing, name)}
    return {name: value for name, value in held.items() if name[0] != "_"}


def comparable_parts(held: Mapping[str, Any], known: Known) -> dict[str, Any]:
    """What can be compared of values by name, and nothing of the others."""
    found = {name: comparable(value, known) for name, value in held.items()}
    return {name: value for name, value in found.items() if value is not NOTHING}


def comparable(value: Any, known: Known) -> Any:
    """What can be compared of a value."""
    if value is None or isinstance(value, (str, Enum)):
        return value.name if isinstance(value, Enum) else value
    if is_number(value):
        return as_array(value)
    if isinstance(value, np.ndarray):
        return value if value.dtype != object else of_list(value.tolist(), known)
    if id(value) in known:
        return NOTHING
    known[id(value)] = value
    return comparable_inside(value, known)


def comparable_inside(value: Any, known: Known) -> Any:
    """What can be compared of something that holds others; NOTHING of code."""
    if isinstance(value, Mapping):
        # by plain keys; otherwise in order, since the text of an object says where it is in memory
        if all(isinstance(key, (str, int, float, tuple, Enum)) for key in value):
            return comparable_parts({str(key): part for key, part in value.items()}, known)
        return of_list(list(value.values()), known)
    if isinstance(value, (set, frozenset)):
        has_order = all(isinstance(part, str) for part in value) or all(map(is_number, value))
        return np.array(sorted(value)) if has_order else {"count": len(value)}
    if isinstance(value, (Sequence, deque)) and not isinstance(value, (bytes, bytearray, memoryview, range)):
        return of_list(list(value), known)
    is_code = callable(value) or isinstance(value, (ModuleType, type))
    return NOTHING if is_code else comparable_parts(attributes(value), known) or NOTHING


def as_array(value: Any) -> Any:
    """As an array; numbers of Python's that fit into none, such as fractions, by their text."""
    array = np.array(value)
    return array if array.dtype != object else np.array([repr(part) for part in array.flat])


def of_list(parts: list[Any], known: Known) -> Any:
    """Numbers and texts as an array, objects of one class as columns, others one by one."""
    if all(map(is_number, parts)) or all(isinstance(part, str) for part in parts):
        return as_array(parts)
    is_rows = all(isinstance(part, (list, tuple)) for part in parts) and len(set(map(len, parts))) == 1
    if is_rows and all(map(is_number, np.array(parts, object).flat)):
        return as_array(parts)
    if len(set(map(type, parts))) > 1 or isinstance(parts[0], PLAIN) or not attributes(parts[0]):
        return comparable_parts({str(index): part for index, part in enumerate(parts)}, known)
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
        for fault in faults_of(subject, space):
            seen.setdefault(fault.partition(":")[0], f"{fault}, {where}")

    try:
        if actions is None:
            subject.reset()
            look("at the reset")
            actions = ()
            with suppress(InputError):  # an env that does not say what its actions are is only reset
                actions = subject.draw(np.random.default_rng(0), EXAMINED_STEPS)
        begin = now_ns()
        for step, chosen in enumerate(actions, 1):
            subject.step(chosen)
            look(f"at step {step}")
            if now_ns() - begin > BOX_NS:
                break
    except HotloopError as error:  # the measurement is done all the same
        seen.setdefault("raised", str(error))
    return tuple(notice(Code.INTERFACE, target=subject.spec.name, fault=fault) for fault in seen.values())


def faults_of(subject: Subject, space: Any) -> Iterator[str]:
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
