"""Checkpoints: all a run needs to go on as if it had not stopped, in one file that is whole or absent."""

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from hotloop.core.errors import InputError
from hotloop.core.files import free_path, write_new
from hotloop.envs.batch import Batch

FORMAT = 1

KEPT = 2
"""How many checkpoints stay in a folder: the last one, and the one before it."""

NAME = re.compile(r"checkpoint-(\d+)(?:-\d+)?\.pt")


def write(folder: Path, steps: int, content: Mapping[str, Any]) -> Path:
    """Write a checkpoint beside the earlier ones, then drop all but the last two."""
    path = free_path(folder / f"checkpoint-{steps:012d}.pt")
    write_new(path, packed(content))
    for old in found(folder)[:-KEPT]:
        old.unlink(missing_ok=True)
    return path


def packed(content: Mapping[str, Any]) -> bytes:
    file = io.BytesIO()
    torch.save(dict(content), file)
    return file.getvalue()


def found(folder: Path) -> list[Path]:
    """The checkpoints of a folder, oldest first."""
    named = [(NAME.fullmatch(path.name), path) for path in folder.glob("checkpoint-*.pt")]
    whole = [(int(match[1]), path.stat().st_mtime_ns, path) for match, path in named if match]
    return [path for _, _, path in sorted(whole)]


def newest(folder: Path) -> Path | None:
    """The last checkpoint of a folder; None where there is none."""
    return next(reversed(found(folder)), None)


def read(path: Path) -> dict[str, Any]:
    """A checkpoint's content; a folder means its newest checkpoint."""
    if path.is_dir():
        last = newest(path)
        if last is None:
            raise InputError(f"{path} has no checkpoint: expected files like checkpoint-000001000000.pt")
        path = last
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: give a checkpoint, or a folder that has one") from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} is no checkpoint that can be read: {first_line(error)}") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"{path} is no checkpoint of this version of Hotloop")
    return content


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def identity(batch: Batch, shape: tuple[int, ...]) -> dict[str, Any]:
    """What must be the same for a checkpoint to fit."""
    spec = batch.spec
    return {
        "world": spec.world.name,
        "num_envs": spec.num_envs,
        "agents": spec.agents,
        "seed": spec.seed,
        "num_actions": spec.num_actions,
        "observation": list(shape),
    }


def check_fits(path: Path, was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for name, value in now.items():
        if was[name] != value:
            raise InputError(
                f"{path} was made with {name}={was[name]}, and this run has {value}: "
                f"give the same {name}, or begin a new run"
            )


def save_envs(batch: Batch) -> dict[str, Tensor]:
    """Every env of a batch, as one array of bytes.

    Each env is put back as it was saved, so that players begin to remember anew here just as they will in
    a run that is resumed from it: their memory is not part of an env.
    """
    saved = [batch.save(env) for env in range(batch.spec.num_envs)]
    for env, one in enumerate(saved):
        batch.load(env, one)
    lengths = torch.tensor([len(one) for one in saved])
    return {"lengths": lengths, "bytes": torch.frombuffer(bytearray(b"".join(saved)), dtype=torch.uint8)}


def load_envs(batch: Batch, saved: Mapping[str, Tensor]) -> None:
    content = saved["bytes"].numpy().tobytes()
    at = 0
    for env, length in enumerate(saved["lengths"].tolist()):
        batch.load(env, content[at : at + length])
        at += length
