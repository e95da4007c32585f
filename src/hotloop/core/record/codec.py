"""Convert dataclasses to plain JSON values and back, checked field by field on the way in."""

import dataclasses
import json
import math
import types
import typing
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypeVar, Union, get_args, get_origin

T = TypeVar("T")

Interval = tuple[float, float]

LARGEST = 2**64  # Whole numbers are below it: seeds take 64 bits, and nothing takes more
DEEPEST = 32  # How far lists and objects may lie in each other


class ForeignError(ValueError):
    """A value is not what its place asks for."""


@dataclass(frozen=True, slots=True)
class AtLeast:
    """What a number may not be below."""

    low: float

    def __str__(self) -> str:
        return f"at least {self.low}"


Count = Annotated[int, AtLeast(0)]  # How often something happened

Amount = Annotated[float, AtLeast(0)]


def parse(text: str) -> Any:
    """What JSON text says; ForeignError where it is none, is cut off, or lies too deep in itself."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ForeignError("not JSON that can be read: it is nested too deep") from None
    except ValueError as error:
        raise ForeignError(f"not JSON, or cut off: {error}") from None


def from_plain(cls: type[T], value: Any, where: str = "$") -> T:
    """Rebuild a dataclass from what JSON gave; ForeignError says where it does not fit.

    Fields may be dataclasses, TypedDicts, `tuple[X, ...]`, `tuple[X, Y]`, `list[X]`, `dict[str, X]`,
    `X | None`, `Literal`, `Annotated` with what bounds it, JSON's own types, and Any.
    """
    return cls(**build_fields(cls, optional_of(cls), value, where))  # type: ignore[arg-type]


@cache
def optional_of(cls: type) -> frozenset[str]:
    """The fields that have a default."""
    return frozenset(
        field.name
        for field in dataclasses.fields(cls)
        if field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
    )


@cache
def hints_of(cls: type) -> dict[str, Any]:
    """The type of every field, resolved once: a folder holds thousands of records."""
    return typing.get_type_hints(cls, include_extras=True)


@cache
def taken_apart(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """`list[int]` as list and (int,)."""
    return get_origin(annotation), get_args(annotation)


def build_fields(cls: type, optional: typing.AbstractSet[str], value: Any, where: str) -> dict[str, Any]:
    """The fields that an object has, each of its type; all are there but for the optional, and no other."""
    expect(isinstance(value, dict), "an object", value, where)
    hints = hints_of(cls)
    for name in value:
        if name not in hints:
            raise ForeignError(f"{where}: has an unknown field {show(name)}")
    for name in hints:
        if name not in value and name not in optional:
            raise ForeignError(f"{where}: lacks the field {name}")
    return {name: build(hints[name], item, f"{where}.{name}") for name, item in value.items()}


def build(annotation: Any, value: Any, where: str) -> Any:
    """One value of the annotated type."""
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return from_plain(annotation, value, where)
    if typing.is_typeddict(annotation):
        return build_fields(annotation, annotation.__optional_keys__, value, where)
    origin, inner = taken_apart(annotation)
    if origin in (types.UnionType, Union):
        return None if value is None else build(inner[0], value, where)
    if origin is Annotated:
        value, bound = build(inner[0], value, where), inner[1]
        if value < bound.low:
            raise ForeignError(f"{where}: expected {bound}, got {value}")
        return value
    if origin is NotRequired:
        return build(inner[0], value, where)
    return build_plain(annotation, value, where)


def build_plain(annotation: Any, value: Any, where: str) -> Any:
    """One list, object or single value; an int will do for a float, and a bool is no int."""
    if annotation is Any:
        return check_plain(value, where)
    origin, inner = taken_apart(annotation)
    if origin is tuple:
        return build_tuple(inner, value, where)
    if origin is list:
        return list(build_tuple((*inner, Ellipsis), value, where))
    if origin is dict:
        expect(isinstance(value, dict), "an object", value, where)
        return {
            check_text(key, where): build(inner[1], item, f"{where}.{show(key)}")
            for key, item in value.items()
        }
    if origin is Literal:
        if value not in inner:
            raise ForeignError(f"{where}: expected one of {', '.join(map(str, inner))}")
        return value
    accepted = (int, float) if annotation is float else annotation
    fits = isinstance(value, accepted) and isinstance(value, bool) is (annotation is bool)
    expect(fits, annotation.__name__, value, where)
    return annotation(check_plain(value, where))


def build_tuple(inner: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    expect(isinstance(value, list), "a list", value, where)
    kinds = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
    if len(kinds) != len(value):
        raise ForeignError(f"{where}: expected a list of {len(kinds)}, got one of {len(value)}")
    return tuple(build(kind, value[i], f"{where}[{i}]") for i, kind in enumerate(kinds))


def check_plain(value: Any, where: str, depth: int = 0) -> Any:
    """The value itself, where it could be written again; ForeignError names the part that could not."""
    if depth > DEEPEST:
        raise ForeignError(f"{where.partition('[')[0]}: is nested too deep")
    if isinstance(value, dict):
        for key, item in value.items():
            check_plain(item, f"{where}.{show(check_text(key, where))}", depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            check_plain(item, f"{where}[{index}]", depth + 1)
    elif isinstance(value, str):
        check_text(value, where)
    elif isinstance(value, float) and not math.isfinite(value):
        raise ForeignError(f"{where}: expected a finite number, got {value}")
    elif isinstance(value, int) and abs(value) >= LARGEST:
        raise ForeignError(f"{where}: expected a number of 64 bits, got one of {value.bit_length()}")
    return value


def check_text(text: str, where: str) -> str:
    """The text itself, where it can be written: half a character cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ForeignError(f"{where}: expected text, got half of a surrogate pair in {text[:20]!a}") from None
    return text


def expect(fits: bool, what: str, value: Any, where: str) -> None:
    """Raise ForeignError with what JSON calls the value, unless it fits."""
    if not fits:
        names = {dict: "an object", list: "a list", type(None): "null"}
        got = names.get(type(value), type(value).__name__)
        raise ForeignError(f"{where}: expected {what}, got {got}")


def show(name: str) -> str:
    """A field's name as a path has it: escaped and cut where it would break the line."""
    return name if name.isprintable() and len(name) <= 60 else ascii(name[:60])
