"""Validate everything at scale: both encoders of the grid, and the twin of every preset beside native code.

    ./.venv/bin/python benchmarks/validation.py [--quick]

It runs `hotloop validate WORLD soak`, for the grid also `--against original`, and says how much was compared,
that nothing differs, and how long all of it took.
"""

import json
import subprocess
import sys
from tempfile import TemporaryDirectory

from hotloop.core import registry
from hotloop.core.clock import now_ns
from interleaved import output

ALLOWED_S = 600
QUICK_STEPS = "800"
HEADER = ["command", "preset", "comparisons", "every step", "mismatches", "time"]


def commands(scale: str) -> list[list[str]]:
    """The command lines, the quickest first."""
    twins = [["validate", name, scale] for name in registry.worlds()]
    return [["validate", "grid", scale, "--against", "original"], *twins]


def run(words: list[str]) -> tuple[list[dict[str, object]], float]:
    """The records of a command, and the seconds it took; ends the benchmark where something differs."""
    begin = now_ns()
    with TemporaryDirectory() as folder:
        program = "import sys; from hotloop.cli.main import main; sys.exit(main())"
        call = [sys.executable, "-c", program, *words, "--json", "--output", folder]
        done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"hotloop {' '.join(words)} ended with {done.returncode}")
    records: list[dict[str, object]] = json.loads(done.stdout)
    return records, (now_ns() - begin) / 1e9


def row(words: list[str], record: dict, took: str) -> list[str]:
    checked = record["validation"]
    first = sum(part["comparisons"] for part in checked["parts"] if not part["by_digest"])
    numbers = [f"{number:,}" for number in (checked["comparisons"], first, checked["mismatches"])]
    return [f"hotloop {' '.join(words)}", record["target"]["name"], *numbers, took]


def main() -> None:
    arguments = output.parser(__doc__).parse_args()
    rows: list[list[str]] = []
    kept, total = [], 0.0
    for words in commands(QUICK_STEPS if arguments.quick else "soak"):
        records, seconds = run(words)
        total += seconds
        times = [f"{seconds:.0f} s", *[""] * len(records)]
        rows += [row(words, record, took) for record, took in zip(records, times, strict=False)]
        found = [record["validation"] for record in records]
        kept.append({"words": words, "seconds": seconds, "validations": found})
    text = f"{output.table(HEADER, rows)}\n\nTogether {total:.0f} s; at most {ALLOWED_S} s were allowed."
    output.publish("validation", text, {"commands": kept, "seconds": total}, arguments)


if __name__ == "__main__":
    main()
