"""Tapes: seeds and actions, recorded to be played again; a tape and its world decide every byte."""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.files import check_room, whole_bytes, write_new
from hotloop.core.process.lifeline import anchored
from hotloop.core.record.codec import AtLeast, Count, from_plain
from hotloop.core.record.codec import parse as read_json
from hotloop.envs.batch import Batch
from hotloop.envs.episodes import Episodes
from hotloop.envs.open import make
from hotloop.envs.subject import Subject, WholeNumbers

FORMAT = "hotloop tape 1"

# What reading raises where a file is cut off, damaged or of another kind.
DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError),
    *(KeyError, TypeError, AttributeError, ValueError, OverflowError, MemoryError),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a tape says beside its actions."""

    target: str
    parameters: dict[str, Any]  # The world's workload parameters
    seed: Count  # Each env's episodes follow from it
    seed_step: Count = 0  # From one episode's seed to the next; 0 mixes them
    num_envs: Annotated[int, AtLeast(1)]
    limit: Count  # Steps after which an episode was cut off; 0 is never


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tape(Header):
    """Everything needed to play a run again."""

    limit: Count = 0
    # [steps, num_envs, ...]: of our worlds [steps, num_envs, agents], int16 where every action fits.
    actions: NDArray[Any]


FACTS = tuple(each.name for each in fields(Header))


def record(subject: Subject, actions: Sequence[Any], limit: int = 0) -> Tape:
    """The tape of what a subject has played since it was made and reset once."""
    spec = subject.spec
    params = dict(spec.described.params)
    seeds = {name: params.pop(name) for name in ("seed", "seed_step") if name in params}
    return Tape(
        target=spec.same_work.name,
        parameters=params,
        num_envs=spec.num_envs,
        limit=limit,
        actions=narrowed(subject.fold(actions), subject.whole_numbers),
        **seeds,
    )


def narrowed(actions: NDArray[Any], known: WholeNumbers | None) -> NDArray[Any]:
    """Whole numbers as int16 where all of them fit; who plays the tape widens them again."""
    bounds = np.iinfo(np.int16)
    if known is None or not actions.size or actions.min() < bounds.min or actions.max() > bounds.max:
        return actions
    return actions.astype(np.int16)


def replay(tape: Tape, **variants: object) -> Iterator[Batch]:
    """Play a tape on a new batch, which is yielded after its reset and after every step.

    `variants` are settings that change no result: `impl`, `threads`, `profile` and the like.
    """
    seeds = {"seed": tape.seed, "seed_step": tape.seed_step}
    batch = make(tape.target, **tape.parameters, **seeds, num_envs=tape.num_envs, **variants)
    batch.reset()
    episodes = Episodes(batch, tape.limit)
    yield batch
    for actions in tape.actions:
        episodes.step(np.ascontiguousarray(actions, np.int32))
        yield batch


def write(path: Path, tape: Tape) -> None:
    """Write a tape whole or not at all; InputError where the path exists."""
    header = {"format": FORMAT} | {fact: getattr(tape, fact) for fact in FACTS}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.array(json.dumps(header)), actions=tape.actions)
    write_new(path, buffer.getvalue())


def read(path: Path) -> Tape:
    """Read a tape; InputError where there is none, where it is cut off, or where it is something else."""
    try:
        content = whole_bytes(anchored(path))
    except OSError as error:
        raise InputError(f"cannot read the tape {path}: {error.strerror}") from None
    try:
        check_room(content)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return parse(str(arrays["header"]), arrays["actions"])
    except DAMAGES as error:
        raise InputError(f"{path} is not a whole tape of Hotloop: {error}; record it again") from None


def parse(header: str, actions: NDArray[Any]) -> Tape:
    """Put a tape together, refusing parts that do not belong to each other."""
    plain = read_json(header)
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    check_actions(actions)
    if actions.shape[1] != plain.get("num_envs"):
        raise ValueError(f"its actions are {actions.dtype} {list(actions.shape)}")
    facts = from_plain(Header, {name: value for name, value in plain.items() if name != "format"})
    return Tape(**{fact: getattr(facts, fact) for fact in FACTS}, actions=actions)


def check_actions(actions: NDArray[Any]) -> None:
    """Refuse, with ValueError, what is not numbers of steps and envs."""
    if actions.ndim < 2 or actions.dtype.kind not in "iuf":
        raise ValueError(f"its actions are {actions.dtype} {list(actions.shape)}")
    if actions.dtype.kind == "f" and not np.isfinite(actions).all():
        raise ValueError("its actions are not all finite")


def write_played(path: Path, subject: Subject, actions: Sequence[Any]) -> None:
    """Write what was played since the reset."""
    tape = record(subject, actions)
    if not tape.actions.size or tape.actions.dtype.kind not in "iuf":
        raise InputError(f"{subject.spec.name} played nothing that is numbers: it cannot be taped")
    write(path, tape)


def read_for(path: Path, subject: Subject) -> list[Any]:
    """The actions of a tape in the form that a subject takes; InputError where they are not for it."""
    tape = read(path)
    envs = subject.spec.num_envs
    if tape.num_envs != envs:
        raise InputError(
            f"{path} was recorded with {tape.num_envs} envs, not {envs}: give num_envs={tape.num_envs}"
        )
    return [subject.unfold(row) for row in tape.actions]
