"""Changes of speed that somebody accepted: written beside the records, never into them."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from json import dumps
from pathlib import Path

from hotloop.core.errors import InputError
from hotloop.core.files import small_text, write_new
from hotloop.core.record.plain import ForeignError, from_plain, parse
from hotloop.core.record.record import file_name

SUFFIX = ".accepted.json"
"""What the name of the file ends in; the rest is the run's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A run from which on a new level is the right one."""

    run_id: str
    why: str
    created: str
    """ISO 8601, UTC."""


def accept(folder: Path, run_id: str, why: str) -> Path:
    """Write down that the level since a run is accepted; refuses where that was said before."""
    path = folder / f"{file_name(run_id)}{SUFFIX}"
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
