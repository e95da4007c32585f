"""Checkpoints: all a run needs to go on as if it had not stopped, in one file that is whole or absent."""

import io
import pickle
import re
import zipfile
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hotloop.core.errors import InputError
from hotloop.core.files import check_room, free_path, whole_bytes, write_new
from hotloop.envs.batch import Batch, unsealed
from hotloop.envs.cuda import DeviceBatch
from hotloop.envs.tapes import DAMAGES
from hotloop.train.ranks import STRIDE, Ranks
from hotloop.train.settings import TrainSettings, family

FORMAT = 1

KEPT = 2  # How many checkpoints stay in a folder: the last one, and the one before it

# What a checkpoint has, and as what.
PARTS: dict[str, Any] = {
    "identity": dict,
    "target": str,
    "settings": dict,
    "steps": int,
    "updates": int,
    "network": dict,
    "optimiser": dict,
    "acting": Tensor,
    "shuffling": Tensor,
    "envs": dict,
}

# What it has beside that, by the family of its algorithm.
PARTS_OF: dict[str, dict[str, Any]] = {
    "ppo": {"memory": (list, type(None)), "begins": Tensor},
    "dqn": {"target_network": dict, "replay": dict, "learned": int},
}

NAME = re.compile(r"checkpoint-(\d+)(?:-\d+)?\.pt")


def write(folder: Path, steps: int, content: Mapping[str, Any], *, to_disk: bool = True) -> Path:
    """Write a checkpoint beside the earlier ones, then drop all but the last two."""
    path = free_path(folder / f"checkpoint-{steps:012d}.pt")
    write_new(path, to_bytes(content), to_disk=to_disk)
    for old in list_checkpoints(folder)[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def to_bytes(content: Mapping[str, Any]) -> bytes:
    file = io.BytesIO()
    torch.save(dict(content), file)
    return file.getvalue()


def clone_tensors(content: Any) -> Any:
    """The same with tensors of its own; deepcopy takes some ten times as long for each of them."""
    if isinstance(content, Tensor):
        return content.detach().clone()
    if isinstance(content, Mapping):
        return {name: clone_tensors(part) for name, part in content.items()}
    if isinstance(content, (list, tuple)):
        return type(content)(map(clone_tensors, content))
    return content


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints of a folder, oldest first."""
    named = [(NAME.fullmatch(path.name), path) for path in folder.glob("checkpoint-*.pt")]
    whole = [(int(match[1]), path.stat().st_mtime_ns, path) for match, path in named if match]
    return [path for _, _, path in sorted(whole)]


def newest(folder: Path) -> Path | None:
    """The last checkpoint of a folder; None where there is none."""
    return next(reversed(list_checkpoints(folder)), None)


def newest_whole(folder: Path) -> tuple[Path | None, list[str]]:
    """The last checkpoint that can be gone on from, and what is wrong with those after it."""
    damaged: list[str] = []
    for path in reversed(list_checkpoints(folder)):
        try:
            read(path)
        except InputError as error:
            damaged.append(str(error))
        else:
            return path, damaged
    return None, damaged


def read(path: Path) -> dict[str, Any]:
    """A checkpoint's content; a folder means its newest checkpoint."""
    if path.is_dir():
        last = newest(path)
        if last is None:
            raise InputError(f"{path} has no checkpoint: expected files like checkpoint-000001000000.pt")
        path = last
    try:
        written = whole_bytes(path)
        check_room(written)
        file = io.BytesIO(written)
        with zipfile.ZipFile(file) as parts:  # which checks what torch writes and does not read
            damaged = parts.testzip()
        if damaged is not None:
            raise ValueError(f"{damaged} is not as it was written")
        file.seek(0)
        content = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: give a checkpoint, or a folder that has one") from None
    except (*DAMAGES, pickle.UnpicklingError, IndexError) as error:
        raise InputError(f"{path} is no checkpoint that can be read: {first_line(error)}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is no checkpoint of this version of Hotloop")
    check_parts(path, content)
    return content


def check_parts(path: Path, content: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that lacks a part, or has one of another kind."""
    settings = content.get("settings")
    algorithm = settings.get("algorithm", "ppo") if isinstance(settings, dict) else "ppo"  # as before DQN
    for name, kind in (PARTS | PARTS_OF[family(algorithm)]).items():
        if not isinstance(content.get(name), kind):
            what = type(content[name]).__name__ if name in content else "nothing"
            raise InputError(f"{path} is damaged: {name} is {what}; go on from an earlier checkpoint")
    try:
        for saved in split_envs(content["envs"]):
            unsealed(saved)
    except (*DAMAGES, InputError) as error:
        raise InputError(f"{path} is damaged: {first_line(error)}") from None


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def identity(batch: Batch, shape: tuple[int, ...]) -> dict[str, Any]:
    """What must be the same for a checkpoint to fit."""
    spec = batch.spec
    layout = spec.layout
    parts: dict[str, Any] = (
        {"parts": [[part.name, *part.shape] for part in layout.parts]} if layout.parts else {}
    )
    if layout.acts is not None:
        parts["acts"] = [*layout.acts.choices, *layout.acts.low, *layout.acts.high]
    return {
        "world": spec.world.name,
        "num_envs": spec.num_envs,
        "agents": spec.agents,
        "seed": spec.seed,
        "num_actions": spec.num_actions,
        "observation": list(shape),
        **parts,
    }


def check_fits(
    path: Path, content: Mapping[str, Any], identity: Mapping[str, Any], settings: TrainSettings
) -> None:
    """Refuse a checkpoint of other envs, or of a family of algorithms that remembers something else."""
    for name, value in identity.items():
        was = content["identity"].get(name)
        if was != value:
            raise InputError(
                f"{path} was made with {name}={was}, and this run has {value}: "
                f"give the same {name}, or begin a new run"
            )
    algorithm = content["settings"].get("algorithm", "ppo")
    if family(algorithm) != family(settings.algorithm):
        raise InputError(
            f"{path} was learned by algorithm={algorithm}, and this run's is {settings.algorithm}: "
            "give the same algorithm, or begin a new run"
        )


def save_envs(batch: Batch) -> dict[str, Tensor]:
    """Return every env of a batch as one array of bytes; none on a GPU or of user code, which begin anew.

    Each env is put back as it was saved, so that players begin to remember anew here just as they will in
    a run that is resumed from it: their memory is not part of an env.
    """
    begins_anew = isinstance(batch, DeviceBatch) or not batch.can_save  # some gigabytes, one by one
    envs = 0 if begins_anew else batch.spec.num_envs
    saved = [batch.save(env) for env in range(envs)]
    for env, one in enumerate(saved):
        batch.load(env, one)
    return pack_envs(saved)


def pack_envs(saved: Sequence[bytes]) -> dict[str, Tensor]:
    """Return the bytes of envs as one array."""
    lengths = torch.tensor([len(one) for one in saved], dtype=torch.int64)
    return {
        "lengths": lengths,
        "bytes": torch.from_numpy(np.frombuffer(bytearray(b"".join(saved)), np.uint8)),
    }


def load_envs(batch: Batch, saved: Mapping[str, Tensor]) -> bool:
    """Put every env back; InputError where one is damaged or they are not as many.

    False where none was saved, and all begin anew.
    """
    envs = split_envs(saved)
    if not envs:
        batch.reset()
        return False
    if len(envs) != batch.spec.num_envs:
        raise InputError(f"the checkpoint has {len(envs)} envs, and this run {batch.spec.num_envs}")
    for env, one in enumerate(envs):
        batch.load(env, one)
    return True


def split_envs(saved: Mapping[str, Tensor]) -> list[bytes]:
    """Each env's bytes; ValueError where their lengths are not those of the whole."""
    content = saved["bytes"].numpy().tobytes()
    lengths: list[int] = saved["lengths"].tolist()
    if any(length < 0 for length in lengths) or sum(lengths) != len(content):
        raise ValueError(f"its envs have {len(content)} bytes")
    ends = list(accumulate(lengths))
    return [content[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def rows_of(mine: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint has of every row of the envs."""
    return {
        "begins": mine["begins"],
        "memory": mine["memory"],
        "running": mine["reward_scale"]["running"],
    }


def join_rows(every: Sequence[Mapping[str, Any]], mine: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rows of several ranks, one rank's behind the other's."""
    memories = [each["memory"] for each in every]
    together = None if memories[0] is None else [torch.cat(parts) for parts in zip(*memories, strict=True)]
    return {
        "begins": torch.cat([each["begins"] for each in every]),
        "memory": together,
        "reward_scale": mine["reward_scale"] | {"running": torch.cat([each["running"] for each in every])},
    }


def share_of(content: Mapping[str, Any], ranks: Ranks) -> Mapping[str, Any]:
    """Return what one rank goes on with, however many there were when it was written."""
    if not ranks.several:
        return content
    envs = split_envs(content["envs"])
    memory, scale, kept = content["memory"], content["reward_scale"], content.get("acting_of", ())
    acting = content["acting"]
    if len(kept) == ranks.size:
        acting = kept[ranks.rank]
    elif not ranks.leads:  # numbers of its own for each, by how far the run is
        seed = content["settings"]["seed"] + STRIDE * ranks.rank + content["steps"]
        acting = torch.Generator().manual_seed(seed % 2**63).get_state()
    return {
        **content,
        "envs": pack_envs(
            envs[ranks.rank * len(envs) // ranks.size : (ranks.rank + 1) * len(envs) // ranks.size]
        ),
        "begins": content["begins"].chunk(ranks.size)[ranks.rank],
        "memory": None if memory is None else [part.chunk(ranks.size)[ranks.rank] for part in memory],
        "reward_scale": scale | {"running": scale["running"].chunk(ranks.size)[ranks.rank]},
        "acting": acting,
    }
