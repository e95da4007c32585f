"""Points in the plane, found by place: kinds of native index with one interface and the same answers."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hotloop.core.errors import InputError, SetupError, unknown
from hotloop.envs.native import load_native

KINDS = ("grid", "hash", "quadtree", "kdtree", "brute")
UPDATES = ("batched", "immediate")
FARTHEST = 1e9  # Coordinates beyond this are refused: float32 tells no neighbours apart there
MOST_KINDS = 64

# Offsets and ids: those of query k are ids[offsets[k] : offsets[k + 1]], ascending.
Found = tuple[NDArray[np.int64], NDArray[np.int32]]


class Index:
    """An index over points [n, 2], which may move; every query takes a batch and one position alike.

    Distances are measured in float32, and what lies exactly on a border is found. With updates="batched"
    moves are kept until the next query, which sorts anew only the region they lie in; "immediate" sorts at
    each.
    """

    def __init__(
        self,
        kind: str,
        points: ArrayLike,
        *,
        kinds: ArrayLike | None = None,
        cell: float | None = None,
        updates: str = "batched",
    ) -> None:
        if kind not in KINDS:
            raise unknown("index", kind, KINDS, f"the kinds are {', '.join(KINDS)}")
        if updates not in UPDATES:
            raise unknown("way of updating", updates, UPDATES, f"there are {', '.join(UPDATES)}")
        places = _rows(points, 2, "points")
        size = 1.0 if cell is None else float(cell)
        if cell is None and len(places) > 1:  # about two points a cell
            width, height = (places.max(axis=0) - places.min(axis=0)).tolist()
            size = math.sqrt(2 * max(width, 1e-3) * max(height, 1e-3) / len(places))
        if not 0 < size < FARTHEST:
            raise InputError(f"cell={cell} does not fit: expected a size above 0")
        module = load_native()
        if module is None:
            raise SetupError(
                "an index is native code, and the native module is not built: install hotloop again"
            )
        self.kind, self.count = kind, len(places)
        self._native: Any = module.PointIndex(
            KINDS.index(kind), places, _kinds(kinds, len(places)), size, updates == "immediate"
        )

    def move(self, ids: ArrayLike, points: ArrayLike) -> None:
        """Put points elsewhere."""
        chosen = np.ascontiguousarray(ids, np.int64).reshape(-1)
        places = _rows(points, 2, "points")
        if len(chosen) != len(places):
            raise InputError(f"{len(chosen)} ids do not fit {len(places)} points")
        if chosen.size and (chosen.min() < 0 or chosen.max() >= self.count):
            raise InputError(f"ids must be from 0 to {self.count - 1}")
        self._native.move(chosen.astype(np.uint32), places)

    def nearby(self, positions: ArrayLike, reach: float, kinds: Iterable[int] | None = None) -> Found:
        """All within reach of each position."""
        if not 0 <= reach <= FARTHEST:
            raise InputError(f"reach={reach} does not fit: expected a number from 0 to {FARTHEST:g}")
        found: Found = self._native.nearby(_rows(positions, 2, "positions"), float(reach), _mask(kinds))
        return found

    def nearest(
        self, positions: ArrayLike, kinds: Iterable[int] | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The nearest to each position, the lowest id of equals, and how far; -1 and inf where none is."""
        places = _rows(positions, 2, "positions")
        wanted = _mask(kinds)
        if not self.count:
            return np.full(len(places), -1, np.int32), np.full(len(places), np.inf, np.float32)
        found: tuple[NDArray[np.int32], NDArray[np.float32]] = self._native.nearest(
            places, 4 * FARTHEST, wanted
        )
        return found

    def range(self, boxes: ArrayLike, kinds: Iterable[int] | None = None) -> Found:
        """All in each box of left, top, right, bottom, whose borders belong to it."""
        found: Found = self._native.range(_rows(boxes, 4, "boxes"), _mask(kinds))
        return found

    @property
    def bytes(self) -> int:
        """The memory of the index itself, without the points."""
        taken: int = self._native.bytes()
        return taken

    @property
    def counters(self) -> dict[str, int]:
        """Rebuilds, partial rebuilds, queries, queries on stale data, and cells touched."""
        counted: dict[str, int] = self._native.counters()
        return counted


def _rows(given: ArrayLike, width: int, what: str) -> NDArray[np.float32]:
    """An array [n, width] of finite float32; one row alone is a batch of one."""
    try:
        rows = np.ascontiguousarray(given, np.float32)
    except (TypeError, ValueError):
        raise InputError(f"{what} are not numbers") from None
    if rows.size == 0:
        rows = rows.reshape(0, width)
    if rows.ndim == 1:
        rows = rows.reshape(1, -1)
    if rows.ndim != 2 or rows.shape[1] != width:
        raise InputError(f"{what} have the shape {rows.shape}: expected [n, {width}]")
    if not (np.abs(rows) <= FARTHEST).all():
        raise InputError(f"{what} must be finite and within {FARTHEST:g}")
    return rows


def _kinds(kinds: ArrayLike | None, count: int) -> NDArray[np.uint8]:
    if kinds is None:
        return np.empty(0, np.uint8)
    given = np.asarray(kinds)
    if given.shape != (count,) or (given < 0).any() or (given >= MOST_KINDS).any():
        raise InputError(f"kinds must be {count} whole numbers from 0 to {MOST_KINDS - 1}")
    return np.ascontiguousarray(given, np.uint8)


def _mask(kinds: Iterable[int] | None) -> int:
    if kinds is None:
        return 2**64 - 1
    chosen: Sequence[int] = tuple(kinds)
    if any(not 0 <= kind < MOST_KINDS for kind in chosen):
        raise InputError(f"kinds must be from 0 to {MOST_KINDS - 1}")
    return sum(1 << kind for kind in set(chosen))
