"""The worker's half of a side in a process of its own: commands come in and answers go out as lines of JSON.

First line out: {"ready": facts}. Then, for each {"run": agent_steps}, the fields of a Block.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from interleaved.stepping import Block, pin


def settings() -> dict[str, Any]:
    """Read the settings the driver gave as one JSON argument, and go to the cores they name."""
    given: dict[str, Any] = json.loads(sys.argv[1])
    pin(given["cores"])
    return given


def serve(measure: Callable[[int], Block], facts: Mapping[str, object]) -> None:
    """Answer commands until the driver closes the pipe."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a package prints must not be taken for an answer

    def answer(message: object) -> None:
        answers.write(json.dumps(message, default=asdict) + "\n")
        answers.flush()

    answer({"ready": dict(facts)})
    for line in sys.stdin:
        answer(measure(json.loads(line)["run"]))
