"""What a training run is told: a target, what its batch is made with, and the settings of the trainer.

    prospector num_envs=256 train.update_epochs=4 train.eval.every=10

Keys of the batch and of the world are bare. `train.` keys are the trainer's; one of them that is nobody
else's may be bare, too.
"""

import fcntl
import io
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_origin

import numpy as np
from numpy.typing import NDArray

from hotloop.core import registry
from hotloop.core.clock import utc_now
from hotloop.core.errors import Code, InputError, Notice, WriteError, notice, unknown
from hotloop.core.files import check_room, free_path, whole_bytes, write_new
from hotloop.core.process.lifeline import anchored
from hotloop.core.record import file_name
from hotloop.core.record.codec import from_plain, parse
from hotloop.core.record.metadata import Described
from hotloop.core.settings import Target, apply, by_role, describe, hash_of, names_code
from hotloop.envs.batch import Batch
from hotloop.envs.foreign.training import GYM, open_trainable
from hotloop.envs.open import make
from hotloop.envs.spec import BatchSettings
from hotloop.envs.tapes import DAMAGES
from hotloop.train.settings import (
    Around,
    EvalSettings,
    ProfilerSettings,
    TrainSettings,
    check_crew,
    check_ranks,
    check_sizes,
    family,
    replay_fault,
    usual_for,
)

PREFIX = "train."

# A number of them, as other trainers have it, becomes a size once the rollout's is known
MINIBATCHES, MINIBATCH_SIZE = "num_minibatches", f"{PREFIX}minibatch_size"

# Fields of RunSettings: what the names of their keys begin with after `train.`, and who reads the rest
PARTS: Mapping[str, tuple[str, type]] = {
    "train": ("", TrainSettings),
    "around": ("", Around),
    "eval": ("eval.", EvalSettings),
    "profiler": ("profiler.", ProfilerSettings),
}

NUM_ENVS = 256  # By default: four minibatches of the usual size in the usual rollout
FOREIGN_ENVS = 8  # Of user envs, which are stepped one after another


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """All that a run is made from."""

    target: Target  # With the keys of the batch and of its world alone
    train: TrainSettings
    around: Around = field(default_factory=Around)
    eval: EvalSettings = field(default_factory=EvalSettings)
    profiler: ProfilerSettings = field(default_factory=ProfilerSettings)
    notices: tuple[Notice, ...] = ()

    @property
    def timed(self) -> bool:
        return self.around.timing != "off"

    @property
    def carried(self) -> Path | None:
        """The folder that travels with it to other machines: the current one where code of it is used."""
        train, words = self.train, (self.target.name, *self.target.keys.values())
        return Path.cwd() if names_code((*words, train.network, train.teacher)) else None

    def open(self) -> Batch:
        """The batch that is trained on; its phases are timed where the run's are and the host steps it.

        On a GPU a step that times its phases waits for them: there the tree has its steps as a whole.
        """
        if self.target.is_foreign:
            return open_trainable(self.target)
        timed = self.timed and not in_gpu_memory(self.target)
        return make(self.target.name, **{"profile": timed, **self.target.keys})

    def described(self, batch: Batch) -> Described:
        """What a record says of it: the batch's own keys, and those of the training."""
        mine = batch.spec.described
        if self.train.ranks > 1:  # the batch is one rank's share
            envs = int(str(self.target.keys["num_envs"]))
            mine = replace(mine, variant=mine.variant | {"num_envs": envs}, keys=dict(self.target.keys))
        parts = {PREFIX: self.train, f"{PREFIX}eval.": self.eval}
        workload = mine.params | values_by_role(parts, "workload")
        return replace(
            mine,
            params=workload,
            variant=mine.variant | values_by_role(parts, "variant"),
            workload_hash=hash_of(mine.name, workload),
        )


def values_by_role(parts: Mapping[str, Any], role: Any) -> dict[str, object]:
    """The values of one role, by the names they are typed as."""
    values: dict[str, object] = {}
    for prefix, part in parts.items():
        for name, value in by_role(part, role).items():
            values[prefix + name] = list(value) if isinstance(value, tuple) else value
    return values


def is_training(target: Target) -> bool:
    """Whether a key of the trainer is among those that were given."""
    return any(key.startswith(PREFIX) for key in target.keys)


def keys_of_lists() -> set[str]:
    """The trainer's keys whose one value may have commas in it, as they are typed."""
    return {
        f"{PREFIX}{prefix}{info.name}"
        for prefix, cls in PARTS.values()
        for info in describe(cls)
        if get_origin(info.annotation) is tuple
    }


def read(target: Target) -> RunSettings:
    """Sort keys to who reads them and check them; what is too small for one rollout is cut to size."""
    target = with_minibatch_size(target)
    parts = sort_keys(target)
    keys = {"num_envs": FOREIGN_ENVS if target.is_foreign else NUM_ENVS, **parts["target"]}
    if "autoreset" in keys:
        raise InputError("leave out autoreset=: a run begins every next episode by itself")
    if in_gpu_memory(target):
        parts["train"] = {"device": "cuda", **parts["train"]}
    parts["train"] = usual_for(parts["train"])
    made: dict[str, Any] = {part: apply(cls, parts[part]) for part, (_, cls) in PARTS.items()}
    asked = RunSettings(target=Target(target.name, keys), **made)
    agents = agents_of(asked.target)
    is_dqn = family(asked.train.algorithm) == "dqn"
    if is_dqn and not {"num_envs", "buffer_size"} & {*parts["target"], *parts["train"]}:
        # As many of the usual envs as DQN's usual replay has room for.
        envs = num_envs_of(asked)
        while envs > 1 and replay_fault(asked.train, envs * agents):
            envs //= 2
        asked = replace(asked, target=asked.target.with_keys({"num_envs": envs}))
    if target.is_foreign and "minibatch_size" not in parts["train"]:
        # About four minibatches a rollout: the usual size is for the many envs of a world of ours.
        train = asked.train
        samples = num_envs_of(asked) * train.num_steps * agents
        size = largest_divisor(samples, max(samples // 4, 1), train.num_steps if train.lstm else 1)
        asked = replace(asked, train=replace(train, minibatch_size=size))
    settings = fit(asked, agents)
    envs = num_envs_of(settings)
    check_sizes(settings.train, envs * agents)
    check_ranks(settings.train, envs)
    check_crew(settings.train, envs)
    return settings


def num_envs_of(settings: RunSettings) -> int:
    """Return how many envs the batch has; InputError if that is no number of envs."""
    return apply(BatchSettings, {"num_envs": settings.target.keys["num_envs"]}).num_envs


def with_minibatch_size(target: Target) -> Target:
    """The same with a size of minibatches, if their number was given."""
    if MINIBATCHES not in target.keys:
        return target
    keys = {key: value for key, value in target.keys.items() if key != MINIBATCHES}
    count = str(target.keys[MINIBATCHES])
    if not count.isdecimal():
        raise InputError(f"{MINIBATCHES}={count} does not fit: expected int of at least 1")
    settings = read(Target(target.name, {**keys, MINIBATCH_SIZE: "1"}))
    samples = per_update(settings) * agents_of(settings.target)
    size = samples // int(count) if int(count) else 0
    return replace(target, keys={**keys, MINIBATCH_SIZE: str(size)})


def in_gpu_memory(target: Target) -> bool:
    """Whether the arrays of its batch are tensors on a GPU, and so the network has to be there, too."""
    told: dict[str, object] = {
        name: target.keys[name] for name in ("device", "host_views") if name in target.keys
    }
    options = apply(BatchSettings, told)
    return options.device == "cuda" and not options.host_views and not target.is_foreign


def with_full_names(target: Target) -> Target:
    """The same with `train.` before every key that is the training's."""
    parts = sort_keys(target)
    ours = {
        f"{PREFIX}{prefix}{name}": value
        for part, (prefix, _) in PARTS.items()
        for name, value in parts[part].items()
    }
    return Target(target.name, {**parts["target"], **ours})


def sort_keys(target: Target) -> dict[str, dict[str, object]]:
    """Keys by who reads them: `target` for the batch and the world, else a field of RunSettings."""
    ours = {  # what is typed after `train.`, to the field of RunSettings and the name there
        prefix + info.name: (part, info.name)
        for part, (prefix, cls) in PARTS.items()
        for info in describe(cls)
    }
    if target.is_foreign:
        theirs = {key for key in target.keys if key not in ours and not key.startswith(PREFIX)}
        theirs |= {"num_envs", "seed"}
    else:
        parameters = registry.find(target.name).world.parameters
        theirs = {info.name for cls in (BatchSettings, parameters) for info in describe(cls)}
    found: dict[str, dict[str, object]] = {"target": {}, **{part: {} for part in PARTS}}
    for key, value in target.keys.items():
        part, name = ("target", key) if key in theirs else ours.get(key.removeprefix(PREFIX), ("", ""))
        if not part:
            known = [*theirs, *(PREFIX + each for each in ours)]
            raise unknown("key", key, known, f"hotloop train {target.name} --keys lists them")
        if name in found[part]:
            raise InputError(f"{key} is given twice, with {PREFIX} and without: give it once")
        found[part][name] = value
    return found


def fit(settings: RunSettings, agents: int) -> RunSettings:
    """Where all steps there are do not make one rollout, make the rollout smaller, and say so."""
    train, envs = settings.train, num_envs_of(settings)
    asked = envs * train.num_steps
    if train.total_timesteps >= asked:
        return settings
    envs = min(envs, train.total_timesteps)
    steps = train.total_timesteps // envs
    target = settings.target.with_keys({"num_envs": envs})
    samples = envs * steps * agents
    size = largest_divisor(samples, train.minibatch_size, steps if train.lstm else 1)
    said = notice(Code.SHRUNK, total=train.total_timesteps, envs=envs, steps=steps)
    smaller = replace(train, num_steps=steps)
    if family(train.algorithm) == "ppo":
        smaller = replace(smaller, minibatch_size=size)
    return replace(settings, target=target, train=smaller, notices=(*settings.notices, said))


def check_trace(asked: ProfilerSettings, updates: int) -> None:
    """Refuse a window that the run would end before."""
    if asked.enabled and updates < asked.rollouts:
        raise InputError(
            f"train.profiler needs {asked.rollouts} rollouts (wait_steps + warmup_steps + active_steps) and "
            f"the run has {updates}: give more total_timesteps, or shorten the window"
        )


def per_update(settings: RunSettings) -> int:
    """Env-steps of one rollout."""
    return int(str(settings.target.keys["num_envs"])) * settings.train.num_steps


def updates_of(settings: RunSettings) -> int:
    """Updates that the whole run takes."""
    return -(-settings.train.total_timesteps // per_update(settings))


def agents_of(target: Target) -> int:
    """How many there are in an env of a target."""
    if target.name.startswith(GYM):
        return 1
    one = {**target.keys, "num_envs": 1}
    if target.is_foreign:
        alone = {key: value for key, value in one.items() if key not in ("vector", "workers")}
        try:
            batch: Batch = open_trainable(Target(target.name, dict(alone)))
        except InputError:  # its number of envs is fixed
            batch = open_trainable(target)
    else:
        batch = make(target.name, **one)
    batch.close()
    return batch.spec.agents


def largest_divisor(samples: int, most: int, unit: int) -> int:
    """The largest size up to `most` that divides the samples and is a multiple of a unit."""
    fitting = (size for size in range(min(most, samples), 0, -1) if samples % size == 0 and size % unit == 0)
    return next(fitting, unit)


ROOT = Path("train_dir")

SETTINGS = "settings.json"

CHECKPOINTS = "checkpoints"

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

WINDOWS = ".windows.npz"  # Beside a checkpoint: the episodes under way, for their returns to go on counting


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedCommand:
    """What `settings.json` says."""

    target: str
    words: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFolder:
    """One run's folder."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def place(self) -> Path:
        """Return the same, whatever folder user code has gone to meanwhile."""
        return anchored(self.folder)

    @property
    def checkpoints(self) -> Path:
        return self.place / CHECKPOINTS

    @property
    def trace(self) -> Path:
        """Where the next trace goes."""
        return free_path(self.place / "trace.json")

    def told(self) -> Target:
        """What the run was begun with."""
        path = self.folder / SETTINGS
        try:
            told = from_plain(TypedCommand, parse(path.read_text(encoding="utf-8")))
            return Target(told.target, told.words)
        except FileNotFoundError:
            raise InputError(
                f"there is no run {self.name} in {self.folder.parent}: leave out --resume to begin it"
            ) from None
        except (OSError, ValueError) as error:
            raise InputError(f"{path} cannot be read: {error}; begin a new run") from None

    def claim(self, target: Target) -> None:
        """Make the folder of a new run, and keep what it was told."""
        text = json.dumps({"target": target.name, "words": target.keys}, indent=1, default=str) + "\n"
        try:
            write_new(self.folder / SETTINGS, text)
        except OSError as error:
            with suppress(OSError):  # what is left of it would take the name
                self.folder.rmdir()
            raise WriteError(f"cannot write to {self.folder}: {error.strerror}") from error

    def lock(self) -> Any:
        """Keep others from training into the folder for as long as the file that this gives is open."""
        file = (self.folder / ".lock").open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise InputError(
                f"run {self.name} is being trained by another process: wait, or give another run="
            ) from None
        return file


def begin_run(root: Path, name: str | None, target: str) -> RunFolder:
    """The folder of a new run, which is not made yet; refuses a name that is taken."""
    chosen = name or f"{file_name(target).lstrip('-.')}-{utc_now():%Y%m%d-%H%M%S}"
    folder = folder_of(root, chosen) if name else free_path(folder_of(root, chosen))
    if folder.exists():
        raise InputError(
            f"run {chosen} exists in {root} and is never overwritten: --resume goes on with it, "
            "or give another run="
        )
    return RunFolder(folder=folder)


def find_run(root: Path, name: str | None) -> RunFolder:
    """The folder of a run that is to go on."""
    if name is None:
        raise InputError("--resume needs the run's name: give run=NAME")
    run = RunFolder(folder=folder_of(root, name))
    run.told()
    return run


def last_checkpoint(run: RunFolder) -> tuple[Path, list[str]]:
    """What a run goes on from, and what is wrong with the checkpoints after it."""
    from hotloop.train.checkpoint import newest_whole

    whole, damaged = newest_whole(run.checkpoints)
    if whole is None and damaged:
        raise InputError(f"run {run.name} has no whole checkpoint: {damaged[0]}; begin a new run")
    if whole is None:
        raise InputError(f"run {run.name} has no checkpoint: it ended before its first; begin a new run")
    return whole, damaged


def folder_of(root: Path, name: str) -> Path:
    if not NAME.fullmatch(name):
        raise InputError(f"run={name} does not fit: expected letters, digits, and . _ - in between")
    return root / name


def keep_windows(checkpoint: Path, state: Mapping[str, NDArray[Any]]) -> None:
    """Keep the episodes under way beside a checkpoint, and drop those of checkpoints that are gone."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = dict(state)
    np.savez(buffer, **arrays)
    write_new(windows_path(checkpoint), buffer.getvalue())
    for path in checkpoint.parent.glob(f"*{WINDOWS}"):
        if not path.with_name(path.name.removesuffix(WINDOWS) + ".pt").exists():
            path.unlink(missing_ok=True)


def read_windows(checkpoint: Path) -> dict[str, NDArray[Any]] | None:
    """The episodes that were under way; None where a kill came before they were written, or they are damaged.

    Nothing is trained on them; without them those episodes do not count.
    """
    try:
        content = whole_bytes(windows_path(checkpoint))
        check_room(content)
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except DAMAGES:
        return None


def windows_path(checkpoint: Path) -> Path:
    return checkpoint.with_name(checkpoint.stem + WINDOWS)
