"""A worker's half of its pipes: read commands, write answers, a line of JSON each.

Standard library alone: the worker of a commit runs this file by its path.
"""

import faulthandler
import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO


def serve(answers_to: Callable[[Iterator[Any]], Iterable[Any]]) -> None:
    """Answer commands until they end."""
    commands, answers = take_pipes()
    for answer in answers_to(map(json.loads, commands)):
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


def take_pipes() -> tuple[TextIO, TextIO]:
    """Return the pipes of commands and answers; what the program prints goes to stderr."""
    faulthandler.register(signal.SIGRTMAX - 2)  # the parent asks with it where a silent worker stands
    commands, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(2, 1)
    return commands, answers
