"""Hotloop's batches as something to step and time."""

from typing import Any

from interleaved.stepping import Block, Stepper, tokens_used


def has_no_tokens(batch: Any) -> bool:
    """Whether observations are numbers rather than tokens of three bytes."""
    return bool(batch.observations.dtype != "uint8")


def stepper_of(batch: Any) -> Stepper:
    """Reset a batch and make it ready to be stepped with random actions."""
    batch.reset()
    return Stepper(
        batch.step,
        shape=(batch.spec.num_envs, batch.spec.agents),
        num_actions=batch.spec.drawn_actions,
        count_tokens=None if has_no_tokens(batch) else lambda: tokens_used(batch.observations),
    )


class BatchSide:
    """A batch in this process as a side of a comparison."""

    def __init__(self, name: str, batch: Any, *, warmup_calls: int) -> None:
        self.name = name
        self._stepper = stepper_of(batch)
        self._stepper.warm_up(warmup_calls)

    def measure(self, agent_steps: int) -> Block:
        return self._stepper.measure(agent_steps)
