"""Values as messages between two processes of ours: JSON with raw bytes of arrays, and no pickles.

A pickle runs code where it is read, and what one side of a comparison answers may be anybody's.
"""

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import HotloopError, InputError
from hotloop.core.machine import need

KIND = "\0"  # The key that marks a value with a type of its own; no other mapping has it

OURS = "hotloop."


@dataclass(frozen=True, slots=True)
class Opaque:
    """An object of a library, by its type and its own text: its equals have both."""

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text


def send(line: Connection, value: object) -> None:
    """Send a value; InputError if it has a part that cannot pass."""
    buffers: list[bytes] = []
    text = json.dumps(encode(value, buffers))
    line.send_bytes(json.dumps([len(each) for each in buffers]).encode())
    line.send_bytes(text.encode())
    for each in buffers:
        line.send_bytes(each)


def receive(line: Connection) -> Any:
    """Return the next value; EOFError if the other process has ended."""
    sizes = json.loads(line.recv_bytes())
    text = line.recv_bytes()
    buffers = [line.recv_bytes() for _ in sizes]
    return decode(json.loads(text), buffers)


def encode(value: Any, buffers: list[bytes]) -> Any:
    """Return a value as JSON; the bytes of its arrays join the buffers."""
    cls = type(value)
    if value is None or cls in (bool, int, float, str):
        return value
    if cls.__module__.startswith(OURS):
        return encode_own(value, buffers)
    for types, encoder in ENCODERS:
        if isinstance(value, types):
            return encoder(value, buffers)
    if (cls.__module__, cls.__name__) == ("torch", "Tensor"):
        return {KIND: "tensor", "value": encode_array(value.detach().cpu().numpy(), buffers)}
    if getattr(value, "__module__", "").startswith(OURS) and hasattr(value, "__qualname__"):
        return {KIND: "name", "class": f"{value.__module__}:{value.__qualname__}"}
    return {KIND: "opaque", "kind": f"{cls.__module__}.{cls.__qualname__}", "text": str(value)}


def encode_own(value: Any, buffers: list[bytes]) -> Any:
    """Return a value of one of Hotloop's own classes, by the class's name and its fields."""
    cls = type(value)
    name = f"{cls.__module__}:{cls.__qualname__}"
    if isinstance(value, Enum):
        return {KIND: "enum", "class": name, "name": value.name}
    if isinstance(value, HotloopError):
        return {KIND: "error", "class": name, "text": str(value)}
    if isinstance(value, tuple):  # named
        return {KIND: "named", "class": name, "items": [encode(each, buffers) for each in value]}
    if is_dataclass(value) and not isinstance(value, Opaque):
        own = {each.name: encode(getattr(value, each.name), buffers) for each in fields(value) if each.init}
        return {KIND: "dataclass", "class": name, "fields": own}
    raise InputError(f"a {getattr(value, 'kind', cls.__name__)} cannot pass between processes")


def encode_array(array: NDArray[Any], buffers: list[bytes]) -> dict[str, Any]:
    if array.dtype.hasobject:
        items = [encode(each, buffers) for each in array.ravel().tolist()]
        return {KIND: "objects", "shape": array.shape, "items": items}
    buffers.append(array.tobytes())
    described = np.lib.format.dtype_to_descr(array.dtype)
    return {KIND: "array", "dtype": described, "shape": array.shape, "buffer": len(buffers) - 1}


def encode_bytes(value: bytes, buffers: list[bytes]) -> dict[str, Any]:
    buffers.append(bytes(value))
    return {KIND: "bytes", "buffer": len(buffers) - 1}


def encode_dict(value: Mapping[Any, Any], buffers: list[bytes]) -> dict[str, Any]:
    items = [[encode(key, buffers), encode(each, buffers)] for key, each in value.items()]
    return {KIND: "dict", "items": items}


def encode_items(value: Any, buffers: list[bytes]) -> dict[str, Any]:
    kind = next(each for each in (tuple, set, frozenset) if isinstance(value, each))
    return {KIND: kind.__name__, "items": [encode(each, buffers) for each in value]}


def encode_generator(value: Any, buffers: list[bytes]) -> dict[str, Any]:
    if isinstance(value, np.random.Generator):
        kind, state = "generator", value.bit_generator.state
    elif isinstance(value, np.random.RandomState):
        kind, state = "legacy", value.get_state(legacy=False)
    else:
        kind, state = "python", value.getstate()
    return {KIND: kind, "state": encode(state, buffers)}


ENCODERS: tuple[tuple[Any, Callable[[Any, list[bytes]], Any]], ...] = (
    (np.ndarray, encode_array),
    (np.generic, lambda value, buffers: {KIND: "number", "value": encode_array(np.asarray(value), buffers)}),
    ((bytes, bytearray), encode_bytes),
    ((dict, MappingProxyType), encode_dict),
    (list, lambda value, buffers: [encode(each, buffers) for each in value]),
    ((tuple, set, frozenset), encode_items),
    # Subclasses of plain values, such as the enumerations of a library.
    (int, lambda value, _: int(value)),
    (float, lambda value, _: float(value)),
    (str, lambda value, _: str.__str__(value)),
    (Path, lambda value, _: {KIND: "path", "text": str(value)}),
    ((np.random.Generator, np.random.RandomState, random.Random), encode_generator),
)


def decode(value: Any, buffers: list[bytes]) -> Any:
    """Return the value that `encode` made JSON of."""
    if isinstance(value, list):
        return [decode(each, buffers) for each in value]
    if not isinstance(value, dict):
        return value
    return DECODERS[value[KIND]](value, buffers)


def decode_array(value: Mapping[str, Any], buffers: list[bytes]) -> NDArray[Any]:
    dtype = np.lib.format.descr_to_dtype(value["dtype"])
    return np.frombuffer(buffers[value["buffer"]], dtype).reshape(value["shape"]).copy()


def decode_objects(value: Mapping[str, Any], buffers: list[bytes]) -> NDArray[Any]:
    array = np.empty(len(value["items"]), object)
    array[:] = decode_items(value, buffers)
    return array.reshape(value["shape"])


def decode_items(value: Mapping[str, Any], buffers: list[bytes]) -> list[Any]:
    return [decode(each, buffers) for each in value["items"]]


def decode_dataclass(value: Mapping[str, Any], buffers: list[bytes]) -> Any:
    own = {name: decode(each, buffers) for name, each in value["fields"].items()}
    return own_class(value)(**own)


def own_class(value: Mapping[str, Any]) -> Any:
    """Return a class or function of Hotloop's own by its name."""
    module, _, name = value["class"].partition(":")
    found: Any = import_module(module) if module.startswith(OURS) else None
    for part in name.split("."):
        found = getattr(found, part)
    return found


def decode_error(value: Mapping[str, Any], _: list[bytes]) -> HotloopError:
    cls = own_class(value)
    assert issubclass(cls, HotloopError)
    error: HotloopError = cls.__new__(cls)
    error.args = (value["text"],)
    return error


def decode_tensor(value: Mapping[str, Any], buffers: list[bytes]) -> Any:
    return need("torch").from_numpy(decode(value["value"], buffers))


def decode_generator(value: Mapping[str, Any], buffers: list[bytes]) -> np.random.Generator:
    state = decode(value["state"], buffers)
    bits = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)


def decode_legacy(value: Mapping[str, Any], buffers: list[bytes]) -> np.random.RandomState:
    generator = np.random.RandomState()
    generator.set_state(decode(value["state"], buffers))
    return generator


def decode_python(value: Mapping[str, Any], buffers: list[bytes]) -> random.Random:
    generator = random.Random()
    generator.setstate(decode(value["state"], buffers))
    return generator


DECODERS: dict[str, Callable[[Mapping[str, Any], list[bytes]], Any]] = {
    "array": decode_array,
    "objects": decode_objects,
    "tensor": decode_tensor,
    "name": lambda value, _: own_class(value),
    "number": lambda value, buffers: decode(value["value"], buffers)[()],
    "bytes": lambda value, buffers: buffers[value["buffer"]],
    "dict": lambda value, buffers: dict(decode_items(value, buffers)),
    "tuple": lambda value, buffers: tuple(decode_items(value, buffers)),
    "set": lambda value, buffers: set(decode_items(value, buffers)),
    "frozenset": lambda value, buffers: frozenset(decode_items(value, buffers)),
    "path": lambda value, _: Path(value["text"]),
    "generator": decode_generator,
    "legacy": decode_legacy,
    "python": decode_python,
    "enum": lambda value, _: own_class(value)[value["name"]],
    "error": decode_error,
    "named": lambda value, buffers: own_class(value)(*decode_items(value, buffers)),
    "dataclass": decode_dataclass,
    "opaque": lambda value, _: Opaque(value["kind"], value["text"]),
}
