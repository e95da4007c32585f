"""Ask `hotloop compare` what is known: identical sides, and slow-downs planted in native code.

    ./.venv/bin/python benchmarks/verdicts.py [--rounds 40] [--quick]

Every comparison is a process of its own, as a person would start it. `--rounds` is how often identical sides
are compared; each slow-down is planted a quarter as often. Takes about half an hour.
"""

import json
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import benchmark

TARGET = "grid/toy"
WORLDS = 64
CALIBRATION_DRAG = 5_000
CALIBRATION_ROUNDS = 20
AGENT_STEPS = 256_000
OUTCOMES = ("slower", "faster", "same", "cannot tell")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is compared, how often, and with which flags."""

    name: str
    slowdown: float
    runs: int
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one comparison said."""

    outcome: str
    why: str
    ratio: dict[str, float]
    noise: dict[str, float]
    rounds: int
    seconds: float
    exit_code: int


def turns_for(slowdown: float) -> int:
    """The turns of the planted loop that make an env-step this much longer, measured with many turns."""
    if not slowdown:
        return 0
    sides = [
        benchmark.batch_side(str(drag), TARGET, warmup_calls=100, num_envs=WORLDS, drag=drag)
        for drag in (0, CALIBRATION_DRAG)
    ]
    values = benchmark.measure(sides, rounds=CALIBRATION_ROUNDS, agent_steps=AGENT_STEPS)
    clean, dragged = (median(values[str(drag)].ns_per_agent_step) for drag in (0, CALIBRATION_DRAG))
    return round(CALIBRATION_DRAG * slowdown * clean / (dragged - clean))


def ask(drag: int, flags: tuple[str, ...]) -> Answer:
    """Run one comparison of the target with itself, the second side slowed down."""
    command = Path(sys.executable).with_name("hotloop")
    other = f"{TARGET} drag={drag}" if drag else TARGET
    with tempfile.TemporaryDirectory() as folder:
        begin = perf_counter()
        done = subprocess.run(
            [command, "compare", TARGET, other, *flags, "--json", "--output", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = perf_counter() - begin
    if not done.stdout:
        raise SystemExit(f"the comparison failed: {done.stderr}")
    record: dict[str, Any] = json.loads(done.stdout)
    (comparison,) = record["comparisons"]
    return Answer(
        outcome=comparison["outcome"],
        why=comparison["why"],
        ratio=comparison["ratio"],
        noise=comparison["noise"],
        rounds=record["method"]["rounds"],
        seconds=seconds,
        exit_code=done.returncode,
    )


def row(question: Question, answers: list[Answer]) -> list[str]:
    counted = Counter(answer.outcome for answer in answers)
    ratios = sorted(answer.ratio["estimate"] for answer in answers)
    seconds = sorted(answer.seconds for answer in answers)
    return [
        question.name,
        str(len(answers)),
        *(str(counted[outcome]) for outcome in OUTCOMES),
        f"{median(ratios):.4f} ({ratios[0]:.4f} .. {ratios[-1]:.4f})",
        f"{seconds[0]:.0f} .. {seconds[-1]:.0f}",
    ]


def main() -> None:
    arguments = benchmark.parser(__doc__, rounds=40).parse_args()
    pairs = 4 if arguments.quick else int(arguments.rounds)
    questions = (
        Question(name="identical", slowdown=0.0, runs=pairs),
        Question(name="+3%, --thorough", slowdown=0.03, runs=pairs // 4, flags=("--thorough",)),
        Question(name="+10%", slowdown=0.10, runs=pairs // 4),
    )
    answers: dict[str, list[Answer]] = {}
    for question in questions:
        answers[question.name] = []
        drag = turns_for(question.slowdown)
        for run in range(question.runs):
            answers[question.name].append(ask(drag, question.flags))
            print(question.name, run + 1, answers[question.name][-1], file=sys.stderr, flush=True)
    header = ["planted in B", "runs", *OUTCOMES, "speed of B / A: median (range)", "seconds"]
    text = benchmark.table(header, [row(question, answers[question.name]) for question in questions])
    benchmark.publish("verdicts", text, {"answers": answers}, arguments)


if __name__ == "__main__":
    main()
