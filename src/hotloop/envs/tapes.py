"""Tapes: seeds and actions, recorded to be played again; a tape and its world decide every byte."""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.core.files import write_new
from hotloop.core.settings import by_role
from hotloop.envs.batch import Batch
from hotloop.envs.episodes import Episodes
from hotloop.envs.open import make
from hotloop.envs.subject import Subject

FORMAT = "hotloop tape 1"

FACTS = ("target", "parameters", "seed", "seed_step", "num_envs", "limit")
"""What the header says beside the format."""

DAMAGES = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError),
    *(KeyError, TypeError, AttributeError, ValueError, OverflowError, MemoryError),
)
"""What reading raises where a file is cut off, damaged or of another kind."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tape:
    """Everything needed to play a run again."""

    target: str
    parameters: dict[str, Any]
    """The world's workload parameters."""
    seed: int
    """Each env's episodes follow from it."""
    seed_step: int = 0
    """From one episode's seed to the next; 0 mixes them."""
    num_envs: int
    limit: int = 0
    """Steps after which an episode was cut off; 0 is never."""
    actions: NDArray[Any]
    """[steps, num_envs, ...]: of our worlds [steps, num_envs, agents], int16 where every action fits."""


def record(batch: Batch, actions: Sequence[NDArray[np.int32]], limit: int = 0) -> Tape:
    """The tape of what a batch has played since it was made and reset once."""
    spec = batch.spec
    dtype = np.int16 if spec.num_actions <= np.iinfo(np.int16).max else np.int32
    played: NDArray[Any] = np.array(actions, dtype).reshape(len(actions), spec.num_envs, spec.agents)
    return Tape(
        target=spec.target,
        parameters=by_role(spec.parameters, "workload"),
        seed=spec.settings.seed,
        seed_step=spec.settings.seed_step,
        num_envs=spec.num_envs,
        limit=limit,
        actions=played,
    )


def replay(tape: Tape, **variants: object) -> Iterator[Batch]:
    """Play a tape on a new batch, which is yielded after its reset and after every step.

    `variants` are settings that change no result: `impl`, `threads`, `profile` and the like.
    """
    seeds = {"seed": tape.seed, "seed_step": tape.seed_step}
    batch = make(tape.target, **tape.parameters, **seeds, num_envs=tape.num_envs, **variants)
    batch.reset()
    yield batch
    episodes = Episodes(batch, tape.limit)
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
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the tape {path}: {error.strerror}") from None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return parse(str(arrays["header"]), arrays["actions"])
    except DAMAGES as error:
        raise InputError(f"{path} is not a whole tape of Hotloop: {error}; record it again") from None


def parse(header: str, actions: NDArray[Any]) -> Tape:
    """Put a tape together, refusing parts that do not belong to each other."""
    facts = {"seed_step": 0} | json.loads(header)
    if facts.pop("format", None) != FORMAT:
        raise ValueError(f"its format is not {FORMAT!r}")
    if actions.ndim < 2 or actions.shape[1] != facts["num_envs"] or actions.dtype.kind not in "iuf":
        raise ValueError(f"its actions are {actions.dtype} {list(actions.shape)}")
    return Tape(**{fact: facts[fact] for fact in FACTS}, actions=actions)


def write_played(path: Path, subject: Subject, actions: Sequence[Any]) -> None:
    """Write what was played since the reset."""
    if isinstance(subject, Batch):
        write(path, record(subject, actions))
        return
    spec = subject.spec
    rows = [flat(each) for each in actions]
    try:
        played = np.array(rows)
    except ValueError:
        played = np.array(None)
    if not rows or played.dtype.kind not in "iuf":
        raise InputError(f"the actions of {spec.name} do not make one array of numbers: they cannot be taped")
    shape = played.shape if spec.num_envs > 1 else (len(rows), 1, *played.shape[1:])
    params = {key: value for key, value in spec.described.params.items() if key != "seed"}
    tape = Tape(
        target=spec.name,
        parameters=params,
        seed=spec.seed,
        num_envs=spec.num_envs,
        actions=played.reshape(shape),
    )
    write(path, tape)


def flat(actions: Any) -> Any:
    """One call's actions without the names of agents, in their order."""
    return list(actions.values()) if isinstance(actions, dict) else actions


def read_for(path: Path, subject: Subject) -> list[Any]:
    """The actions of a tape in the form that a subject takes; InputError where they are not for it."""
    tape = read(path)
    envs = subject.spec.num_envs
    if tape.num_envs != envs:
        raise InputError(
            f"{path} was recorded with {tape.num_envs} envs, not {envs}: give num_envs={tape.num_envs}"
        )
    return [unfold(subject, row) for row in tape.actions]


def unfold(subject: Subject, row: NDArray[Any]) -> Any:
    """One call's actions from a row [num_envs, ...] of a tape."""
    if isinstance(subject, Batch):
        return np.ascontiguousarray(row, np.int32)
    kind = getattr(subject.spec, "kind", "")
    if kind == "pettingzoo parallel":
        agents = subject.env.possible_agents  # type: ignore[attr-defined]
        return dict(zip(agents, (plain_action(each) for each in row[0]), strict=True))
    return plain_action(row[0]) if subject.spec.num_envs == 1 and kind != "gymnasium vector" else row


def plain_action(value: NDArray[Any]) -> Any:
    """A whole number by itself is an int, as an env may insist."""
    return int(value) if value.ndim == 0 and value.dtype.kind in "iu" else value
