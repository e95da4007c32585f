"""Standard streams that any text can be written to: readers may go away, and encodings may be ASCII."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO, cast

# What the system says when a pipe has no reader any more, or a terminal was closed.
GONE = (errno.EPIPE, errno.EIO)

# What our screens show instead of characters that a stream cannot encode.
ASCII = str.maketrans(
    {"µ": "u", "²": "2", "…": "...", "→": "->", "≤": "<=", "≥": ">=", "─": "-", "│": "|", "└": "`"}
    | {"▶": ">", "◀": "<"}
    | dict.fromkeys("▁▂▃▏▎▍░", ".")
    | dict.fromkeys("▄▅▆▇█▌▋▊▉▒▓", "#")
)


class Dropping:
    """A stream that takes a closed pipe as the end of interest, and shows what it cannot encode in ASCII."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(encodable(text, getattr(self._stream, "encoding", None)))
        except OSError as error:
            if error.errno not in GONE:
                raise
            self._redirect()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            if error.errno not in GONE:
                raise
            self._redirect()

    def _redirect(self) -> None:
        """Let whatever is still written, also by the interpreter at its end, go nowhere."""
        with nowhere() as sink:
            os.dup2(sink.fileno(), self._stream.fileno())

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def encodable(text: str, encoding: str | None) -> str:
    """Return a text as a stream of this encoding can show it."""
    if text.isascii() or encoding is None:
        return text
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(ASCII).encode(encoding, "replace").decode(encoding)
    return text


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
