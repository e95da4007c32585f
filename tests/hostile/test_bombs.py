"""Small archives that would fill a machine's memory: refused by what they say, before they are read."""

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hotloop.core import files
from hotloop.core.errors import InputError
from hotloop.core.files import check_room
from hotloop.envs import tapes
from hotloop.lab.training.settings import read_windows, windows_path
from hotloop.lab.validate.bundle import read_bundle

ROOM = 1 << 20


def packed(**parts: np.ndarray) -> bytes:
    """An archive of arrays, as small as it gets."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **parts)  # type: ignore[arg-type]
    return buffer.getvalue()


BOMB = packed(
    actions=np.zeros((1, 4, 1 << 20), np.int32), header=np.array("{}"), facts=np.array("{}"), a=np.zeros(1)
)
"""Sixteen MiB of zeros."""


def checkpoint(path: Path) -> object:
    return pytest.importorskip("hotloop.train.checkpoint").read(path)


READERS: dict[str, Callable[[Path], object]] = {
    "tape": tapes.read,
    "bundle": read_bundle,
    "checkpoint": checkpoint,
}


@pytest.fixture(autouse=True)
def small_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROOM", ROOM)


@pytest.mark.parametrize("kind", READERS)
def test_what_would_unpack_to_too_much_is_not_unpacked(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a part was opened")

    path = tmp_path / "checkpoint-1.pt"
    path.write_bytes(BOMB)
    monkeypatch.setattr(zipfile.ZipFile, "open", opened)
    with pytest.raises(InputError, match=r"[\d,]+ bytes would unpack to 16 MiB, which none of ours does"):
        READERS[kind](path)


def test_windows_of_a_run_that_would_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-1.pt"
    windows_path(path).write_bytes(packed(a=np.zeros(9)))
    assert read_windows(path) is not None
    windows_path(path).write_bytes(BOMB)
    assert read_windows(path) is None


def test_what_is_large_itself_may_unpack_to_much() -> None:
    noise = np.random.default_rng(1).integers(0, 6, (400, 4096), np.int16)
    assert noise.nbytes > 3 * ROOM
    check_room(packed(actions=noise))


def test_many_names_of_one_part_count_as_many() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(40):
            archive.writestr(str(number), bytes(ROOM // 10))
    with pytest.raises(ValueError, match="would unpack to 3 MiB"):
        check_room(buffer.getvalue())
