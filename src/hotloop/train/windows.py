"""What steps came to: watched in arrays, added up over a window, and written to the logs when it ends.

A watcher sees the batch's own arrays after every step and runs no Python for each env. A callback for one env
at a time goes through `PerEnv`, at its own cost.

    train_dir/<run>/logs/metrics.jsonl    one object a window, numbers by name
    train_dir/<run>/logs/script.log       one line a window: epoch=10 steps=655360 sps=51234 ...
    train_dir/<run>/tensorboard/          the same numbers

A line goes to the file in one write, so a kill can only tear the last one; opening the file again cuts that
off. A run that is resumed says from which step on in a line of its own, and `read_metrics` leaves out what
was written beyond it before.
"""

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hotloop.core.clock import utc_now
from hotloop.core.errors import InputError
from hotloop.core.record.codec import Count, ForeignError, build, expect, parse, show
from hotloop.envs.batch import Batch
from hotloop.envs.cuda import DeviceBatch
from hotloop.train import load_kernels

if TYPE_CHECKING:
    from hotloop.train.device.windows import DeviceWindows

# Envs whose infos are looked at when a window ends, whether or not an episode of theirs did.
MOST_SAMPLED = 16

RETURNS, LENGTHS = "/returns", "/lengths"  # Columns beside the infos, by names that no info has


class Watcher(Protocol):
    """Something that looks at a batch after each of its steps."""

    def step(self, batch: Batch) -> None:
        """Look at the batch after a step; its arrays are views, rewritten by the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowEpisodes:
    """What a stretch of steps came to."""

    env_steps: int
    episodes: int  # That ended in the window, each counted where its last step is
    # Of their returns, each the mean over its agents: where they come and go, over all there ever were.
    return_sum: float
    return_min: float | None
    return_max: float | None
    length_sum: int
    # The world's infos in the last step of these episodes: means over them.
    infos: Mapping[str, float] = field(default_factory=dict)
    # The world's infos in the window's last step: means over a few envs, for worlds that seldom end.
    sampled: Mapping[str, float] = field(default_factory=dict)

    @property
    def mean_return(self) -> float | None:
        """None where no episode ended."""
        return self.return_sum / self.episodes if self.episodes else None

    @property
    def mean_length(self) -> float | None:
        return self.length_sum / self.episodes if self.episodes else None


class Windows:
    """Adds up returns, lengths and infos; `close` ends a window and begins the next.

    Sums are exact, so that they do not depend on the order in which envs are looked at.
    """

    def __init__(self, batch: Batch) -> None:
        envs, agents = batch.spec.num_envs, batch.spec.agents
        self._returns = np.zeros((envs, agents))
        self._lengths = np.zeros(envs, np.int64)
        self._whole = np.ones(envs, np.bool_)
        """Whether the episode that each env is in was seen from its beginning."""
        self._lives = batch.infos["lives"] if batch.spec.has_empty_rows else None
        """Of each env all agents there ever were, where they come and go."""
        # An info some of whose rows hold no agent is left out: a mean over them says nothing.
        self._infos = {
            name: info
            for name, info in batch.infos.items()
            if info.size > 0 and (info.ndim == 1 or self._lives is None)
        }
        self._means = {name: np.zeros(envs) for name, info in self._infos.items() if info.ndim > 1}
        """Of infos that are several numbers, each env's mean in its last step."""
        self._mean_returns = np.zeros(envs)
        self._low, self._high = math.inf, -math.inf
        self._sums = sums_of(
            {RETURNS: self._mean_returns, LENGTHS: self._lengths, **self._infos, **self._means},
            threads=batch.spec.threads,
        )
        self._calls = self._episodes = 0
        self._sampled = np.unique(np.linspace(0, envs - 1, min(envs, MOST_SAMPLED)).astype(np.int64))

    def step(self, batch: Batch) -> None:
        self._calls += 1
        self._lengths += 1
        self._returns += batch.rewards.reshape(self._returns.shape)
        over = np.flatnonzero(batch.terminals | batch.truncations)
        if over.size:
            counted = over[self._whole[over]]
            if counted.size:
                self._add(counted)
            self._returns[over] = 0
            self._lengths[over] = 0
            self._whole[over] = True

    def _add(self, envs: NDArray[np.int64]) -> None:
        """Add the episodes that ended in some envs; their returns are means over their agents."""
        returns: NDArray[np.float64] = self._returns[envs]
        if self._lives is not None:
            returns = returns.sum(axis=1) / self._lives[envs]
        else:
            returns = returns[:, 0] if returns.shape[1] == 1 else returns.mean(axis=1)
        self._mean_returns[envs] = returns
        self._low, self._high = min(self._low, float(returns.min())), max(self._high, float(returns.max()))
        for name, means in self._means.items():
            means[envs] = row_means(self._infos[name][envs])
        self._sums.add(envs)
        self._episodes += len(envs)

    def close(self) -> WindowEpisodes:
        """What happened since the window before."""
        sums, count = self._sums.take(), self._episodes
        window = WindowEpisodes(
            env_steps=self._calls * len(self._lengths),
            episodes=count,
            return_sum=sums[RETURNS],
            return_min=self._low if count else None,
            return_max=self._high if count else None,
            length_sum=int(sums[LENGTHS]),
            infos={name: sums[name] / count for name in self._infos if count},
            sampled={
                name: fsum(row_means(live[self._sampled])) / len(self._sampled)
                for name, live in self._infos.items()
                if self._calls
            },
        )
        self._calls = self._episodes = 0
        self._low, self._high = math.inf, -math.inf
        return window

    def state(self) -> dict[str, NDArray[Any]]:
        """The episodes that are under way, for a run that is to go on later."""
        return {"returns": self._returns.copy(), "lengths": self._lengths.copy(), "whole": self._whole.copy()}

    def restore(self, state: Mapping[str, NDArray[Any]] | None) -> None:
        """Go on with episodes under way; where they, or a part of them, are not known, they do not count."""
        if state is None or not self.state().keys() <= state.keys():
            self._whole[:] = False
            return
        for name, mine in (("returns", self._returns), ("lengths", self._lengths), ("whole", self._whole)):
            if state[name].shape != mine.shape:
                raise InputError(
                    f"the saved {name} have the shape {state[name].shape}, expected {mine.shape}: "
                    "resume with the same num_envs and agents"
                )
            mine[:] = state[name]


def windows_of(batch: Batch, *, compiled: bool = False) -> "Windows | DeviceWindows":
    """Return what adds up the episodes of a batch: on the host, or on its device, compiled if wanted."""
    if not isinstance(batch, DeviceBatch):
        return Windows(batch)
    from hotloop.train.device.windows import DeviceWindows

    return DeviceWindows(batch, compiled=compiled)


def row_means(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return each row's number, or the mean of those it has, as of agents."""
    if rows.ndim == 1:
        return rows.astype(np.float64)
    means: NDArray[np.float64] = rows.reshape(len(rows), -1).mean(axis=1, dtype=np.float64)
    return means


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvStep:
    """One step of one env, as copies that stay."""

    env: int
    rewards: NDArray[np.float32]  # One an agent
    terminal: bool
    truncated: bool
    info: Mapping[str, Any]  # Of an env that has just finished, or is sampled; else empty


class PerEnv:
    """Serves a callback that wants one env at a time, for those envs that it names."""

    def __init__(
        self, callback: Callable[[EnvStep], None], *, envs: Sequence[int] | None = None, sampled: int = 0
    ) -> None:
        """`envs` are all by default; the first `sampled` of them have infos in every step."""
        self._callback = callback
        self._envs = envs
        self._sampled = sampled

    def step(self, batch: Batch) -> None:
        envs = range(batch.spec.num_envs) if self._envs is None else self._envs
        over = batch.terminals | batch.truncations
        for place, env in enumerate(envs):
            has_info = place < self._sampled or over[env]
            info = {name: np.copy(rows[env]) for name, rows in batch.infos.items()} if has_info else {}
            self._callback(
                EnvStep(
                    env=env,
                    rewards=batch.rewards[env].copy(),
                    terminal=bool(batch.terminals[env]),
                    truncated=bool(batch.truncations[env]),
                    info=info,
                )
            )


# What native code adds up; columns of anything else are kept.
KINDS = tuple(map(np.dtype, ("float32", "float64", "int32", "int64", "uint8", "bool")))

WORTH_SHARING = 32_768  # Envs from which on a crew is worth waking: some hundred microseconds where it sleeps


class NativeSums:
    """Exact sums of the rows of episodes that ended, in native code: columns are read where they are."""

    def __init__(self, module: Any, columns: Mapping[str, NDArray[Any]], *, threads: int) -> None:
        self._columns = dict(columns)
        self._run = module.sums_of(list(self._columns.values()), threads)

    def add(self, rows: NDArray[np.int64]) -> None:
        """Add the present numbers of some rows."""
        self._run.add(rows)

    def take(self) -> dict[str, float]:
        """Return the sums by name, each rounded once; from here on they begin at 0."""
        return dict(zip(self._columns, map(fsum, self._run.take()), strict=True))


class KeptSums:
    """See `NativeSums`: keeps all there is to add, in NumPy."""

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        self._columns = dict(columns)
        self._kept: dict[str, list[NDArray[np.float64]]] = {name: [] for name in columns}

    def add(self, rows: NDArray[np.int64]) -> None:
        for name, live in self._columns.items():
            self._kept[name].append(live[rows].astype(np.float64))

    def take(self) -> dict[str, float]:
        sums = {name: fsum(each for part in kept for each in part) for name, kept in self._kept.items()}
        for kept in self._kept.values():
            kept.clear()
        return sums


def sums_of(columns: Mapping[str, NDArray[Any]], *, threads: int) -> NativeSums | KeptSums:
    """Return what adds up live columns of one length; `threads` work if there is much to add."""
    module = load_kernels()
    readable = all(column.dtype in KINDS and column.flags.c_contiguous for column in columns.values())
    if isinstance(module, ImportError) or not readable:
        return KeptSums(columns)
    envs = max(map(len, columns.values()), default=0)
    return NativeSums(module, columns, threads=threads if envs >= WORTH_SHARING else 1)


METRICS = Path("logs/metrics.jsonl")

SCRIPT = Path("logs/script.log")

TENSORBOARD = Path("tensorboard")

# What the names of numbers begin with that the lines for people leave out.
DETAILS = ("loss/", "info/", "time/")

RESUMED = "resumed"  # The key of a line that says that the run went on from its `steps`

Values = Mapping[str, float | int | str | None]


class LineFile:
    """A text file that grows by whole lines."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        end = os.lseek(self._file, 0, os.SEEK_END)
        whole = os.pread(self._file, end, 0).rfind(b"\n") + 1
        if whole < end:  # a kill tore the last line
            os.ftruncate(self._file, whole)

    def append(self, line: str) -> None:
        text = line.encode() + b"\n"
        written = os.write(self._file, text)
        while written < len(text):
            written += os.write(self._file, text[written:])

    def close(self) -> None:
        os.close(self._file)


class Logs:
    """All logs of one run; what is no number goes to the lines for people only."""

    def __init__(self, folder: Path, *, resumed_at: int | None = None, tensorboard: bool = True) -> None:
        self._metrics = LineFile(folder / METRICS)
        self._script = LineFile(folder / SCRIPT)
        self._board = open_board(folder / TENSORBOARD, resumed_at) if tensorboard else None
        if resumed_at is not None:
            self._metrics.append(json.dumps({RESUMED: True, "steps": resumed_at}))
            self.say(f"resumed steps={resumed_at}")

    def say(self, text: str) -> None:
        """Add a line for people, with the date; further lines of it are indented."""
        self._script.append(f"{utc_now():%Y-%m-%dT%H:%M:%SZ} {text}".replace("\n", "\n    "))

    def write(self, steps: int, values: Values) -> None:
        """Write what a window came to; `steps` are those of the run since its very beginning."""
        numbers: dict[str, Any] = {name: value for name, value in values.items() if is_number(value)}
        finite = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
        self._metrics.append(json.dumps({"steps": steps, **finite}))
        # `epoch=10 steps=655360 sps=51234 return=3.25 ...`: what is not known is left out.
        words = {"epoch": values.get("epoch"), "steps": steps, "sps": values.get("sps"), **values}
        self.say(
            " ".join(
                f"{name}={format_value(value)}"
                for name, value in words.items()
                if value is not None and not name.startswith(DETAILS)
            )
        )
        if self._board is not None:
            for name, value in numbers.items():
                self._board.add_scalar(name, value, steps)
            self._board.flush()

    def close(self) -> None:
        self._metrics.close()
        self._script.close()
        if self._board is not None:
            self._board.close()


def open_board(folder: Path, resumed_at: int | None) -> Any:
    """TensorBoard's writer, which hides what lies beyond the step that a run goes on from."""
    from torch.utils.tensorboard import SummaryWriter

    purge = None if resumed_at is None else resumed_at + 1
    return SummaryWriter(str(folder), purge_step=purge, flush_secs=3600)  # type: ignore[no-untyped-call,unused-ignore]


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def format_value(value: float | str) -> str:
    """Return a number with about four digits, and a text as it is."""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"
    return str(value)


def read_metrics(path: Path, say: Callable[[str], None] = lambda text: None) -> list[dict[str, Any]]:
    """The windows of a run in order; those that a resumed run went over again are left out.

    A last line that a kill tore is left out and said; any other that is none of ours is an InputError, which
    names the line and the field.
    """
    windows: list[dict[str, Any]] = []
    try:
        *whole, torn = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if torn:
        say(f"{path}: its last line was cut off, and is left out")
    for number, line in enumerate(whole, 1):
        found = window_of(line, f"{path}:{number}")
        if found.pop(RESUMED, False):
            windows = [window for window in windows if window["steps"] <= found["steps"]]
        else:
            windows.append(found)
    return windows


def window_of(line: str, place: str) -> dict[str, Any]:
    """One line's numbers by name: `steps`, and whatever else a window has; null is not known."""
    try:
        found: dict[str, Any] = build(dict[str, Any], parse(line), "$")
        expect("steps" in found, "the field steps", None, "$")
        build(Count, found["steps"], "$.steps")
        for name, value in found.items():
            fits = isinstance(value, bool) if name == RESUMED else value is None or is_number(value)
            expect(fits, "bool" if name == RESUMED else "a number", value, f"$.{show(name)}")
    except ForeignError as error:
        raise InputError(f"{place}: {error}") from None
    return found
