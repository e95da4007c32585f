"""Files beside a record: accepted changes of speed, and frames of a tape or a bundle."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from json import dumps
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.files import small_text, write_new
from hotloop.core.record.codec import Count, ForeignError, from_plain, parse
from hotloop.core.record.record import file_name

ACCEPTED_SUFFIX = ".accepted.json"  # What the name of the file ends in; the rest is the run's


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A run from which on a new level is the right one."""

    run_id: str
    why: str
    created: str  # ISO 8601, UTC


def accept(folder: Path, run_id: str, why: str) -> Path:
    """Write down that the level since a run is accepted; refuses where that was said before."""
    path = folder / f"{file_name(run_id)}{ACCEPTED_SUFFIX}"
    if path.exists():
        raise InputError(f"{run_id} is accepted already: remove {path} to give another reason")
    note = Accepted(run_id=run_id, why=why, created=datetime.now(UTC).isoformat(timespec="seconds"))
    write_new(path, dumps(asdict(note), indent=1) + "\n")
    return path


def read_accepted(path: Path) -> Accepted:
    """Read what was accepted; InputError where the file says something else."""
    try:
        return from_plain(Accepted, parse(small_text(path)))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, ForeignError) as error:
        raise InputError(f"{path}: no accepted change: {error}") from None


FRAMES_SUFFIX = ".frames.json"  # What the name of the file ends in; the rest is the tape's

FORMAT = "hotloop frames 1"

PICTURE = "data:image/png;base64,"  # What a picture begins with: nothing else is ever shown as one


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One moment: a picture, or words where a world draws none."""

    step: Count
    picture: str | None = None
    text: str | None = None
    note: str | None = None  # Why somebody would jump to it


@dataclass(frozen=True, slots=True, kw_only=True)
class Frames:
    """The moments that were kept, in their order."""

    format: str = FORMAT
    target: str
    title: str
    frames: tuple[Frame, ...]


def write_frames(path: Path, frames: Frames) -> None:
    write_new(path, json.dumps(asdict(frames)) + "\n")


def read_frames(path: Path) -> Frames:
    """Read frames; InputError where the file holds something else."""
    try:
        found = from_plain(Frames, parse(small_text(path)))
        check_frames(found)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except (UnicodeDecodeError, ForeignError) as error:
        raise InputError(f"{path}: no frames: {error}") from None
    return found


def check_frames(frames: Frames) -> None:
    """Refuse another format, and pictures that are none."""
    if frames.format != FORMAT:
        raise ForeignError(f"$.format: expected {FORMAT!r}, got {frames.format!r:.40}")
    for index, frame in enumerate(frames.frames):
        if frame.picture is not None and not frame.picture.startswith(PICTURE):
            raise ForeignError(f"$.frames[{index}].picture: expected a PNG, got {frame.picture!r:.40}")
