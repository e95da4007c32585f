"""hotloop.run: a run around a loop of one's own, its record, page and trace, and sinks for its numbers."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from hotloop.core.clock import utc_now
from hotloop.core.errors import HotloopError, InputError, unknown
from hotloop.core.files import save
from hotloop.core.machine import need
from hotloop.core.record import Record
from hotloop.core.time_tree import Trace, tree_text
from hotloop.lab.loop.record import STEPS, UPDATES, LoopWindow
from hotloop.lab.loop.run import DisabledRun, LoopOptions, Run, Timing
from hotloop.report.files import TRACE, run_page, trace_files
from hotloop.report.kinds.train import run_text

FOLDER = Path(".design")

SWITCH = "HOTLOOP_RUN"  # The environment variable that switches every run off

OFF = ("0", "off", "false", "no")

Say = Callable[[str], None]


PREFIX = "hotloop/"  # Before every name, so that they stand together


class Sink(Protocol):
    """Takes the numbers of a window."""

    def log(self, values: Mapping[str, float], step: int) -> None: ...

    def close(self) -> None: ...


class TensorBoard:
    """Scalars in a folder of TensorBoard's."""

    def __init__(self, folder: Path) -> None:
        need("tensorboard")
        from hotloop.train.windows import open_board

        self._board = open_board(folder, None)

    def log(self, values: Mapping[str, float], step: int) -> None:
        for name, value in values.items():
            self._board.add_scalar(f"{PREFIX}{name}", value, step)
        self._board.flush()

    def close(self) -> None:
        self._board.close()


class Wandb:
    """The run of Weights & Biases that is open; it keeps its own steps, ours are beside the numbers."""

    def __init__(self) -> None:
        self._run: Any = need("wandb").run
        if self._run is None:
            raise InputError("sink 'wandb' needs a run of W&B: call wandb.init before hotloop.run")

    def log(self, values: Mapping[str, float], step: int) -> None:
        told = {f"{PREFIX}{name}": value for name, value in values.items()}
        self._run.log({**told, f"{PREFIX}step": step})

    def close(self) -> None:
        """The run is its owner's to finish."""


class Mlflow:
    """The run of MLflow that is active."""

    def __init__(self) -> None:
        self._mlflow: Any = need("mlflow")
        if self._mlflow.active_run() is None:
            raise InputError("sink 'mlflow' needs a run of MLflow: call mlflow.start_run before hotloop.run")

    def log(self, values: Mapping[str, float], step: int) -> None:
        # A metric is a file there, and cannot be the folder of another.
        fitting = {re.sub(r"[^\w\-. ]", "_", name.replace("/", ".")): value for name, value in values.items()}
        self._mlflow.log_metrics({f"{PREFIX}{name}": value for name, value in fitting.items()}, step=step)

    def close(self) -> None:
        """The run is its owner's to end."""


def open_sinks(asked: Sequence[str | Sink], run: str) -> list[Sink]:
    """Open sinks by name, or as they are; refuses what is not installed before anything is trained."""
    known: dict[str, Callable[[], Sink]] = {
        "tensorboard": lambda: TensorBoard(Path("runs") / re.sub(r"[^\w.-]+", "-", run)),
        "wandb": Wandb,
        "mlflow": Mlflow,
    }
    opened: list[Sink] = []
    for each in [asked] if isinstance(asked, str) else asked:
        if isinstance(each, str) and each not in known:
            raise unknown(
                "sink", each, known, f"there are {', '.join(known)}, and objects with log and close"
            )
        opened.append(known[each]() if isinstance(each, str) else each)
    return opened


class AnyRun(Protocol):
    """What `hotloop.run` gives, switched on or off."""

    @property
    def record(self) -> Record | None:
        """Of the whole run, once it has ended; None where it is switched off."""

    def count(self, *, updates: int = 0, steps: int = 0, samples: int = 0) -> None: ...

    def phase(self, name: str, /) -> AbstractContextManager[object]: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...

    def __iter__(self) -> Iterator[int]: ...


def run(  # noqa: PLR0913 - one argument a choice, all but the name with a default
    name: str,
    *,
    every: int = 10,
    updates: int | None = None,
    params: Mapping[str, Any] | None = None,
    variant: Mapping[str, Any] | None = None,
    timing: Timing = "auto",
    wait: Callable[[], None] | None = None,
    cpu: bool = True,
    sinks: Sequence[str | Sink] = (),
    output: str | Path | None = FOLDER,
    say: Say | None = None,
    expect: Mapping[str, tuple[float, float]] | None = None,
    profiler: Mapping[str, int] | None = None,
) -> AnyRun:
    """Say where the time of a loop goes, and keep a record of it.

        with hotloop.run("my-ppo", every=10) as run:
            for _ in range(100):
                with hotloop.span("collect"): ...
                with hotloop.span("learn"): ...
                run.count(steps=2048, updates=1)

    or `for update in hotloop.run("my-ppo", updates=100)`, which counts the updates itself. Spans and marks
    inside go to its tree, of which one update's part is printed `every` so many updates. At the end there
    are a page, a record and a trace in the folder `output`; None writes nothing. An error in the loop, or
    Ctrl-C, leaves a record marked partial and goes on its way.

    `params` are what changes results: runs that differ in them are unlike; `variant` is what must not.
    `timing`: `events` on the stream where torch works on a GPU (`auto` takes them there), `sync` waits for
    the GPU at every boundary, `host` reads the host's clock and says so. `wait` is called at every boundary,
    for whatever else computes behind its caller. `cpu` has spans read the CPU clock of their thread, too,
    which tells a row that waits from one that works and costs about a microsecond a span; marks, and rows
    timed by events, never have it. `expect` gives the steps per second of each phase that you expect, such
    as `dict(ppo=(2000, 3000))`: `hotloop diagnose` says if it reached less than half.
    `profiler` such as `dict(wait=2, warmup=2, active=4)` drives torch.profiler over so many updates, with
    the spans in its trace; the speed and the rows are of the updates without it.
    HOTLOOP_RUN=off switches every run off, at no cost.
    """
    if os.environ.get(SWITCH, "").lower() in OFF:
        return DisabledRun(updates)
    folder = None if output is None else Path(output)
    options = LoopOptions(
        name=name,
        every=every,
        updates=updates,
        params=params or {},
        variant=command() | dict(variant or {}),
        timing=timing,
        wait=wait,
        cpu=cpu,
        expect=expect or {},
        profiler=profiler,
        trace_path=free_path(folder, name) if folder and profiler is not None else None,
    )
    return Run(
        options,
        RunReporter(name, folder, open_sinks(sinks, name), say or to_stderr),
    )


def to_stderr(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def free_path(folder: Path, name: str) -> Path:
    """Return where torch's trace of a run goes: a file that is not there yet."""
    stem = folder / f"{file_stem(name)}-{utc_now():%Y%m%d-%H%M}"
    endings = chain([""], (f"-{number}" for number in count(2)))
    paths = (Path(f"{stem}{ending}.torch{TRACE}") for ending in endings)
    return next(path for path in paths if not path.exists())


def file_stem(name: str) -> str:
    """Return what the files of a run begin with."""
    stem = re.sub(r"[^\w.-]+", "-", name).strip(".-") or "run"
    return f"run-{stem}"


def command() -> dict[str, str]:
    """Return the command that started this Python with a script or module; empty in a notebook or a shell."""
    words = sys.orig_argv[1:]
    script = next((word for word in words if not word.startswith("-")), "")
    if not (script.endswith(".py") or words[:1] == ["-m"]):
        return {}
    return {"command": shlex.join(["python", *words])}


class RunReporter:
    """Prints windows, passes them on to sinks, and writes what was found."""

    def __init__(self, name: str, folder: Path | None, sinks: Sequence[Sink], say: Say) -> None:
        self._name, self._folder, self._sinks, self._say = name, folder, list(sinks), say

    def window(self, window: LoopWindow) -> None:
        made = window.counts
        turns = max(made.get(UPDATES, 0), 1)
        pace = f", {window.per_s(STEPS):,.0f} steps/s" if made.get(STEPS) else ""
        head = f"{window.name}: {window.updates:,} updates, {window.steps:,} steps{pace}"
        self._say(f"{head}; an update of the last {turns}:\n{tree_text(window.times, turns)}")
        for sink in tuple(self._sinks):
            try:
                sink.log(window.values(), window.steps or window.updates)
            except Exception as error:  # noqa: BLE001 - user code must not end a training
                self._say(f"{type(sink).__name__} gets no more numbers: {type(error).__name__}: {error}")
                self._sinks.remove(sink)

    def keep(self, record: Record, trace: Trace | None) -> None:
        """Write the page, the record and the trace; what the disk does not take is said and no more."""
        self._say(run_text(record))
        if self._folder is None:
            return
        path = self._folder / f"{file_stem(self._name)}-{utc_now():%Y%m%d-%H%M}.md"
        beside = [(".json", record.to_json()), *(trace_files(trace) if trace else [])]
        try:
            self._say(f"saved {save(path, run_page(record), *beside)}")
            for name in (name for found in record.findings for name in found.files):
                self._say(f"saved {self._folder / name}: torch's trace; open it in https://ui.perfetto.dev")
        except HotloopError as error:
            self._say(f"not saved: {error}")

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()
