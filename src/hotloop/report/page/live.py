"""Trainings that are under way, as far as their logs say it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hotloop.core.clock import utc_now
from hotloop.report.page.trend import Curve, Plot

LOGS = "*/logs/metrics.jsonl"  # Where runs write what each window came to, below the folder of runs
RUNNING_S = 120  # Seconds since the last line, within which a run is still going
MOST = 400  # Windows that are drawn, the latest

# Numbers of a window that have a plot of their own; losses share one.
DRAWN = {
    "sps": "env-steps/s",
    "return": "return",
    "eval_return": "return in evaluation",
    "agreement": "agreement with the teacher",
}

LOSS, TIME = "loss/", "time/"

Window = Mapping[str, Any]


def trainings(folder: Path) -> list[dict[str, Any]]:
    """Every run that wrote lately: its title, its tree and its plots."""
    now = utc_now().timestamp()
    logs = [path for path in folder.glob(LOGS) if now - path.stat().st_mtime < RUNNING_S]
    told = ((path, windows(path)) for path in sorted(logs))
    return [training(path.parents[1].name, found) for path, found in told if found]


def windows(path: Path) -> list[Window]:
    """The latest lines that are whole; a run that went on leaves out what it had beyond."""
    found: list[Window] = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            window = json.loads(line)
        except ValueError:
            continue
        if not isinstance(window, dict) or not isinstance(window.get("steps"), int):
            continue
        if window.get("resumed"):
            found = [each for each in found if each["steps"] <= window["steps"]]
        else:
            found.append(window)
    return found[-MOST:]


def training(name: str, found: Sequence[Window]) -> dict[str, Any]:
    last = found[-1]
    return {
        "title": f"{name}: {last['steps']:,} steps",
        "about": "where the last window's time went, in ms",
        "tree": "\n".join(tree(last)),
        "plots": [plot.data | {"title": f"{words} by env-steps"} for words, plot in plots(found)],
    }


def plots(found: Sequence[Window]) -> Iterator[tuple[str, Plot]]:
    """What each shows, and its curves over the steps."""
    steps = tuple(float(each["steps"]) for each in found)
    for key, words in DRAWN.items():
        if any(key in each for each in found):
            yield words, Plot(x=steps, series=(curve(found, key, words),))
    losses = sorted({key for each in found for key in each if key.startswith(LOSS)})
    if losses:
        yield (
            "losses",
            Plot(x=steps, series=tuple(curve(found, key, key.removeprefix(LOSS)) for key in losses)),
        )


def curve(found: Sequence[Window], key: str, words: str) -> Curve:
    return Curve(name=words, values=tuple(number(each.get(key)) for each in found))


def number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def tree(window: Window) -> Iterator[str]:
    """Where the time of the last window went, the whole first."""
    for key, value in window.items():
        if key.startswith(TIME) and (told := number(value)) is not None:
            path = key.removeprefix(TIME)
            name = f"{'  ' * path.count('/')}{path.rpartition('/')[2]}"
            yield f"{name:<34} {told:>12,.2f}"
