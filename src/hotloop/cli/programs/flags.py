"""What the commands for programs share: the program, and the metric it is judged by."""

from typing import TYPE_CHECKING, Protocol

from hotloop.core.errors import InputError

if TYPE_CHECKING:
    from hotloop.lab.programs.launch import Program
    from hotloop.lab.programs.metrics import Metric


class MetricOptions(Protocol):
    """Options that name a number which the program prints."""

    @property
    def metric(self) -> str | None:
        """Return it as `NAME=REGEX`."""

    @property
    def less_is_better(self) -> bool:
        """Return whether it is a time."""


def program_of(words: tuple[str, ...]) -> "Program":
    """Return the program of the words after `--`."""
    from hotloop.lab.programs.launch import Program

    if not words:
        raise InputError("nothing stands after --: give a command there, such as -- python train.py")
    return Program(words)


def metric_of(options: MetricOptions) -> "Metric | None":
    """Return the metric that programs are judged by; None if whole runs are."""
    from hotloop.lab.programs.metrics import parse

    if options.metric is None:
        return None
    return parse(options.metric, less_is_better=options.less_is_better)
