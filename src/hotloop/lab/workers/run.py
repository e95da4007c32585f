"""Programs that run as processes of their own: `python -m hotloop.lab.workers.run NAME ARGUMENT...`.

    cell CELL RESULT FOLDER    Runs one cell (JSON) with its target opened from a folder; the record goes
                               beside the file that says what came of it, progress over the lifeline.
    count SETTINGS             Opens a target, then steps it in children that valgrind counts.
    play SETTINGS              Plays a target for some seconds, to be looked at from outside.
    rank SETTINGS              Is one of the ranks of a training after the first, until rank 0 ends the run.

Settings are JSON: target (name, keys) and policy, for `play` seconds too; for `rank` rank, size, host, port
of rank 0's store, and parent, the process that it ends with.
"""

# Each program imports what it needs when it is called: under valgrind an import takes seconds.

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

STRETCH_NS = 50_000_000  # From which on a stretch whose actions are drawn together is long enough


def run_cell(cell: str, result: str, folder: str) -> None:
    import os
    from functools import partial

    from hotloop.core.files import write_new
    from hotloop.core.process import lifeline
    from hotloop.lab.sweep.cells import Cell, try_cell

    path = Path(result)
    os.chdir(folder)
    line = lifeline.attach()
    found = try_cell(Cell.from_json(cell), partial(line.move, ""))
    if found.record is not None:
        write_new(path.with_name("record.json"), found.record.to_json())
    write_new(path, json.dumps({"refused": found.refused, "code": int(found.code)}))
    line.say(end=0)


def count_target(text: str) -> None:
    import platform

    import numpy as np

    from hotloop.core.errors import HotloopError
    from hotloop.core.settings import Target
    from hotloop.lab.measure.policy import play_of
    from hotloop.lab.measure.sides import no_collection, play
    from hotloop.lab.measure.target import check_player, open_subject
    from hotloop.probes.instructions import StretchServer

    settings = json.loads(text)
    answers = StretchServer()
    try:
        subject = open_subject(Target(**settings["target"]), profile=False)
        check_player(subject, settings["policy"])
        script = play_of(settings["policy"], subject)
        subject.reset()
    except HotloopError as error:
        answers.say(error=str(error), code=error.exit_code)
        return

    def stretch(calls: dict[str, int]) -> None:
        play(subject, script.draw(calls["drawn"]), calls["played"])

    # The instruction sets that NumPy found, which are those that valgrind offers.
    found: list[Any] = np.show_config(mode="dicts")["SIMD Extensions"]["found"]
    with no_collection():
        answers.say(num_envs=subject.spec.num_envs, isa=[platform.machine(), *found[-1:]])
        answers.serve(stretch)


def play_target(text: str) -> None:
    from hotloop.core.clock import now_ns
    from hotloop.core.settings import Target
    from hotloop.lab.profile.probes import draw_calls, prepare_subject

    settings = json.loads(text)
    with prepare_subject(Target(**settings["target"]), settings["policy"]) as (subject, script):
        end_ns = now_ns() + settings["seconds"] * 1_000_000_000
        calls = 1
        while (begin := now_ns()) < end_ns:
            draw_calls(subject, script, calls)()
            if now_ns() - begin < STRETCH_NS:
                calls *= 2


def follow_training(text: str) -> None:
    from hotloop.lab.training.ranks import follow, leave_with
    from hotloop.train.ranks import RankLostError, client

    settings = json.loads(text)
    leave_with(settings["parent"])
    try:
        follow(settings["rank"], settings["size"], client(settings["host"], settings["port"]))
    except RankLostError as error:
        sys.exit(str(error))


PROGRAMS: dict[str, Callable[..., None]] = {
    "cell": run_cell,
    "count": count_target,
    "play": play_target,
    "rank": follow_training,
}


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](*sys.argv[2:])
