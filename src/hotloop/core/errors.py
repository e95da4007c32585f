"""Exit codes, and the errors that carry them."""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


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
