"""Torch's own events of a few steps, put on the time line of a trace."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hotloop.core.clock import epoch_ns
from hotloop.core.errors import SetupError
from hotloop.core.trace import Slice
from hotloop.lab.tracing import Tracer

CATEGORY = "torch"
FIRST_TRACK = 2_000
MOST_BYTES = 20_000_000
"""Of torch's own trace."""
DRAWN = ("cpu_op", "user_annotation", "kernel", "gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver")


def has_torch() -> bool:
    """Whether anything in this process uses torch: it is never imported for a trace's sake."""
    return "torch" in sys.modules


def watch_torch(play: Callable[[], None], tracer: Tracer) -> None:
    """Play calls one by one under torch's profiler and give the tracer what it saw.

    A window that caught nothing is said in the trace: the steps themselves are in it all the same.
    """
    from hotloop.probes.torch import ACTIVE, WAIT, WARMUP, Window

    zero_ns = epoch_ns()
    with tempfile.TemporaryDirectory(prefix="hotloop-") as folder:
        path = Path(folder) / "torch.json"
        window = Window(path, most_bytes=MOST_BYTES)
        try:
            for _ in range(WAIT + WARMUP + ACTIVE):
                play()
                window.step()
        except SetupError as error:
            tracer.merge([], {}, torch=str(error))
            return
        merge(json.loads(path.read_text(encoding="utf-8")), zero_ns, tracer)


def merge(trace: Mapping[str, Any], zero_ns: int, tracer: Tracer) -> None:
    """Put torch's events onto tracks of their own; `zero_ns` is when our clock was zero."""
    threads = {(event["pid"], event["tid"]) for event in drawn(trace)}
    tracks = {place: FIRST_TRACK + number for number, place in enumerate(sorted(threads, key=str))}
    base_ns = int(trace.get("baseTimeNanoseconds", 0)) - zero_ns
    slices = [slice_of(event, base_ns, tracks[event["pid"], event["tid"]]) for event in drawn(trace)]
    said = f"{len(slices)} events of torch.profiler, in steps that it slowed down; aligned to about 2 µs"
    tracer.merge(slices, {track: f"torch {tid}" for (_, tid), track in tracks.items()}, torch=said)


def drawn(trace: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (event for event in trace["traceEvents"] if event.get("ph") == "X" and event.get("cat") in DRAWN)


def slice_of(event: Mapping[str, Any], base_ns: int, track: int) -> Slice:
    begin_ns = base_ns + round(event["ts"] * 1e3)
    return Slice(event["name"], begin_ns, begin_ns + round(event["dur"] * 1e3), track, CATEGORY, {})
