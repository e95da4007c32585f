"""Metrics that programs print themselves: a name, and a pattern that finds its numbers in what they say."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.core.errors import InputError
from hotloop.lab.programs.launch import Program, Run, last_line
from hotloop.stats.trend import without_warmup

NAME = re.compile(r"[A-Za-z_][\w./-]*")

RESERVED = ("wall_ns", "cpu_ns", "cpu_share", "rss_peak_bytes", "runs_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A number that a program prints, once or again and again."""

    name: str
    pattern: re.Pattern[str]
    less_is_better: bool = False  # Whether it is a time rather than a speed

    @property
    def headline(self) -> str:
        """What it is judged by, more being better."""
        return f"1/{self.name}" if self.less_is_better else self.name

    def speeds(self, values: Sequence[float]) -> list[float]:
        """The values, more being better."""
        return [1 / value for value in values] if self.less_is_better else list(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The values of a metric in one run, as they were printed."""

    values: tuple[float, ...]

    @property
    def kept(self) -> tuple[float, ...]:
        """Without the warm-up, by the rule that rounds are held to."""
        return without_warmup(self.values)

    @property
    def cut(self) -> int:
        return len(self.values) - len(self.kept)


def parse(text: str, *, less_is_better: bool = False) -> Metric:
    """A metric as it is typed, `NAME=REGEX`."""
    name, equals, pattern = text.partition("=")
    if not equals or not NAME.fullmatch(name) or name in RESERVED:
        raise InputError(rf"--metric {text!r} does not fit: write NAME=REGEX, such as 'sps=SPS: (\d+)'")
    try:
        compiled = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise InputError(f"--metric {name}: {pattern!r} is no regular expression: {error}") from None
    if compiled.groups > 1:
        raise InputError(f"--metric {name}: {compiled.groups} groups: put one around the number alone")
    return Metric(name=name, pattern=compiled, less_is_better=less_is_better)


def read(metric: Metric, run: Run, program: Program) -> Series:
    """Every value of a metric that a run printed; InputError where there is none, or one is no number."""
    return Series(values=tuple(speed(metric, each) for each in matches(metric, run, program)))


def last_number(metric: Metric, run: Run, program: Program) -> float:
    """The last value that a run printed, of any sign; InputError where there is none."""
    text = matches(metric, run, program)[-1]
    value = number(metric, text)
    if not math.isfinite(value):
        raise InputError(f"--learning-metric {metric.name} found {text}: expected a finite number")
    return value


def matches(metric: Metric, run: Run, program: Program) -> list[str]:
    """What a metric's group matched, as it was printed; InputError where it matched nothing."""
    said = run.printed.replace("\r", "\n")
    found = [match.group(metric.pattern.groups) for match in metric.pattern.finditer(said)]
    if not found:
        raise InputError(
            f"{program.name} printed nothing that --metric {metric.name} finds; "
            f"its last line was: {last_line([said])}"
        )
    return found


def speed(metric: Metric, text: str) -> float:
    value = number(metric, text)
    if not 0 < value < math.inf:
        raise InputError(f"--metric {metric.name} found {text}: only what is above 0 can be compared")
    return value


def number(metric: Metric, text: str) -> float:
    try:
        return float(text.replace(",", "").replace("_", ""))
    except (ValueError, AttributeError):
        raise InputError(
            f"--metric {metric.name} found {text!r}, which is no number: put a group around the number"
        ) from None
