"""A window of a training run under torch's own profiler, for Perfetto."""

from collections.abc import Callable
from pathlib import Path

from hotloop.core.errors import InputError, SetupError
from hotloop.lab.runs import Run
from hotloop.train.options import ProfilerSettings


class Trace:
    """The window of a run; one turn is one update."""

    def __init__(self, asked: ProfilerSettings, path: Path) -> None:
        from hotloop.probes.torch import Window

        self.path = path
        self._window = Window(
            path,
            wait=asked.wait_steps,
            warmup=asked.warmup_steps,
            active=asked.active_steps,
            record_shapes=asked.record_shapes,
        )

    def step(self) -> None:
        self._window.step()

    def close(self, say: Callable[[str], None]) -> None:
        """End the window, and say where its trace is, or why there is none."""
        try:
            self._window.close()
        except SetupError as error:
            say(str(error))
        else:
            say(f"saved {self.path}: open it in https://ui.perfetto.dev")


def open_trace(asked: ProfilerSettings, run: Run) -> Trace | None:
    """The trace that was asked for; None where none was."""
    return Trace(asked, run.trace) if asked.enabled else None


def check_trace(asked: ProfilerSettings, updates: int) -> None:
    """Refuse a window that the run would end before."""
    if asked.enabled and updates < asked.rollouts:
        raise InputError(
            f"train.profiler needs {asked.rollouts} rollouts (wait_steps + warmup_steps + active_steps) and "
            f"the run has {updates}: give more total_timesteps, or shorten the window"
        )
