"""Answers as hashes: of any values, by the standard library alone; worker.py runs it by its path."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

HASH_BYTES = 6

# Packages whose arrays hold their values; another object with `__array__` computes them for its reader.
LIBRARIES = ("numpy", "torch", "jax", "jaxlib", "tensordict", "pandas")


def hashes(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest(value) for name, value in flat(fields)}


def flat(fields: Mapping[Any, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dictionaries within fields become fields of their own: infos.goals."""
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def digest(value: Any) -> str:
    hashed = hashlib.blake2b(digest_size=HASH_BYTES)
    for piece in pieces(value):
        hashed.update(piece)
    return hashed.hexdigest()


def check_array(cls: type) -> None:
    """Refuse an array that a class of the measured program's own computes when it is read."""
    own = (each for each in cls.__mro__ if each.__module__.partition(".")[0] not in LIBRARIES)
    if any("__array__" in vars(each) for each in own):
        name = f"{cls.__module__}.{cls.__qualname__}"
        raise TypeError(
            f"it returned a {name}, which computes its values when they are read: return a NumPy array"
        )


def pieces(value: Any) -> Iterable[bytes]:
    """A value as bytes that are equal where it is; of an object nobody can look into only its type."""
    if hasattr(value, "__array__"):
        check_array(type(value))
        array = value.__array__()
        if array.dtype == object or not array.shape:
            return pieces(array.tolist())
        return (f"{array.dtype.str} {array.shape} ".encode(), array.tobytes())
    if isinstance(value, (list, tuple, set, frozenset)):
        ordered = value if isinstance(value, (list, tuple)) else sorted(value, key=repr)
        return chain((f"{len(value)} of ".encode(),), chain.from_iterable(map(pieces, ordered)))
    if isinstance(value, Mapping):
        return chain.from_iterable(pieces(item) for item in sorted(value.items(), key=repr))
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return (repr(value).encode(), b";")
    return (type(value).__name__.encode(), b";")
