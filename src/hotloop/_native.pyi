# Written by tools/stubs.py from hotloop._native as it was built.

from typing import Annotated, Any

import numpy
from numpy.typing import NDArray

COMPILER: str

FLAGS: str

ISA: str

WORLDS: tuple[str, ...]

def clock_name() -> str: ...
def mark_ns() -> float: ...

INDEX_KINDS: tuple[str, ...]

class PointIndex:
    def __init__(
        self,
        arg0: int,
        arg1: Annotated[
            NDArray[numpy.float32], dict(shape=(None, 2), order="C", device="cpu", writable=False)
        ],
        arg2: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg3: float,
        arg4: bool,
        /,
    ) -> None: ...
    def move(
        self,
        arg0: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg1: Annotated[
            NDArray[numpy.float32], dict(shape=(None, 2), order="C", device="cpu", writable=False)
        ],
        /,
    ) -> None: ...
    def nearby(
        self,
        arg0: Annotated[
            NDArray[numpy.float32], dict(shape=(None, 2), order="C", device="cpu", writable=False)
        ],
        arg1: float,
        arg2: int,
        /,
    ) -> tuple[Any, ...]: ...
    def range(
        self,
        arg0: Annotated[
            NDArray[numpy.float32], dict(shape=(None, 4), order="C", device="cpu", writable=False)
        ],
        arg1: int,
        /,
    ) -> tuple[Any, ...]: ...
    def nearest(
        self,
        arg0: Annotated[
            NDArray[numpy.float32], dict(shape=(None, 2), order="C", device="cpu", writable=False)
        ],
        arg1: float,
        arg2: int,
        /,
    ) -> tuple[Any, ...]: ...
    def bytes(self) -> int: ...
    def counters(self) -> dict[str, Any]: ...

def make(
    arg0: str,
    arg1: dict[str, Any],
    arg2: int,
    arg3: int,
    arg4: int,
    arg5: bool,
    arg6: bool,
    arg7: int,
    arg8: int,
    /,
) -> Batch: ...

class Batch:
    def step(
        self, arg: Annotated[NDArray[numpy.int32], dict(order="C", device="cpu", writable=False)], /
    ) -> None: ...
    def choose(
        self,
        arg0: int,
        arg1: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order="C", device="cpu")],
        /,
    ) -> None: ...
    def lend(self, arg: int, /) -> None: ...
    def players(self) -> list[str]: ...
    def arrays(self) -> dict[str, Any]: ...
    def reset(
        self,
        arg: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None,
        /,
    ) -> None: ...
    def reset_many(
        self,
        arg0: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg1: Annotated[NDArray[numpy.uint64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None,
        /,
    ) -> None: ...
    def digest(self, arg: int, /) -> int: ...
    def save(self, arg: int, /) -> bytes: ...
    def load(self, arg0: int, arg1: bytes, /) -> None: ...
    def fork(self, arg0: int, arg1: int, /) -> None: ...
    def picture(self, arg: int, /) -> Any: ...
    def counters(self) -> list[tuple[str, int]]: ...
    def shadow(self) -> tuple[int, int]: ...
    def mismatches(self, arg: int, /) -> list[Any]: ...
    def phase_names(self) -> list[str]: ...
    def phase_ns(self, arg: bool, /) -> list[float]: ...
    def step_ns(self, arg: bool, /) -> float: ...
    def keep_log(self, arg: int, /) -> None: ...
    def take_log(self) -> Any: ...
