"""Ask `hotloop compare` what is known: identical sides, and slow-downs planted in native code.

    ./.venv/bin/python benchmarks/verdicts.py [--rounds 40] [--quick] [--targets T ...] [--budget S] [--busy]

Every comparison is a process of its own, as a person would start it. `--rounds` is how often identical
sides are compared, of each target in turn; each slow-down is planted a quarter as often. `--busy` does
it beside one process that never rests. Takes about half an hour.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import benchmark

TARGETS = ("grid/toy", "grid/arena", "prospector/short")
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
    """The part that is added to the time of an env-step."""
    runs: int
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one comparison said."""

    target: str
    outcome: str
    why: str
    ratio: dict[str, float] | None
    noise: dict[str, float] | None
    rounds: int
    seconds: float
    exit_code: int
    load: float = field(default_factory=lambda: os.getloadavg()[0])


@contextmanager
def beside(*, busy: bool) -> Iterator[None]:
    """One process that never rests, if asked for."""
    if not busy:
        yield
        return
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def turns_for(target: str, slowdown: float) -> int:
    """The turns of the planted loop that make an env-step this much longer, measured with many turns."""
    if not slowdown:
        return 0
    sides = [
        benchmark.batch_side(str(drag), target, warmup_calls=100, num_envs=WORLDS, drag=drag)
        for drag in (0, CALIBRATION_DRAG)
    ]
    values = benchmark.measure(sides, rounds=CALIBRATION_ROUNDS, agent_steps=AGENT_STEPS)
    clean, dragged = (median(values[str(drag)].ns_per_agent_step) for drag in (0, CALIBRATION_DRAG))
    return round(CALIBRATION_DRAG * slowdown * clean / (dragged - clean))


def ask(target: str, drag: int, flags: tuple[str, ...]) -> Answer:
    """Run one comparison of a target with itself, the second side slowed down."""
    command = Path(sys.executable).with_name("hotloop")
    other = f"{target} drag={drag}" if drag else target
    with tempfile.TemporaryDirectory() as folder:
        begin = perf_counter()
        done = subprocess.run(
            [command, "compare", target, other, *flags, "--json", "--output", folder],
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
        target=target,
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
    ratios = sorted(answer.ratio["estimate"] for answer in answers if answer.ratio)
    seconds = sorted(answer.seconds for answer in answers)
    return [
        question.name,
        str(len(answers)),
        *(str(counted[outcome]) for outcome in OUTCOMES),
        f"{median(ratios):.4f} ({ratios[0]:.4f} .. {ratios[-1]:.4f})" if ratios else "",
        f"{seconds[0]:.0f} .. {seconds[-1]:.0f}",
    ]


def questions_of(pairs: int, budget: float | None) -> tuple[Question, ...]:
    """Identical sides, and slow-downs from what is hard to see to what nobody can miss."""
    flags = () if budget is None else ("--budget", f"{budget:g}")
    planted = {"+3%": 0.03, "+10%": 0.10, "x2": 1.0, "x5": 4.0}
    return (
        Question(name="identical", slowdown=0.0, runs=pairs, flags=flags),
        *(Question(name=name, slowdown=by, runs=pairs // 4, flags=flags) for name, by in planted.items()),
    )


def answers_to(question: Question, targets: list[str]) -> list[Answer]:
    """Ask it of each target in turn."""
    drags = {target: turns_for(target, question.slowdown) for target in targets}
    answers = list[Answer]()
    for run in range(question.runs):
        target = targets[run % len(targets)]
        answers.append(ask(target, drags[target], question.flags))
        print(question.name, run + 1, answers[-1], file=sys.stderr, flush=True)
    return answers


def main() -> None:
    parser = benchmark.parser(__doc__, rounds=40)
    parser.add_argument("--targets", nargs="+", default=list(TARGETS))
    parser.add_argument("--budget", type=float, help="seconds of a run")
    parser.add_argument("--busy", action="store_true", help="beside one process that never rests")
    arguments = parser.parse_args()
    questions = questions_of(4 if arguments.quick else int(arguments.rounds), arguments.budget)
    with beside(busy=arguments.busy):
        answers = {each.name: answers_to(each, arguments.targets) for each in questions}
    header = ["planted in B", "runs", *OUTCOMES, "speed of B / A: median (range)", "seconds"]
    text = benchmark.table(header, [row(each, answers[each.name]) for each in questions])
    benchmark.publish("verdicts", text, {"answers": answers, "busy": arguments.busy}, arguments)


if __name__ == "__main__":
    main()
