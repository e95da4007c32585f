"""Runs one cell in a process of its own.

`python -m hotloop.lab.workers.cell CELL RESULT`: the cell as JSON, and the file that says what became of it;
the record goes beside it. How far it is goes to stdout, a line `DONE TOTAL` each time; what the target prints
goes to stderr.
"""

import json
import os
import sys
from pathlib import Path

from hotloop.core.files import write_new
from hotloop.lab.cells import Cell, done


def main() -> None:
    cell, result = Cell.from_json(sys.argv[1]), Path(sys.argv[2])
    with os.fdopen(os.dup(1), "w", buffering=1) as line:
        os.dup2(2, 1)
        found = done(cell, lambda at, total: print(at, total, file=line))
    if found.record is not None:
        write_new(result.with_name("record.json"), found.record.to_json())
    write_new(result, json.dumps({"refused": found.refused, "code": int(found.code)}))


if __name__ == "__main__":
    main()
