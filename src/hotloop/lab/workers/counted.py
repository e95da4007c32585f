"""The program that runs under valgrind: opens a target, then steps it in children that are counted.

`python -m hotloop.lab.workers.counted '{"target": {"name": .., "keys": {..}}, "policy": ..}'`
"""

import json
import platform
import sys
from typing import Any

import numpy as np

from hotloop.core.errors import HotloopError
from hotloop.core.target import Target
from hotloop.envs.subject import Subject
from hotloop.lab.measure.policy import play_of
from hotloop.lab.measure.sides import no_collection, play
from hotloop.lab.measure.target import check_player, open_subject
from hotloop.probes.instructions import Answers


def main() -> None:
    asked = json.loads(sys.argv[1])
    answers = Answers()
    try:
        subject = open_subject(Target(**asked["target"]), profile=False)
        check_player(subject, asked["policy"])
        script = play_of(asked["policy"], subject)
        subject.reset()
    except HotloopError as error:
        answers.say(error=str(error), code=error.exit_code)
        return

    def stretch(calls: dict[str, int]) -> None:
        play(subject, script.draw(calls["drawn"]), calls["played"])

    with no_collection():
        answers.say(**describe(subject))
        answers.serve(stretch)


def describe(subject: Subject) -> dict[str, Any]:
    """What one call makes, and the instruction sets that NumPy found, which are those valgrind offers."""
    found = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    return {"num_envs": subject.spec.num_envs, "isa": [platform.machine(), *found[-1:]]}


if __name__ == "__main__":
    main()
