"""The options of soak, of targets and of programs."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from hotloop.options.option import Options, exclude, option
from hotloop.options.shared import (
    METRIC_RULE,
    json_option,
    less_is_better_option,
    metric_option,
    on_option,
    output_option,
    policy_option,
    reports_option,
    required_target,
    words_option,
)

MINUTES = 10.0

minutes_option = partial(
    option,
    None,
    f"How long it runs.  [default: {MINUTES:g}]",
    "N",
    above=0,
    below=1e6,
    expected="more than 0",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakOptions(Options):
    """Find out whether a target slows down or leaks over time.

    One instance is stepped throughout. At regular moments memory, the native heap, GPU memory, open files and
    threads are read, and a new instance takes turns with the old one: what is judged is the slope of their
    ratio, so a busy machine is not blamed on the target. Each slope has its 99.99% interval; what certainly
    rises, and still does at the end, is named, down to phases. With a train. key a training is soaked; after
    --, any program. Exit: 3 something grows, 4 the run was too short to tell.
    """

    examples: ClassVar = (
        "hotloop soak grid/arena --minutes 10",
        "hotloop soak gym:CartPole-v1 --minutes 5",
        "hotloop soak my_env.py:make n=100 --steps 1000000",
        "hotloop soak prospector train.num_steps=64 --minutes 10",
        "hotloop soak --minutes 10 -- python train.py",
        "hotloop soak grid/arena --minutes 60 --on ray://head:10001",
    )
    isolated: ClassVar = True
    rules: ClassVar = (exclude("minutes", "steps"),)

    target: str = required_target()
    words: list[str] | None = words_option()
    minutes: float | None = minutes_option()
    steps: int | None = option(None, "Env-steps instead of minutes.", "N", min=1, max=10**15)
    policy: str = policy_option()
    phases: str | None = reports_option()
    on: str | None = on_option()
    output: Path = output_option()
    json: bool = json_option()

    @property
    def seconds(self) -> float | None:
        """Return how long it runs; None if that is said in env-steps."""
        return None if self.steps is not None else 60 * (MINUTES if self.minutes is None else self.minutes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoakProgramOptions(Options):
    """Find out whether a whole program slows down or leaks: hotloop soak [OPTIONS] -- CMD.

    CMD is any command, run without a shell for that many minutes, then ended by Ctrl-C. Its memory, open
    files and threads, and those of its children, are watched from outside; --metric adds what it prints about
    its own speed. There is no second instance to compare with: a slow machine looks like a slow program.
    """

    examples: ClassVar = (
        "hotloop soak --minutes 10 -- python train.py",
        "hotloop soak --minutes 5 --metric 'sps=SPS: (\\d+)' -- python train.py",
    )
    rules: ClassVar = (METRIC_RULE,)

    minutes: float | None = minutes_option()
    metric: str | None = metric_option()
    less_is_better: bool = less_is_better_option()
    output: Path = output_option()
    json: bool = json_option()

    @property
    def seconds(self) -> float:
        """Return how long it runs."""
        return 60 * (MINUTES if self.minutes is None else self.minutes)
