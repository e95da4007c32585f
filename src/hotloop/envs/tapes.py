"""Episodes of a batch, and tapes: seeds and actions, recorded to be played again.

A tape and its world decide every byte.
"""

import io
import json
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
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
from hotloop.envs.open import make
from hotloop.envs.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One episode that is over."""

    env: int
    length: int  # In steps
    # Sum of rewards, as the mean over its agents: where they come and go, over all there ever were.
    return_per_agent: float
    cut: bool  # Whether it was cut off before its end
    terminal: bool = False  # Whether the world's rules ended it
    outcomes: Mapping[str, float] = field(default_factory=dict)  # What it came to by the world's own measures


class Episodes:
    """Steps a batch that resets itself, and keeps the account of its episodes."""

    def __init__(self, batch: Batch, limit: int = 0, watched: Iterable[str] = ()) -> None:
        self._batch = batch
        self._limit = limit
        self.told = {info: np.zeros_like(batch.infos[info]) for info in watched}
        """Watched infos as the last step left them; in the batch, an episode that was cut off is gone."""
        self.ages = np.zeros(batch.spec.num_envs, np.int64)
        """Steps of the episode each env is in."""
        self.returns = np.zeros((batch.spec.num_envs, batch.spec.agents))
        """Rewards of the episode each env is in, by agent."""

    def step(self, actions: NDArray[np.int32]) -> list[Episode]:
        """Step every env; returns the episodes that ended, or were cut off after `limit` steps."""
        batch = self._batch
        batch.step(actions)
        self.ages += 1
        for info, told in self.told.items():
            np.copyto(told, batch.infos[info])
        self.returns += batch.rewards.reshape(self.returns.shape)
        ended = batch.terminals | batch.truncations
        cut = ~ended & (self.ages >= self._limit) if self._limit else np.zeros_like(ended)
        over = np.flatnonzero(ended | cut)
        if not over.size:
            return []
        episodes = [self._episode(env, cut=bool(cut[env])) for env in over.tolist()]
        self.ages[over] = 0
        self.returns[over] = 0
        if cut.any():
            batch.reset_many(np.flatnonzero(cut))
        return episodes

    def _episode(self, env: int, *, cut: bool) -> Episode:
        spec, infos = self._batch.spec, self._batch.infos
        lives = int(infos["lives"][env]) if spec.has_empty_rows else 0
        return Episode(
            env=env,
            length=int(self.ages[env]),
            return_per_agent=float(self.returns[env].sum()) / (lives or spec.agents),
            cut=cut,
            terminal=bool(self._batch.terminals[env]) and not cut,
            outcomes={name: float(infos[each.info][env]) for name, each in spec.world.outcomes.items()},
        )


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
    rows, bounds = subject.fold(actions), np.iinfo(np.int16)
    # Whole numbers as int16 where all of them fit; what plays the tape widens them again.
    if (
        subject.whole_numbers is not None
        and rows.size
        and bounds.min <= rows.min() <= rows.max() <= bounds.max
    ):
        rows = rows.astype(np.int16)
    return Tape(
        target=spec.same_work.name,
        parameters=params,
        num_envs=spec.num_envs,
        limit=limit,
        actions=rows,
        **seeds,
    )


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
