"""An epoch: what one window of updates came to, for the logs, the panel and the record."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotloop.core.validation import Validation
from hotloop.train.times import Times
from hotloop.train.windows import Window

if TYPE_CHECKING:
    from hotloop.train.evaluation import Evaluation
    from hotloop.train.trainer import Update


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """What one window of updates came to."""

    number: int
    """Updates of the run so far."""
    steps: int
    """Env-steps of the run since its very beginning."""
    total: int
    """Env-steps it is to make."""
    wall_ns: int
    env_steps: int
    """In this window."""
    mean_sps: float
    """Env-steps a second since this process began to train."""
    window: Window
    update: "Update"
    """The last one."""
    losses: dict[str, float]
    """Means over the window's updates."""
    agreement: float | None
    times: Times | None
    evaluation: "Evaluation | None"
    validation: Validation | None
    rss_bytes: int
    gpu_bytes: int | None = None
    """Of the GPU's memory, that torch holds; None without one."""

    @property
    def sps(self) -> float:
        """Env-steps a second in this window."""
        return self.env_steps * 1e9 / self.wall_ns

    @property
    def eta_s(self) -> float:
        """Seconds left at this window's speed."""
        return max(self.total - self.steps, 0) / self.sps

    def values(self) -> dict[str, float | int | str | None]:
        """All of it by name, for the logs."""
        window, evaluation, checked = self.window, self.evaluation, self.validation
        return {
            "epoch": self.number,
            "sps": self.sps,
            "sps_mean": self.mean_sps,
            "phase": self.update.phase,
            "episodes": window.episodes,
            "return": window.mean_return,
            "length": window.mean_length,
            "learning_rate": self.update.learning_rate,
            "agreement": self.agreement,
            **{f"loss/{name}": value for name, value in self.losses.items()},
            **{f"info/{name}": value for name, value in (window.infos or window.sampled).items()},
            **{
                f"time/{part.path}": part.total_ns / 1e6
                for part in (self.times.regions if self.times else ())
            },
            "time/unaccounted": self.times.unaccounted_ns / 1e6 if self.times else None,
            "eval/return": evaluation.mean_return if evaluation else None,
            "eval/length": evaluation.mean_length if evaluation else None,
            "validation/comparisons": checked.comparisons if checked else None,
            "validation/mismatches": checked.mismatches if checked else None,
            "rss_bytes": self.rss_bytes,
            "gpu_bytes": self.gpu_bytes,
        }
