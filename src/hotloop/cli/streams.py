"""Standard streams whose reader may go away, or never was: what nobody reads is dropped."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast


class Dropping:
    """A stream that takes a closed pipe as the end of interest, not as an error."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._redirect()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._redirect()

    def _redirect(self) -> None:
        """Let whatever is still written, also by the interpreter at its end, go nowhere."""
        with nowhere() as sink:
            os.dup2(sink.fileno(), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


@contextmanager
def dropping_streams() -> Iterator[None]:
    """Make stdout and stderr such streams; a closed one is replaced by one that drops everything."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", Dropping(stream or nowhere())) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
