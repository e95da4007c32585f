"""What is around a training run: when it is evaluated, timed and traced. None of it changes a result."""

from dataclasses import dataclass

from hotloop.core.settings import parameter
from hotloop.envs.options import MAX_SEED


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    """How a run is looked at."""

    timing: str = parameter(
        "auto",
        choices=("auto", "events", "sync", "async", "off"),
        role="variant",
        help="How the tree of its time is taken; auto is by events on a GPU; off for the last bit of speed.",
    )
    tensorboard: bool = parameter(True, role="variant", help="Write the metrics for TensorBoard, too.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalSettings:
    """When a policy is evaluated, and on what."""

    every: int = parameter(
        0, low=0, role="variant", help="Rollouts between two evaluations; 0 is none, as for speed."
    )
    episodes: int = parameter(64, low=1, high=1_000_000, role="variant", help="Episodes of an evaluation.")
    steps: int = parameter(0, low=0, role="variant", help="Cut an episode off after so many; 0 is never.")
    seed: int = parameter(
        1_000_003, low=0, high=MAX_SEED, role="variant", help="Decides the episodes, the same every time."
    )
    greedy: bool = parameter(
        False, role="variant", help="Take the most likely action instead of drawing from the policy."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilerSettings:
    """A window of rollouts under torch's own profiler."""

    enabled: bool = parameter(False, role="variant", help="Leave a trace of some rollouts, for Perfetto.")
    wait_steps: int = parameter(1, low=0, role="variant", help="Rollouts that are let by first.")
    warmup_steps: int = parameter(
        1, low=1, role="variant", help="Rollouts that are profiled and thrown away."
    )
    active_steps: int = parameter(1, low=1, role="variant", help="Rollouts whose trace is kept.")
    record_shapes: bool = parameter(False, role="variant", help="Keep the shapes of all tensors.")

    @property
    def rollouts(self) -> int:
        """That it takes until the trace is there."""
        return self.wait_steps + self.warmup_steps + self.active_steps
