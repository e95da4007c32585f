"""Runs one cell in a process of its own, which somebody watches over.

`python -m hotloop.lab.workers.cell CELL RESULT FOLDER`: the cell as JSON, the file that says what came of it,
and where its target is opened from; the record goes beside the file. How far it is goes over the lifeline;
what the target prints is nobody's.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path

from hotloop.core.files import write_new
from hotloop.core.process import lifeline
from hotloop.lab.sweep.cells import Cell, done


def main() -> None:
    cell, result = Cell.from_json(sys.argv[1]), Path(sys.argv[2])
    os.chdir(sys.argv[3])
    line = lifeline.attach()
    found = done(cell, partial(line.move, ""))
    if found.record is not None:
        write_new(result.with_name("record.json"), found.record.to_json())
    write_new(result, json.dumps({"refused": found.refused, "code": int(found.code)}))
    line.say(end=0)


if __name__ == "__main__":
    main()
