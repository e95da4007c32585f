"""Tapes of any subject: its actions as one array, and back again."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotloop.core.errors import InputError
from hotloop.envs import tapes
from hotloop.envs.batch import Batch
from hotloop.envs.subject import Subject
from hotloop.envs.tapes import Tape


def write(path: Path, subject: Subject, actions: Sequence[Any]) -> None:
    """Write what was played since the reset."""
    if isinstance(subject, Batch):
        tapes.write(path, tapes.record(subject, actions))
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
    tapes.write(path, tape)


def flat(actions: Any) -> Any:
    """One call's actions without the names of agents, in their order."""
    return list(actions.values()) if isinstance(actions, dict) else actions


def read(path: Path, subject: Subject) -> list[Any]:
    """The actions of a tape in the form that a subject takes; InputError where they are not for it."""
    tape = tapes.read(path)
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
        return dict(zip(agents, (plain(each) for each in row[0]), strict=True))
    return plain(row[0]) if subject.spec.num_envs == 1 and kind != "gymnasium vector" else row


def plain(value: NDArray[Any]) -> Any:
    """A whole number by itself is an int, as an env may insist."""
    return int(value) if value.ndim == 0 and value.dtype.kind in "iu" else value
