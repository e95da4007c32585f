"""Bundles: a difference with all that it takes to see it again, in one file."""

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.code import version
from hotloop.core.errors import InputError
from hotloop.core.files import free_path, write_new
from hotloop.core.plain import ForeignError, from_plain
from hotloop.core.validation import BUNDLE_FORMAT, Facts
from hotloop.envs.tapes import DAMAGES
from hotloop.lab.shadowing import Saved

SUFFIX = ".bundle"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bundle:
    """A tape that two sides answer differently."""

    facts: Facts
    actions: NDArray[Any]
    """[steps, num_envs, ...], the last step the one that differs."""
    start: Saved | None = None
    """The states the tape begins in; None where it begins with a reset."""
    last_good: Saved | None = None
    """Both sides before the last step; None where they cannot be saved."""


def write(bundle: Bundle, path: Path) -> Path:
    """Write a bundle whole or not at all, under the first free name."""
    free = free_path(path)
    arrays: dict[str, Any] = {"facts": np.array(json.dumps(asdict(bundle.facts))), "actions": bundle.actions}
    for name in ("start", "last_good"):
        arrays |= packed(name, getattr(bundle, name))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_new(free, buffer.getvalue())
    return free


def packed(name: str, saved: Saved | None) -> dict[str, NDArray[np.uint8]]:
    """States as arrays, `last_good.0.3` being the fourth env of the reference."""
    return {
        f"{name}.{side}.{env}": np.frombuffer(state, np.uint8)
        for side, states in enumerate(saved or ())
        for env, state in enumerate(states)
    }


def unpacked(name: str, arrays: Mapping[str, NDArray[Any]], keys: Sequence[str]) -> Saved | None:
    sides: list[tuple[bytes, ...]] = []
    for side in range(2):
        count = sum(key.startswith(f"{name}.{side}.") for key in keys)
        sides.append(tuple(arrays[f"{name}.{side}.{env}"].tobytes() for env in range(count)))
    return (sides[0], sides[1]) if sides[0] and sides[1] else None


def read(path: Path) -> Bundle:
    """Read a bundle; InputError where there is none, where it is damaged, or of another version."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the bundle {path}: {error.strerror}") from None
    if not zipfile.is_zipfile(io.BytesIO(content)):
        raise InputError(f"{path} is not a bundle of Hotloop: validate writes one where two sides differ")
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return parse(path, arrays)
    except InputError:
        raise
    except DAMAGES as error:
        raise InputError(f"{path} is not a whole bundle of Hotloop: {error}; validate again") from None


def parse(path: Path, arrays: Any) -> Bundle:
    """Put a bundle together; refuses one whose code was another, since its states mean something else."""
    if "facts" not in arrays.files:
        raise InputError(f"{path} is not a bundle of Hotloop: validate writes one where two sides differ")
    plain = json.loads(str(arrays["facts"]))
    wrote, wrote_format = plain.get("version"), plain.get("format")
    if (wrote, wrote_format) != (version(), BUNDLE_FORMAT):
        raise InputError(
            f"{path} is from another version, Hotloop {wrote} (format {wrote_format}), "
            f"and this is {version()} (format {BUNDLE_FORMAT}): replay it with that one, or validate again"
        )
    try:
        facts = from_plain(Facts, plain, "bundle")
    except ForeignError as error:
        raise InputError(f"{path} is not a whole bundle of Hotloop: {error}; validate again") from None
    return Bundle(
        facts=facts,
        actions=arrays["actions"],
        start=unpacked("start", arrays, arrays.files),
        last_good=unpacked("last_good", arrays, arrays.files),
    )
