"""Stacks: time by the chain of callers it was spent in, kept in the format of speedscope."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Frame = tuple[str, str, int]  # Function, file and line

Stack = tuple[Frame, ...]  # From the outermost caller inwards

# What functions without a name are called; one function may define several.
ANONYMOUS = ("<lambda>", "<listcomp>", "<genexpr>", "<setcomp>", "<dictcomp>")

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTime:
    """What a function took, in whatever unit its stacks have."""

    frame: Frame  # At its hottest line
    own: float
    total: float  # With all that it called
    # The part of that in which it worked and did not wait, where that is known.
    total_cpu: float | None = None

    @property
    def place(self) -> str:
        return place(self.frame)


def identity(frame: Frame) -> Frame:
    """Return what two frames of one function have in common; one without a name differs by its line."""
    name, file, line = frame
    return name, file, line if name.endswith(ANONYMOUS) else 0


def functions(found: Mapping[Stack, float], cpu: Mapping[Stack, float] | None = None) -> list[FunctionTime]:
    """Every function, that with most time of its own first; one that calls itself counts once.

    `cpu` is the part of each stack's time in which it worked.
    """
    worked: defaultdict[Frame, float] = defaultdict(float)
    for stack, weight in (cpu or {}).items():
        for each in {identity(frame) for frame in stack}:
            worked[each] += weight
    own: defaultdict[Frame, float] = defaultdict(float)
    lines: dict[Frame, defaultdict[int, float]] = {}
    for stack, weight in found.items():
        own[identity(stack[-1])] += weight
        for each, (_, _, line) in {identity(frame): frame for frame in stack}.items():
            lines.setdefault(each, defaultdict(float))[line] += weight
    told = [
        FunctionTime(
            frame=(*each[:2], max(at, key=at.__getitem__)),
            own=own[each],
            total=sum(at.values()),
            total_cpu=worked[each] if cpu else None,
        )
        for each, at in lines.items()
    ]
    return sorted(told, key=lambda each: (-each.own, -each.total))


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
    seconds: defaultdict[Stack, float] = defaultdict(float)
    for found in read_profiles(path).values():
        for stack, weight in found.items():
            seconds[stack] += weight
    return dict(seconds)


def read_profiles(path: Path) -> dict[str, dict[Stack, float]]:
    """Return the seconds of each stack by profile, of which py-spy writes one per thread."""
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    frames = [
        (each["name"], each.get("file") or "", each.get("line") or 0) for each in content["shared"]["frames"]
    ]
    profiles: defaultdict[str, dict[Stack, float]] = defaultdict(dict)
    for profile in content["profiles"]:
        seconds = profiles[profile.get("name", "")]
        for sample, weight in zip(profile.get("samples", ()), profile.get("weights", ()), strict=True):
            stack = tuple(frames[index] for index in sample)
            seconds[stack] = seconds.get(stack, 0.0) + weight
    return dict(profiles)


def place(frame: Frame) -> str:
    """A frame as a person looks for it: `step (envs/batch.py:120)`."""
    function, file, line = frame
    if not file or file == "~":
        return function
    return f"{function} ({short(file)}:{line})" if line else f"{function} ({short(file)})"


def short(file: str) -> str:
    """The last two parts of a path; they are enough to find it by."""
    return "/".join(Path(file).parts[-2:])
