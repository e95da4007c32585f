"""Dataclasses to plain JSON values and back, checked field by field on the way in."""

import dataclasses
import types
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

Interval = tuple[float, float]


class ForeignError(ValueError):
    """A value is not what its place asks for."""


def from_plain(cls: type[T], value: Any, where: str) -> T:
    """Rebuild a dataclass from what JSON gave; ForeignError says where it does not fit.

    Fields may be dataclasses, `tuple[X, ...]`, `tuple[X, Y]`, `dict[str, X]`, `X | None`, `Literal`, JSON's
    own types, and Any.
    """
    expect(isinstance(value, dict), "an object", where)
    hints = get_type_hints(cls)
    for name in value:
        if name not in hints:
            raise ForeignError(f"{where} has an unknown field {name}")
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name not in value and field.default is field.default_factory is dataclasses.MISSING:
            raise ForeignError(f"{where} lacks the field {field.name}")
    return cls(**{name: build(hints[name], item, f"{where}.{name}") for name, item in value.items()})


def build(annotation: Any, value: Any, where: str) -> Any:
    """One value of the annotated type."""
    if annotation is Any:
        return value
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation):
        return from_plain(annotation, value, where)
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is types.UnionType:
        return None if value is None else build(inner[0], value, where)
    if origin is tuple:
        return build_tuple(inner, value, where)
    if origin is dict:
        expect(isinstance(value, dict), "an object", where)
        return {key: build(inner[1], item, f"{where}.{key}") for key, item in value.items()}
    return build_scalar(annotation, value, where)


def build_tuple(inner: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    expect(isinstance(value, list), "a list", where)
    kinds = inner[:1] * len(value) if inner[-1] is Ellipsis else inner
    expect(len(kinds) == len(value), f"a list of {len(kinds)}", where)
    return tuple(build(kind, value[i], f"{where}[{i}]") for i, kind in enumerate(kinds))


def build_scalar(kind: Any, value: Any, where: str) -> Any:
    """A bool is an int to Python but not to us; an int will do for a float."""
    if get_origin(kind) is Literal:
        expect(value in get_args(kind), f"one of {', '.join(map(str, get_args(kind)))}", where)
        return value
    accepted = (int, float) if kind is float else kind
    expect(isinstance(value, accepted) and isinstance(value, bool) is (kind is bool), kind.__name__, where)
    return kind(value)


def expect(fits: bool, what: str, where: str) -> None:
    if not fits:
        raise ForeignError(f"{where} is not {what}")
