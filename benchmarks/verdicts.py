"""Ask `hotloop compare` what is known: identical sides, and slow-downs planted in native code.

    ./.venv/bin/python benchmarks/verdicts.py --part K/N --cores 2,3 --json part-K.jsonl [--minutes M]
    ./.venv/bin/python benchmarks/verdicts.py --summary part-*.jsonl

The questions are laid down in one order, the weightiest first, and shared out: part K of N takes every N-th
of them, on cores of its own. Each answer is one line of the file as soon as it is known; what a file
already answers is not asked again. Half of the questions are asked beside one process that never rests, on
the same cores. `--summary` prints the table of all parts and whether each promise is kept.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain, islice, zip_longest
from pathlib import Path
from statistics import median
from time import perf_counter

import benchmark
from hotloop.core import registry
from hotloop.core.record import Record
from hotloop.core.settings import Target
from hotloop.core.turn_clock import Turn
from hotloop.lab.compare.compare import CompareSettings, compare
from hotloop.lab.compare.contenders import TargetContender
from hotloop.lab.measure.loop import Plan, rounds_of
from hotloop.lab.measure.policy import RANDOM
from hotloop.lab.measure.sides import no_collection

PLAIN = Path(__file__).with_name("plain.py")
ZOO = Path(__file__).parents[1] / "tests" / "zoo"

IDENTICAL = (
    Target("grid/arena", {"num_envs": "16"}),
    Target(f"{PLAIN}:walk"),
    Target("grid/toy", {"num_envs": "16"}),
    Target("prospector/short", {"num_envs": "16"}),
    Target(f"{PLAIN}:field"),
    Target("cards/mirror", {"num_envs": "16"}),
    Target(f"{ZOO}/spinvec.py:Spin"),
    Target(f"{ZOO}/heavy.py:Heavy", {"num_envs": "4", "vector": "async"}),
)
SMALL = ("grid/arena", "grid/toy", "prospector/short", "cards/mirror", "farm/dev")
"""Whose small slow-downs are looked for."""

NUM_ENVS, FEW_ENVS, HEAVY = "16", "2", ("farm/default", "farm/steady")

PLANTED = {"identical": 0.0, "+3%": 0.03, "+5%": 0.05, "+10%": 0.10, "x2": 1.0, "x5": 4.0}
"""The part that is added to the time of an env-step."""

AGAIN_AND_AGAIN = 10
"""How often each slow-down is planted, quiet and busy."""

IDENTICAL_RUNS = 200
IDENTICAL_S, BUDGET_S = 1.5, 5.0
"""Seconds of a run."""

CALIBRATION_ROUNDS, FIRST_DRAG, ENOUGH = 24, 2_000, 1.6
"""The planted loop is made longer until an env-step takes so many times as long, and then read off."""

OUTCOMES = ("slower", "faster", "same", "cannot tell")
BUSY = {False: "quiet", True: "busy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is compared, and how."""

    planted: str
    target: Target
    busy: bool
    run: int

    @property
    def name(self) -> str:
        """What a file is searched for, to know whether it was answered."""
        return f"{self.planted} {label(self.target)} {BUSY[self.busy]} {self.run}"

    @property
    def plan(self) -> Plan:
        seconds = IDENTICAL_S if self.planted == "identical" else BUDGET_S
        return Plan(budget_ns=round(seconds * 1e9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one comparison said."""

    question: str
    planted: str
    target: str
    busy: bool
    drag: int
    outcome: str
    why: str
    estimate: float | None
    interval: tuple[float, float] | None
    noise: float | None
    rounds: int
    seconds: float
    load: float


def label(target: Target) -> str:
    """The name of a target, without where this folder is."""
    return target.name.removeprefix(f"{PLAIN.parent}/").removeprefix(f"{ZOO}/")


def native(name: str) -> Target:
    """A preset in a batch that a replay is soon through with."""
    return Target(name, {"num_envs": FEW_ENVS if name in HEAVY else NUM_ENVS})


def questions() -> list[Question]:
    """All of them in one order: identical sides and small slow-downs side by side first, then large ones."""
    identical = asked("identical", IDENTICAL, IDENTICAL_RUNS // 2 // len(IDENTICAL) + 1)
    small = [
        asked(name, [native(each) for each in SMALL], AGAIN_AND_AGAIN // len(SMALL))
        for name in ("+3%", "+5%", "+10%")
    ]
    large = [asked(name, presets(), AGAIN_AND_AGAIN) for name in ("x2", "x5")]
    every = IDENTICAL_RUNS // (len(small) * 2 * AGAIN_AND_AGAIN)
    return [*woven(islice(identical, IDENTICAL_RUNS), spread(*small), every), *spread(*large)]


def presets() -> list[Target]:
    worlds = registry.worlds().values()
    return [native(each.target) for world in worlds for each in registry.presets(world)]


def asked(planted: str, targets: Sequence[Target], times: int) -> Iterator[Question]:
    """Of each target in turn, quiet and then busy, so many times."""
    for run in range(times):
        for target in targets:
            for busy in (False, True):
                yield Question(planted=planted, target=target, busy=busy, run=run)


def spread(*kinds: Iterable[Question]) -> Iterator[Question]:
    """One of each kind in turn."""
    return (each for row in zip_longest(*kinds) for each in row if each is not None)


def woven(many: Iterable[Question], few: Iterator[Question], every: int) -> Iterator[Question]:
    """Put one of the few after so many of the others."""
    for number, each in enumerate(many, 1):
        yield each
        if number % every == 0:
            yield from islice(few, 1)
    yield from few


class Neighbor:
    """A process that never rests, stopped until it is let go; a child of no process of this benchmark."""

    def __init__(self) -> None:
        spin = f"{sys.executable} -c 'while True: pass' >/dev/null 2>&1 & echo $!"
        started = subprocess.run(["sh", "-c", spin], stdout=subprocess.PIPE, text=True, check=True)
        self.pid = int(started.stdout)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)


@contextmanager
def stopped_neighbor() -> Iterator[Neighbor]:
    neighbor = Neighbor()
    try:
        neighbor.send(signal.SIGSTOP)
        yield neighbor
    finally:
        neighbor.send(signal.SIGKILL)


class Calibration:
    """The turns of the planted loop that make an env-step longer by a part; measured once, alone."""

    def __init__(self) -> None:
        self._per_turn: dict[str, float] = {}

    def drag(self, question: Question) -> int:
        part = PLANTED[question.planted]
        if not part:
            return 0
        key = question.target.words
        if key not in self._per_turn:
            self._per_turn[key] = part_per_turn(question.target)
        return max(1, round(part / self._per_turn[key]))


def part_per_turn(target: Target) -> float:
    """The part of an env-step's time that one turn of the loop adds."""
    drag = FIRST_DRAG
    while True:
        times = dragged(target, drag)
        if times >= ENOUGH:
            return (times - 1) / drag
        drag *= 4


def dragged(target: Target, drag: int) -> float:
    """How many times as long an env-step takes with so much drag, the two in turns."""
    sides = {name: TargetContender(with_drag(target, name)).side(RANDOM) for name in (0, drag)}
    grain = sides[0].grain
    ns = min(sides[0].turn(calls * grain).ns_per_env_step for calls in (1, 2, 4, 8))
    env_steps = max(1, round(500_000 / ns / grain)) * grain
    turns = {str(name): partial(side.turn, env_steps) for name, side in sides.items()}
    with no_collection():
        rounds: list[dict[str, Turn]] = list(islice(rounds_of(turns), CALIBRATION_ROUNDS))
    for side in sides.values():
        side.close()
    return median(each[str(drag)].ns_per_env_step / each["0"].ns_per_env_step for each in rounds)


def with_drag(target: Target, drag: int) -> Target:
    return Target(target.name, {**target.keys, "drag": str(drag)}) if drag else target


def answer(question: Question, drag: int) -> Answer:
    """Compare a target with itself, the second side slowed down."""
    begin = perf_counter()
    a, b = (TargetContender(each) for each in (question.target, with_drag(question.target, drag)))
    return told(question, drag, compare(a, b, CompareSettings(plan=question.plan)), perf_counter() - begin)


def told(question: Question, drag: int, record: Record, seconds: float) -> Answer:
    (comparison,) = record.comparisons
    ratio, noise = comparison.ratio, comparison.noise
    return Answer(
        question=question.name,
        planted=question.planted,
        target=label(question.target),
        busy=question.busy,
        drag=drag,
        outcome=comparison.outcome,
        why=comparison.why,
        estimate=ratio.estimate if ratio else None,
        interval=(ratio.low, ratio.high) if ratio else None,
        noise=noise.estimate if noise else None,
        rounds=record.method.rounds,
        seconds=round(seconds, 2),
        load=os.getloadavg()[0],
    )


def answer_part(mine: Sequence[Question], kept: Path, minutes: float) -> None:
    """Answer what is not answered yet, until the time is over; each answer is kept at once."""
    known = {each.question for each in answers([kept])} if kept.exists() else set[str]()
    end, calibration = perf_counter() + 60 * minutes, Calibration()
    with kept.open("a", encoding="utf-8") as lines, stopped_neighbor() as other:
        for number, question in enumerate(mine, 1):
            if question.name in known:
                continue
            if perf_counter() > end:
                print(f"{number - 1} of {len(mine)} in {minutes:g} minutes", file=sys.stderr)
                return
            other.send(signal.SIGSTOP)
            drag = calibration.drag(question)  # alone: beside a neighbor it would plant less
            if question.busy:
                other.send(signal.SIGCONT)
            found = answer(question, drag)
            print(json.dumps(asdict(found)), file=lines, flush=True)
            print(
                number, len(mine), found.question, found.outcome, found.seconds, file=sys.stderr, flush=True
            )


def answers(files: Iterable[Path]) -> list[Answer]:
    """What the files say; a line that was cut off is left out."""
    found = []
    for line in chain.from_iterable(each.read_text("utf-8").splitlines() for each in files):
        try:
            found.append(Answer(**json.loads(line)))
        except json.JSONDecodeError:
            print(f"left out: {line[:60]}", file=sys.stderr)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """How often a verdict may or must be given."""

    words: str
    planted: str
    outcome: str
    busy: bool | None = None
    """None where quiet and busy runs count together."""
    least: float = 0.0
    most: float = 1.0
    """Shares of the runs."""
    target: str | None = None

    def of(self, every: Iterable[Answer]) -> list[Answer]:
        """The answers that it is about."""
        return [
            each
            for each in every
            if each.planted == self.planted
            and self.busy in (None, each.busy)
            and self.target in (None, each.target)
        ]

    def line(self, every: Iterable[Answer]) -> str:
        asked = self.of(every)
        hits = sum(self.is_hit(each) for each in asked)
        kept = bool(asked) and self.least * len(asked) <= hits <= self.most * len(asked)
        return (
            f"{'kept' if kept else 'MISSED' if asked else 'not asked'}: {self.words}: {hits} of {len(asked)}"
        )

    def is_hit(self, each: Answer) -> bool:
        return each.outcome == self.outcome or each.why.startswith(self.outcome)


def promises() -> list[Promise]:
    """What is claimed of the verdicts."""
    none, one = 0.0, 1 / IDENTICAL_RUNS
    found = partial(Promise, outcome="slower")
    return [
        Promise(words="identical, slower: none", planted="identical", outcome="slower", most=none),
        Promise(words="identical, faster: at most 1 of 200", planted="identical", outcome="faster", most=one),
        Promise(
            words="identical, different work: none", planted="identical", outcome="different work", most=none
        ),
        Promise(
            words="identical, same, quiet: 85%", planted="identical", outcome="same", busy=False, least=0.85
        ),
        found(words="+3% found, quiet: 9 of 10", planted="+3%", busy=False, least=0.9),
        found(words="+3% found, busy: 6 of 10", planted="+3%", busy=True, least=0.6),
        found(words="+5% found, quiet: 10 of 10", planted="+5%", busy=False, least=1.0),
        found(words="+5% found, busy: 9 of 10", planted="+5%", busy=True, least=0.9),
        found(words="+10% found, quiet: 10 of 10", planted="+10%", busy=False, least=1.0),
        found(words="+10% found, busy: 9 of 10", planted="+10%", busy=True, least=0.9),
        *(
            found(
                words=f"{planted} found, {BUSY[busy]}: all of every preset",
                planted=planted,
                busy=busy,
                least=1.0,
            )
            for planted in ("x2", "x5")
            for busy in (False, True)
        ),
    ]


def row(planted: str, target: str, asked: Sequence[Answer]) -> list[str]:
    counted = Counter(each.outcome for each in asked)
    ratios = sorted(each.estimate for each in asked if each.estimate is not None)
    seconds = sorted(each.seconds for each in asked)
    return [
        planted,
        target,
        BUSY[asked[0].busy],
        str(len(asked)),
        *(str(counted[outcome]) for outcome in OUTCOMES),
        f"{median(ratios):.3f} ({ratios[0]:.3f} .. {ratios[-1]:.3f})" if ratios else "",
        f"{seconds[0]:.1f} .. {seconds[-1]:.1f}",
    ]


def rows(every: Sequence[Answer]) -> Iterator[list[str]]:
    """One a kind of question, and one a preset where each preset was promised."""
    for planted in PLANTED:
        for busy in (False, True):
            kind = [each for each in every if each.planted == planted and each.busy == busy]
            if kind:
                yield row(planted, "all", kind)
        for target in sorted({each.target for each in every if each.planted == planted}):
            for busy in (False, True):
                one = [
                    each
                    for each in every
                    if (each.planted, each.target, each.busy) == (planted, target, busy)
                ]
                if one and planted in ("identical", "x2", "x5"):
                    yield row("", target, one)


def summary(files: Sequence[Path], arguments: argparse.Namespace) -> None:
    """Print and publish the table, and below it each promise."""
    every = list({each.question: each for each in answers(files)}.values())
    header = ["planted in B", "target", "beside", "runs", *OUTCOMES, "speed of B / A", "seconds"]
    lines = [f"- {promise.line(every)}" for promise in promises()]
    text = "\n".join([benchmark.table(header, list(rows(every))), "", *lines])
    benchmark.publish("verdicts", text, {"answers": every}, arguments)


def part_of(word: str) -> tuple[int, int]:
    """Read `2/7`: the second of seven parts."""
    part, _, parts = word.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{word} is no part: expected 1/7 to 7/7")
    return int(part), int(parts)


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("--part", type=part_of, default=(1, 1), metavar="K/N", help="which part of the work")
    parser.add_argument("--cores", help="to stay on, the neighbour too: 2,3")
    parser.add_argument("--json", type=Path, default=Path("verdicts.jsonl"), help="where answers are kept")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which nothing new is begun")
    parser.add_argument("--summary", type=Path, nargs="+", metavar="FILE", help="print what files say")
    arguments = parser.parse_args()
    if arguments.summary:
        summary(arguments.summary, arguments)
        return
    if arguments.cores:
        benchmark.pin([int(core) for core in arguments.cores.split(",")])
    part, parts = arguments.part
    mine = questions()[part - 1 :: parts]
    answer_part(mine[::40] if arguments.quick else mine, arguments.json, arguments.minutes)


if __name__ == "__main__":
    main()
