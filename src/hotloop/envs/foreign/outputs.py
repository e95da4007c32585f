"""What an env may give back: values that exist when its step returns, not when a reader asks for them.

An object that computes its values on reading moves work out of the timed step: it looks fast, and equal.
"""

import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from enum import Enum, auto
from inspect import getattr_static
from itertools import takewhile
from numbers import Number
from types import MemberDescriptorType, NoneType, SimpleNamespace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError

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


def held(value: Any, name: str) -> Any:
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
    absent = [each.name for each in fields(value) if held(value, each.name) is ABSENT]
    computed = (
        not isinstance(getattr_static(cls, name, None), (MemberDescriptorType, NoneType)) for name in absent
    )
    return any(computed) or (bool(absent) and hasattr(cls, "__getattr__"))


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass or a namespace by name."""
    if isinstance(value, SimpleNamespace):
        return dict(vars(value))
    found = {each.name: held(value, each.name) for each in fields(value)}
    return {name: None if each is ABSENT else each for name, each in found.items()}


def check_output(name: str, value: Any, *, declared: bool = False, deep: int = 0) -> None:
    """Refuse a value that may be computed only when it is read; `declared` refuses unknown objects too."""
    cls = type(value)
    kind = kind_of(cls)
    if kind is Kind.FIELDS and is_dataclass(value) and computes_fields(value):
        kind = Kind.LAZY
    if kind is Kind.LAZY or (kind is Kind.UNKNOWN and declared):
        raise refused(name, cls, kind)
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


def refused(name: str, cls: type, kind: Kind) -> InputError:
    what = f"{cls.__module__}.{cls.__qualname__}"
    if kind is Kind.UNKNOWN:
        return InputError(
            f"{name} is a {what}, whose values Hotloop cannot read: return numbers, texts, NumPy arrays, or "
            "tuples, lists, dicts, named tuples and dataclasses of them"
        )
    return InputError(
        f"{name} is a {what}, which computes its values when they are read: return a NumPy array, or a plain "
        "tuple, list or dict"
    )


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
    else:
        yield name, spelled(value)


def is_number(value: Any) -> bool:
    return isinstance(value, (Number, np.generic))


def spelled(value: Any) -> NDArray[Any] | None:
    """A value as text that is equal where it is; None for an object that says only where it is kept."""
    if isinstance(value, (set, frozenset)):
        return np.array(repr(sorted(value, key=repr)))
    text = str.__repr__(value) if isinstance(value, str) else repr(value)
    return None if ADDRESS.search(text) else np.array(text)


class Answers:
    """What an env gave back, always under the names that its reset gave: a comparison asks for all of them.

    Infos that come and go are left out, and what a field of the reset lacks later is an empty array.
    """

    def __init__(self) -> None:
        self._names: tuple[str, ...] = ()

    def begin(self, parts: Mapping[str, Any]) -> None:
        """Note the names of what an env says at its reset."""
        self._names = tuple(name for part, value in parts.items() for name, _ in arrays(part, value))

    def read(self, parts: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        now = everything(parts)
        return {name: now.get(name, NOTHING) for name in self._names}


def everything(parts: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """All that an env gave back, whether or not its reset gave it too."""
    return {name: rows for part, value in parts.items() for name, rows in arrays(part, value)}


def unseen(parts: Mapping[str, Any]) -> list[str]:
    """Names of what an env gave back and cannot be compared."""
    return [name for part, value in parts.items() for name, rows in leaves(part, value) if rows is None]


NOTHING = np.zeros((1, 0))
