# Written by tools/stubs.py from hotloop.train._kernels as it was built.

from collections.abc import Sequence
from typing import Annotated, Any

import numpy
from numpy.typing import NDArray

class Crew:
    @property
    def name(self) -> str: ...
    def scale(
        self,
        arg0: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu", writable=False)],
        arg1: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu", writable=False)],
        arg2: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu", writable=False)],
        arg3: float,
        arg4: Annotated[NDArray[numpy.float32], dict(order="C", device="cpu")],
        /,
    ) -> None: ...
    def choose(
        self,
        arg0: Annotated[
            NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        arg1: Annotated[
            NDArray[numpy.bool_], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ]
        | None,
        arg2: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg3: Annotated[NDArray[numpy.int32], dict(shape=(None,), order="C", device="cpu")],
        arg4: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu")],
        arg5: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        /,
    ) -> None: ...
    def learn(
        self,
        arg0: Annotated[
            NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        arg1: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg2: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg3: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg4: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg5: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg6: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)],
        arg7: Annotated[
            NDArray[numpy.bool_], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ]
        | None,
        arg8: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None,
        arg9: float,
        arg10: float,
        arg11: float,
        arg12: float,
        arg13: bool,
        arg14: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
        arg15: Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
        /,
    ) -> tuple[float, float, float, float, float, float]: ...
    def move(
        self,
        arg0: Sequence[
            tuple[
                Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
                Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
                Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
                Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
            ]
        ],
        arg1: float,
        arg2: float,
        arg3: float,
        arg4: float,
        arg5: float,
        arg6: float,
        /,
    ) -> float: ...

class Network:
    def __init__(self, arg0: Sequence[int], arg1: Sequence[int], /) -> None: ...
    def pack(
        self,
        arg0: Crew,
        arg1: Sequence[
            tuple[
                Annotated[
                    NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
                ],
                Annotated[
                    NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu", writable=False)
                ],
            ]
        ],
        /,
    ) -> None: ...
    def forward(
        self,
        arg0: Crew,
        arg1: Annotated[
            NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        arg2: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None,
        arg3: Sequence[Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")]],
        arg4: bool,
        /,
    ) -> None: ...
    def backward(
        self,
        arg0: Crew,
        arg1: Annotated[
            NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
        ],
        arg2: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)]
        | None,
        arg3: Sequence[
            Annotated[
                NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu", writable=False)
            ]
        ],
        arg4: Sequence[
            tuple[
                Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")],
                Annotated[NDArray[numpy.float32], dict(shape=(None,), order="C", device="cpu")],
            ]
        ],
        arg5: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order="C", device="cpu")] | None,
        /,
    ) -> None: ...

class Sums:
    def add(
        self,
        arg: Annotated[NDArray[numpy.int64], dict(shape=(None,), order="C", device="cpu", writable=False)],
        /,
    ) -> None: ...
    def take(self) -> list[list[float]]: ...

def sums_of(
    arg0: Sequence[Annotated[NDArray[Any], dict(shape=(None,), order="C", device="cpu", writable=False)]],
    arg1: int,
    /,
) -> Sums: ...
def make(arg0: str, arg1: int, arg2: int, /) -> Crew: ...
def find_openmp(arg: str, /) -> int: ...

MOST_ACTIONS: int

NAMES: tuple[str, ...]
