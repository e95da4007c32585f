"""Stacks: time by the chain of callers it was spent in, kept in the format of speedscope."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Frame = tuple[str, str, int]
"""Function, file and line."""

Stack = tuple[Frame, ...]
"""From the outermost caller inwards."""

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(path: Path, name: str, seconds: Mapping[Stack, float]) -> None:
    """Write the seconds of each stack as one profile that speedscope opens."""
    frames = {frame: index for index, frame in enumerate({frame: 0 for stack in seconds for frame in stack})}
    described = [{"name": what, "file": file, "line": line} for what, file, line in frames]
    profile = {
        "type": "sampled",
        "name": name,
        "unit": "seconds",
        "startValue": 0,
        "endValue": sum(seconds.values()),
        "samples": [[frames[frame] for frame in stack] for stack in seconds],
        "weights": list(seconds.values()),
    }
    content = {"$schema": SCHEMA, "shared": {"frames": described}, "profiles": [profile], "name": name}
    path.write_text(json.dumps(content), encoding="utf-8")


def read(path: Path) -> dict[Stack, float]:
    """The seconds of each stack of a speedscope file, over all its profiles of samples."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    frames = [
        (each["name"], each.get("file") or "", each.get("line") or 0) for each in content["shared"]["frames"]
    ]
    seconds: dict[Stack, float] = {}
    for profile in content["profiles"]:
        for sample, weight in zip(profile.get("samples", ()), profile.get("weights", ()), strict=True):
            stack = tuple(frames[index] for index in sample)
            seconds[stack] = seconds.get(stack, 0.0) + weight
    return seconds


def place(frame: Frame) -> str:
    """A frame as a person looks for it: `step (envs/batch.py:120)`."""
    function, file, line = frame
    if not file or file == "~":
        return function
    return f"{function} ({short(file)}:{line})"


def short(file: str) -> str:
    """The last two parts of a path; they are enough to find it by."""
    return "/".join(Path(file).parts[-2:])
