"""Conversion of what a person writes, or a program passes, into the type a parameter declares."""

import math
import numbers
import types
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin

WORDS_FOR_TRUE = ("true", "yes", "1")
WORDS_FOR_FALSE = ("false", "no", "0")
WORD_FOR_NONE = "none"


def convert(annotation: Any, given: object) -> Any:
    """Turn text or an object into the annotated type; an error where that would lose or invent something.

    Known are int, float, bool, str, tuples of one of them (`tuple[int, ...]`, in text `1,2`), and each
    of these `| None`.
    """
    if is_optional(annotation):
        return None if is_none(given) else convert(without_none(annotation), given)
    if get_origin(annotation) is tuple:
        return tuple(convert(get_args(annotation)[0], item) for item in items_of(given))
    return READERS[annotation](given)


def name_of(annotation: Any) -> str:
    """The type as a person would write it."""
    if is_optional(annotation):
        return f"{name_of(without_none(annotation))} or {WORD_FOR_NONE}"
    if get_origin(annotation) is tuple:
        item = name_of(get_args(annotation)[0])
        return f"{item},{item},..."
    return "true or false" if annotation is bool else str(annotation.__name__)


def is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


def without_none(annotation: Any) -> Any:
    return next(choice for choice in get_args(annotation) if choice is not type(None))


def is_none(given: object) -> bool:
    return given is None or (isinstance(given, str) and given.lower() == WORD_FOR_NONE)


def items_of(given: object) -> Sequence[object]:
    if isinstance(given, str):
        return given.split(",")
    if isinstance(given, Sequence):
        return given
    raise TypeError(given)


def number(given: object, kind: type) -> Any:
    """Text, or a number of this kind; NumPy's are, a bool is not."""
    if isinstance(given, str) or (isinstance(given, kind) and not isinstance(given, bool)):
        return given
    raise TypeError(given)


def read_int(given: object) -> int:
    return int(number(given, numbers.Integral))


def read_float(given: object) -> float:
    value = float(number(given, numbers.Real))
    if not math.isfinite(value):
        raise ValueError(given)
    return value


def read_bool(given: object) -> bool:
    word = str(given).lower()
    if word in WORDS_FOR_TRUE:
        return True
    if word in WORDS_FOR_FALSE:
        return False
    raise ValueError(given)


def read_str(given: object) -> str:
    if isinstance(given, str):
        return given
    raise TypeError(given)


READERS = {int: read_int, float: read_float, bool: read_bool, str: read_str}
