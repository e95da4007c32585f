"""Exit codes, the errors that carry them, and the notices a reader of a result needs to trust it."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum, StrEnum
from string import Formatter
from typing import Self


class ExitCode(IntEnum):
    """What a command tells the shell, one table for all of them."""

    FINE = 0
    UNSTABLE = 1  # The spread between rounds is over 20%
    MISMATCH = 2  # Validation found a difference
    REGRESSION = 3  # Slower, or an enforced target or budget missed
    CANNOT_TELL = 4
    USAGE = 64  # Wrong usage or input, or a package or GPU that is not here
    FAULT = 70  # A fault of ours or of the set-up
    INTERRUPTED = 130


# A mismatch outranks everything; a run that broke off outranks the verdicts it did not finish.
GRAVEST_FIRST = (
    ExitCode.MISMATCH,
    ExitCode.FAULT,
    ExitCode.USAGE,
    ExitCode.INTERRUPTED,
    ExitCode.REGRESSION,
    ExitCode.CANNOT_TELL,
    ExitCode.UNSTABLE,
    ExitCode.FINE,
)


def worst(codes: Iterable[ExitCode]) -> ExitCode:
    """The gravest of the codes that hold; fine where there are none."""
    return min(codes, key=GRAVEST_FIRST.index, default=ExitCode.FINE)


class HotloopError(Exception):
    """An error whose message is meant for the person at the keyboard: one line, no traceback."""

    exit_code = ExitCode.FAULT


class InputError(HotloopError, ValueError):
    """What was given cannot be used; the line says what was wrong, what was expected and what to do."""

    exit_code = ExitCode.USAGE


class TheirError(InputError):
    """Raised when user code raises; the message includes its exception."""


class SetupError(HotloopError):
    """The installation or the machine lacks something that is needed."""


class MissingError(SetupError):
    """A package or a GPU that was asked for is not here; the line says what to do."""

    exit_code = ExitCode.USAGE


class WriteError(SetupError):
    """A file cannot be written, because the disk is full or its folder refuses it."""

    exit_code = ExitCode.USAGE


class UndecidedError(HotloopError):
    """A measurement that can say nothing; the line says why, and what would help."""

    exit_code = ExitCode.CANNOT_TELL


class DeviceError(HotloopError):
    """A GPU, its driver or its memory did not do what was asked of it."""


def show_value(value: object) -> str:
    """Return a value as an error shows it: 40 letters at most."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def unknown(what: str, word: str, known: Iterable[str], then: str) -> InputError:
    """The error for a word that is none of the known ones; it suggests the nearest, then says `then`."""
    near = get_close_matches(word, list(known), n=1)
    suggestion = f"did you mean {near[0]}? " if near else ""
    return InputError(f"unknown {what} {word!r}: {suggestion}{then}")


class Code(StrEnum):
    """Every notice there is: its code, its text and its remedy, with the facts it names in braces."""

    text: str
    remedy: str

    def __new__(cls, code: str, text: str, remedy: str) -> Self:
        member = str.__new__(cls, code)
        member._value_ = code
        member.text = text
        member.remedy = remedy
        return member

    FELL_BACK = (
        "fell-back",
        "the reference ran instead of native code: {why}",
        "build the native module, or ask for impl=reference",
    )
    PATH_MIXED = (
        "path-mixed",
        "only {share:.1%} of the steps ran as {requested}",
        "find the steps that left the fast path before quoting this number",
    )
    MECHANIC_SILENT = (
        "mechanic-silent",
        "{mechanics} never happened in this run",
        "run longer, or use a policy that makes it happen",
    )
    MISMATCH = (
        "mismatch",
        "{mismatches} of {comparisons} compared outputs differ",
        "trust no number of this run; find the first difference",
    )
    UNSTABLE = (
        "unstable",
        "{metric} varied by {cv:.0%} between rounds",
        "quieten the machine or run longer rounds",
    )
    TOO_FEW_ROUNDS = (
        "too-few-rounds",
        "{rounds} rounds are too few for an interval",
        "run at least 6",
    )
    DRIFT = (
        "drift",
        "{metric} drifted by {change:+.1%} over the rounds",
        "look for heat, memory growth or another load, and run again",
    )
    FALLING = (
        "falling",
        "{where}{fall}",
        "look for what grows with every step: hotloop diagnose names the row that takes longer",
    )
    GROWING = (
        "growing",
        "{where}{rise}",
        "find what keeps it; a buffer that fills up stops at its size",
    )
    WARMUP = (
        "warmup",
        "the first rounds of {metric} differ from the rest",
        "warm up longer, and look at what else began with the run",
    )
    BACKGROUND = (
        "background",
        "{side} used {share:.1f} CPU seconds a second, and its loop explains {threads}",
        "look at what its other threads do, and at the ratio for a CPU second",
    )
    LATE = (
        "late",
        "{share:.0%} of the CPU time of {side} came after its steps had returned",
        "have a step wait for what it sets going before trusting its speed",
    )
    UNACCOUNTED = (
        "unaccounted",
        "{share:.1%} of the step is in no phase",
        "add phases where the time goes",
    )
    OVERHEAD = (
        "overhead",
        "profiling cost {cost:.1%} of the speed",
        "quote throughput from the clean pass only",
    )
    BUSY_MACHINE = (
        "busy-machine",
        "the machine had a load of {load:.1f} on {cores} cores before the run",
        "stop other work and run again",
    )
    STOLEN_TIME = (
        "stolen-time",
        "the hypervisor took {share:.1%} of this machine's time",
        "measure on a machine of its own, or compare interleaved only",
    )
    GOVERNOR = (
        "governor",
        "the frequency governor is {governor}",
        "set it to performance",
    )
    PROFILED = (
        "profiled",
        "torch's profiler was on in {windows}: the speed and the rows are {speed}",
        "run without the profiler to have all of it timed",
    )
    SLOW_CLOCK = (
        "slow-clock",
        "the clock source is {clocksource}, whose reads are slow",
        "use tsc where the machine allows it",
    )
    CPU_LIMIT = (
        "cpu-limit",
        "this container may use {cpus:g} CPUs but was asked for {threads} threads",
        "ask for fewer threads or raise the limit",
    )
    DIRTY = (
        "dirty",
        "the code has changes that are not committed",
        "commit before keeping this result",
    )
    SHORTENED = (
        "shortened",
        "the target is slow: {warmup:,} env-steps of warm-up, {iterations:,} a round, for about ten seconds",
        "ask for a number of steps to get it whatever it takes",
    )
    SHORT_WARMUP = (
        "short-warmup",
        "the target is slow: the warm-up ended after two seconds, {warmup:,} env-steps",
        "if the first rounds differ from the rest, measure more of them",
    )
    ENVIRONMENT = (
        "environment",
        "{setting} was decided by {source}",
        "give {setting}=... on the command line to decide it there",
    )
    THREADS_SPLIT = (
        "threads-split",
        "with {threads} threads the phases are means over them, and unaccounted includes their waiting",
        "profile with threads=1 for a clean split",
    )
    INTERFACE = (
        "interface",
        "{target}: {fault}",
        "mend the environment before trusting what is trained on it",
    )
    FUNCTION = (
        "function",
        "no environment was returned: the function itself is measured, a step is a call",
        "return an environment to have that measured",
    )
    WAITING = (
        "waiting",
        "{share:.0%} of the time was waiting for workers, {skew:.0%} for the slowest, mostly {worker}",
        "give the workers even work; {worker} was the last in {last:.0%} of the steps",
    )
    IDLE_WORKERS = (
        "idle-workers",
        "{share:.0%} of the time was waiting for workers that are alike: their steps, and the way to them",
        "if a step is cheap, processes cost more than they save: try vector=sync, or more envs a worker",
    )
    NEVER_CALLED = (
        "never-called",
        "{function} was never called in this process",
        "name it as the code that calls it finds it; what runs in workers is not seen here",
    )
    SAMPLED_INSIDE = (
        "sampled-inside",
        "functions were sampled inside the process, which overstates small ones: {why}",
        "{remedy}",
    )
    NO_PROBE = (
        "no-probe",
        "the probe {probe} did not look: {why}",
        "{remedy}",
    )
    BELOW_TARGET = (
        "below-target",
        "the speed is {short:.1%} below the target of {target:,.0f} env-steps/s",
        "make it faster, or ask for what the floor of this machine allows",
    )
    LEFT_OUT = (
        "left-out",
        "left out {why}",
        "keep only records of Hotloop in this folder",
    )
    CUT_OFF = (
        "cut-off",
        "{cut} of {episodes} episodes were cut off after {steps} steps",
        "give steps=N for another length, or let the world end them",
    )
    SHRUNK = (
        "shrunk",
        "total_timesteps={total} is below one rollout, which shrinks to {envs} envs x {steps} steps",
        "ask for more total_timesteps to train as configured",
    )
    HOST_TIMER = (
        "host-timer",
        "a host clock was read around {whose} work, whose time is charged to whoever waits for it",
        "{remedy}",
    )
    LEFT_OPEN = (
        "left-open",
        "spans were still open when the run ended, and count up to there: {names}",
        "leave a span in the function that entered it; `with span(...)` does",
    )
    RAISED = (
        "raised",
        "the loop was ended by {error}",
        "mend it and run again; what is told here is the part before",
    )
    NOT_COMPARED = (
        "not-compared",
        "{fields} was not compared",
        "{remedy}",
    )
    SOURCES_CHANGED = (
        "sources-changed",
        "{files} changed while this ran: one part of it may have run the old code, another the new",
        "leave the sources alone and run again; if the program changes them itself, trust no number of it",
    )
    DIGESTS_DIFFER = (
        "digests-differ",
        "within {steps} steps of its reset this target showed something else than in {baseline}",
        "both must measure the same program: look at what changed, and measure the older one again",
    )
    FEW_GAMES = (
        "few-games",
        "{over} of {games} games came to their end",
        "ask for fewer games with num_games=N, or for steps alone with --steps N",
    )
    OUTPUTS_CHANGED = (
        "outputs-changed",
        "after the same steps as {before} this commit showed other {fields}",
        "its speed is that of another program: hotloop compare TARGET --a-ref names the first difference",
    )
    COMMITS_LEFT_OUT = (
        "commits-left-out",
        "could not be measured: {commits}",
        "look at what they need to be built; the trend has no point for them",
    )
    SOURCES_DIFFER = (
        "sources-differ",
        "{files} changed since {baseline}",
        "if that change is not what this compares, measure the baseline again",
    )
    NO_BUNDLE = (
        "no-bundle",
        "no bundle was kept: {why}",
        "validate again with the same seed to see the difference again",
    )
    UNTIDY = (
        "untidy",
        "{target} {what}; that was undone",
        "have it put back in close() what it changes, and end what it starts",
    )
    LEFT_BEHIND = (
        "left-behind",
        "{program} left {processes} behind, asleep: Hotloop did not wait for that, and ended it",
        "have the program end what it starts before it ends itself",
    )
    LOG_BROKE_OFF = (
        "log-broke-off",
        "the log could not be written any more: {steps:,} env-steps are in no log",
        "make room or free the database, and run again with the same seed",
    )
    BROKEN_OFF = (
        "broken-off",
        "the run was broken off: {why}",
        "run it to the end before comparing",
    )
    SKIPPED = (
        "skipped",
        "{at} was skipped: {why}",
        "give values that the target takes",
    )
    FEW_PAIRS = (
        "few-pairs",
        "{pairs} pairs of episodes say nothing: {needed} are needed",
        "play more episodes",
    )
    SEEN_ONCE = (
        "seen-once",
        "{once} differences were seen in the first pairs and not again in fresh ones",
        "if that matters, play more episodes: soak",
    )
    RUN_AGAIN = (
        "run-again",
        "{cells} cells were run again: the workers they had were lost",
        "look for what ended them; every cell is in the record once",
    )
    SWEEP_PARTIAL = (
        "sweep-partial",
        "the sweep was interrupted with values of {done} places",
        "--resume goes on where it was stopped",
    )
    PARTIAL = (
        "partial",
        "the run was interrupted after {done} rounds",
        "run it to the end before comparing",
    )

    @property
    def facts(self) -> frozenset[str]:
        """The names that `notice` has to be given for this code."""
        return frozenset(name for _, name, _, _ in Formatter().parse(self.text + self.remedy) if name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One notice of one run, as its record keeps it."""

    code: str
    text: str
    remedy: str


def notice(code: Code, **facts: object) -> Notice:
    """Fill in the facts of a notice; exactly those its text names."""
    if facts.keys() != code.facts:
        raise TypeError(f"notice {code} names {sorted(code.facts)}, not {sorted(facts)}")
    return Notice(code=code.value, text=code.text.format(**facts), remedy=code.remedy.format(**facts))
