"""Keeps what Hotloop does today as files under tests/frozen, which tests/frozen/test_frozen.py compares.

`python tools/freeze.py` makes all of them, results included: those take minutes and are measured anew.
`python tools/freeze.py facts exports screens` makes these from the results that are there.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from frozen_facts import FACTS, json_of, judge_again, judge_text, screens
from frozen_runs import FROZEN, KEPT, make_results, scrub

PARTS = ("results", "facts", "exports", "screens")
"""In the order in which they follow from each other; `results` makes `files` as well."""

LEFT_OUT = (".lock", "events.")
"""What the names of a run's files begin with that nothing reads again."""


def freeze(parts: Sequence[str]) -> None:
    """Write parts of what is kept, each in place of what was there."""
    if "results" in parts:
        write_results()
    for path, made in FACTS.items():
        if path.partition("/")[0] in parts:
            write(FROZEN / path, made())
    if "screens" in parts:
        shutil.rmtree(FROZEN / "screens", ignore_errors=True)
        for path, text in screens().items():
            write(FROZEN / path, text)


def write_results() -> None:
    """Run every command, and keep its records, what is judged of them, and the files to be read again."""
    for part in ("results", "files"):
        shutil.rmtree(FROZEN / part, ignore_errors=True)
    index = {}
    with tempfile.TemporaryDirectory(prefix="hotloop-frozen-") as place:
        folder = Path(place)
        for name, words, path in make_results(folder):
            text = judge_text(scrub(path.read_text("utf-8"), folder)).to_json()
            write(FROZEN / "results" / f"{name}.json", text)
            index[name] = {"command": words, **judge_again(text)}
        for name, pattern in KEPT.items():
            keep(next(folder.glob(pattern)), FROZEN / "files" / name, folder)
    write(FROZEN / "results.json", json_of(index))


def keep(source: Path, goal: Path, folder: Path) -> None:
    """Copy a file or a folder to where later versions read it, its texts without what is of this machine."""
    for path in sorted(each for each in (source, *source.rglob("*")) if each.is_file()):
        if path.name.startswith(LEFT_OUT) or path.suffix == ".log":
            continue
        place = goal / path.relative_to(source) if source.is_dir() else goal
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".json":
            write(place, json.dumps(json.loads(scrub(path.read_text("utf-8"), folder)), indent=1) + "\n")
        else:
            shutil.copyfile(path, place)


def write(path: Path, text: str) -> None:
    """Write a file as it is, whatever ends its lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8", newline="")


def main(words: Sequence[str]) -> int:
    """Freeze the parts that are named, or all."""
    strange = [word for word in words if word not in PARTS]
    if strange:
        print(f"there is no part {strange[0]}: expected some of {', '.join(PARTS)}", file=sys.stderr)
        return 64
    freeze(words or PARTS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
