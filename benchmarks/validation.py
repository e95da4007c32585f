"""Validate everything at scale: both encoders of the grid, and the twin of every preset beside native code.

    ./.venv/bin/python benchmarks/validation.py [--quick]

It runs `hotloop validate PRESET soak` for every preset, and `--against original` for the grid's, as many at
once as there are cores, and says how much was compared, that nothing differs, and how long all of it took.
"""

import json
import subprocess
import sys
from multiprocessing.pool import ThreadPool
from tempfile import TemporaryDirectory
from typing import Any

import benchmark
from hotloop.core import registry
from hotloop.core.clock import now_ns
from hotloop.core.machine import usable_cores

ALLOWED_S = 600
QUICK_STEPS = "800"
HEADER = ["command", "compared at every step", "with those by digest", "mismatches", "time"]


def commands(scale: str) -> list[list[str]]:
    """The command lines, the slowest first."""
    targets = [found.target for world in registry.worlds().values() for found in registry.presets(world)]
    encoders = [target for target in targets if target.startswith("grid/")]
    twins = [["validate", target, scale] for target in reversed(targets)]
    return [*twins, *(["validate", target, scale, "--against", "original"] for target in encoders)]


def run(words: list[str]) -> tuple[dict[str, Any], float]:
    """The record of a command, and the seconds it took; ends the benchmark where something differs."""
    begin = now_ns()
    with TemporaryDirectory() as folder:
        program = "import sys; from hotloop.cli.main import main; sys.exit(main())"
        call = [sys.executable, "-c", program, *words, "--json", "--output", folder]
        done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"hotloop {' '.join(words)} ended with {done.returncode}")
    return json.loads(done.stdout), (now_ns() - begin) / 1e9


def row(words: list[str], record: dict[str, Any], seconds: float) -> list[str]:
    checked = record["validation"]
    first = sum(part["comparisons"] for part in checked["parts"] if not part["by_digest"])
    numbers = [f"{number:,}" for number in (first, checked["comparisons"], checked["mismatches"])]
    return [f"`hotloop {' '.join(words)}`", *numbers, f"{seconds:.0f} s"]


def main() -> None:
    arguments = benchmark.parser(__doc__).parse_args()
    lines, begin = commands(QUICK_STEPS if arguments.quick else "soak"), now_ns()
    with ThreadPool(usable_cores() or 1) as pool:
        found = pool.map(run, lines, chunksize=1)
    total = (now_ns() - begin) / 1e9
    rows = [row(words, *each) for words, each in zip(lines, found, strict=True)]
    text = f"{benchmark.table(HEADER, rows)}\n\nTogether {total:.0f} s; at most {ALLOWED_S} s were allowed."
    kept = [
        {"words": words, "seconds": seconds, "validation": record["validation"]}
        for words, (record, seconds) in zip(lines, found, strict=True)
    ]
    benchmark.publish("validation", text, {"commands": kept, "seconds": total}, arguments)


if __name__ == "__main__":
    main()
