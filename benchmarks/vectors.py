"""Compare vector envs in pairs: does Hotloop's ratio agree with a plain clock beside it?

    python tools/vector_environment.py FOLDER
    FOLDER/bin/python benchmarks/vectors.py [--only WORD ...] [--again] [--minutes M] [--json vectors.jsonl]
    FOLDER/bin/python benchmarks/vectors.py --summary vectors.jsonl

Every pair runs the plain clock of vector_clock.py, then `hotloop compare A B`, then the plain clock again.
The plain ratio is the median over the rounds of both runs of the clock. Each answer is a line of the file as
soon as it is known. A pair that the file already answers is left out, unless `--again` repeats it. The kinds
are in vector_kinds.py.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from math import comb, log
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import benchmark
from hotloop.core.machine import machine

HERE = Path(__file__).resolve().parent
KINDS = HERE / "vector_kinds.py"
HOTLOOP = Path(sys.executable).with_name("hotloop")
CLOCK_S, QUICK_S = 4.0, 0.5
"""Of each of the two runs of the plain clock."""
LIMIT_S = 600.0

NEAR = log(1.10)
"""How far Hotloop's ratio may be from the plain one."""
CLEAR = 1.5
"""Where the plain clock differs so much, the verdict has to be decided."""
UNDECIDED, OF = 3, 14
"""At most so many of so many pairs may end with cannot tell."""
MISS = 0.05
"""How often the interval of the plain clock may miss."""

NOT_EQUAL, FAULTS = 2, (64, 70)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two kinds that give the same answers."""

    a: str
    b: str
    needs: tuple[str, ...] = ()
    """Packages beyond Gymnasium."""
    ignore: tuple[str, ...] = ()
    """Fields that are never the same twice."""

    @property
    def name(self) -> str:
        return f"{self.a} | {self.b}"

    @property
    def kinds(self) -> tuple[str, str]:
        return (f"{KINDS}:{self.a}", f"{KINDS}:{self.b}")


HEAVY, SUMMING = "cost=heavy", "cost=summing"
SB3 = ("stable_baselines3", "torch")

PAIRS = (
    Pair(a="gym_sync", b="gym_async"),
    Pair(a=f"gym_sync {HEAVY}", b=f"gym_async {HEAVY}"),
    Pair(a=f"gym_async {HEAVY} shared=false", b=f"gym_async {HEAVY}"),
    Pair(a="gym_sync", b="gym_sync copy=false"),
    Pair(a="gym_sync", b="gym_recorded"),
    # Rewards of DummyVecEnv have 32 bits, and those of SubprocVecEnv 64.
    Pair(a=f"sb3_subproc {HEAVY}", b=f"sb3_dummy {HEAVY}", needs=SB3, ignore=("rewards",)),
    Pair(a="sb3_dummy", b="sb3_subproc", needs=SB3, ignore=("rewards",)),
    Pair(a="serial", b="spin"),
    Pair(a=f"serial {HEAVY}", b=f"spin {HEAVY}"),
    Pair(a=f"serial {HEAVY}", b=f"threads {HEAVY}"),
    Pair(a=f"serial {SUMMING}", b=f"threads {SUMMING}"),
    Pair(a="tasks", b="serial"),
    Pair(a=f"serial {HEAVY}", b=f"pipes {HEAVY}"),
    Pair(a="pipes", b="spin"),
    Pair(a="numpy_batch", b="numba_batch", needs=("numba",)),
    Pair(a="numpy_batch", b="jax_batch", needs=("jax",)),
    Pair(a="torch_batch", b="numpy_batch", needs=("torch",)),
    Pair(a="c_batch", b="numpy_batch"),
    Pair(a="c_batch", b="numba_batch", needs=("numba",)),
    Pair(a="envpool_sync", b="envpool_sync threads=2", needs=("envpool",)),
    Pair(a="envpool_parts", b="envpool_parts parts=4", needs=("envpool",)),
    Pair(a=f"tianshou_dummy {HEAVY}", b=f"tianshou_subproc {HEAVY}", needs=("tianshou",)),
    Pair(a="tianshou_shmem", b="tianshou_subproc", needs=("tianshou",)),
    Pair(a=f"ray_workers {HEAVY}", b=f"serial {HEAVY}", needs=("ray",)),
    Pair(a="puffer", b="puffer backend=Multiprocessing", needs=("pufferlib",)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How many times as long A took as B, and between what it lies."""

    estimate: float
    low: float
    high: float

    @property
    def words(self) -> str:
        return f"{self.estimate:.3f} [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What Hotloop and the plain clock said of one pair."""

    pair: str
    code: int
    outcome: str
    why: str
    hotloop: Ratio | None
    plain: Ratio | None
    """None where the clock itself failed."""
    halves: tuple[float, ...]
    """The plain medians before and after Hotloop's run."""
    rounds: int
    calls: int
    """Of step() in a turn of the plain clock."""
    a_us: float
    b_us: float
    seconds: float
    load_before: float
    load_after: float
    machine: dict[str, Any]
    versions: dict[str, str]

    @property
    def is_undecided(self) -> bool:
        return self.outcome == "cannot tell"

    @property
    def is_steady(self) -> bool:
        """Whether the plain clock agrees with itself, before and after Hotloop's run."""
        return abs(log(self.halves[0] / self.halves[-1])) <= NEAR if self.halves else True

    @property
    def is_near(self) -> bool:
        """Whether the two ratios agree; a run without a ratio is held by another bar."""
        if self.hotloop is None or self.plain is None:
            return True
        return abs(log(self.hotloop.estimate / self.plain.estimate)) <= NEAR

    @property
    def is_clear(self) -> bool:
        return self.plain is not None and abs(log(self.plain.estimate)) > log(CLEAR)

    @property
    def is_wrong_way(self) -> bool:
        if self.plain is None or self.outcome not in ("faster", "slower"):
            return False
        return (self.outcome == "faster") != (self.plain.estimate > 1)


def sign_interval(ratios: Sequence[float]) -> Ratio:
    """Return the median and the exact interval of the sign test around it."""
    ordered, count = sorted(ratios), len(ratios)
    below, tail = 0, 0.5**count
    while 2 * (tail + comb(count, below + 1) * 0.5**count) <= MISS:
        below += 1
        tail += comb(count, below) * 0.5**count
    return Ratio(estimate=median(ordered), low=ordered[below], high=ordered[count - 1 - below])


def clock(pair: Pair, seconds: float) -> dict[str, Any]:
    """Run the plain clock in a process of its own."""
    words = [sys.executable, "-c", "from vector_clock import main; main()", *pair.kinds, str(seconds)]
    done = subprocess.run(words, cwd=HERE, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode:
        return {"failed": done.stderr.strip().rpartition("\n")[2]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(pair: Pair) -> tuple[int, dict[str, Any], str]:
    """Return the exit code of `hotloop compare`, its comparison, and its line of an error."""
    with tempfile.TemporaryDirectory() as folder:
        fields = [word for field in pair.ignore for word in ("--ignore", field)]
        words = [str(HOTLOOP), "compare", *pair.kinds, *fields, "--json", "--output", folder]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    lines = [line for line in done.stderr.splitlines() if line.startswith(("hotloop: ", "error: "))]
    try:
        comparison = json.loads(done.stdout)["comparisons"][0]
    except (ValueError, LookupError):
        comparison = {}
    return done.returncode, comparison, lines[-1] if lines else done.stderr[-200:]


def ask(pair: Pair, seconds: float) -> Answer:
    """Measure a pair by the plain clock, by Hotloop, and by the plain clock again."""
    begin, load = perf_counter(), os.getloadavg()[0]
    before = clock(pair, seconds)
    code, comparison, line = compare(pair)
    both = [before, clock(pair, seconds)]
    halves = [each["ratios"] for each in both if "ratios" in each]
    ratios = [ratio for half in halves for ratio in half]
    ratio = comparison.get("ratio")
    failed = " ".join(each["failed"] for each in both if "failed" in each)
    return Answer(
        pair=pair.name,
        code=code,
        outcome=comparison.get("outcome", "no verdict"),
        why=" ".join(filter(None, (comparison.get("why", line), failed))),
        hotloop=Ratio(**{key: ratio[key] for key in ("estimate", "low", "high")}) if ratio else None,
        plain=sign_interval(ratios) if ratios else None,
        halves=tuple(map(median, halves)),
        rounds=len(ratios),
        calls=both[0].get("calls", 0),
        a_us=both[0].get("a_us", 0.0),
        b_us=both[0].get("b_us", 0.0),
        seconds=round(perf_counter() - begin, 1),
        load_before=load,
        load_after=os.getloadavg()[0],
        machine=dict(machine()),
        versions={package: version_of(package) for package in ("gymnasium", "numpy", *pair.needs)},
    )


def version_of(package: str) -> str:
    try:
        return version(package.replace("_", "-"))
    except PackageNotFoundError:
        return "unknown"


def answers(path: Path) -> list[Answer]:
    """Read the last answer of each pair."""
    found: dict[str, Answer] = {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        values = json.loads(line)
        for key in ("hotloop", "plain"):
            values[key] = Ratio(**values[key]) if values[key] else None
        found[values["pair"]] = Answer(**values)
    return list(found.values())


def missing(pair: Pair) -> list[str]:
    return [package for package in pair.needs if find_spec(package) is None]


def ask_all(pairs: Sequence[Pair], arguments: argparse.Namespace) -> None:
    """Ask for each pair that is not answered yet, until the time is over."""
    known = set() if arguments.again else {each.pair for each in answers(arguments.json)}
    end = perf_counter() + 60 * arguments.minutes
    for number, pair in enumerate(pairs, 1):
        if missing(pair):
            print(f"left out: {pair.name}: {', '.join(missing(pair))} is not installed", file=sys.stderr)
        elif perf_counter() > end:
            print(f"{number - 1} of {len(pairs)} in {arguments.minutes:g} minutes", file=sys.stderr)
            return
        elif pair.name not in known:
            given = ask(pair, QUICK_S if arguments.quick else CLOCK_S)
            with arguments.json.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(asdict(given)) + "\n")
            print(number, len(pairs), " ".join(row(given)), file=sys.stderr, flush=True)


def row(each: Answer) -> list[str]:
    away = each.hotloop.estimate / each.plain.estimate - 1 if each.hotloop and each.plain else None
    marks = [
        word
        for word, is_so in (
            ("the plain clock contradicts itself", not each.is_steady),
            ("not near", not each.is_near),
            ("wrong way", each.is_wrong_way),
            ("undecided and clear", each.is_undecided and each.is_clear),
            ("not equal", each.code == NOT_EQUAL),
            ("failed", each.code in FAULTS or each.plain is None),
        )
        if is_so
    ]
    return [
        *each.pair.split(" | "),
        each.outcome,
        each.hotloop.words if each.hotloop else "",
        each.plain.words if each.plain else "",
        "" if away is None else f"{away:+.1%}",
        f"{each.a_us:.0f}, {each.b_us:.0f}",
        f"{each.load_before:.1f}",
        ", ".join(marks),
    ]


HEADER = (
    "A",
    "B",
    "verdict",
    "Hotloop's ratio",
    "plain ratio",
    "away",
    "us a call, A, B",
    "load",
    "what is wrong",
)


def bars(every: Sequence[Answer]) -> Iterable[str]:
    """One line for each thing that is promised."""
    unsteady = [each for each in every if not each.is_steady]
    names = "; ".join(
        f"{each.pair} ({' and '.join(f'{half:.2f}' for half in each.halves)})" for each in unsteady
    )
    yield f"- left out below, where the plain clock contradicts itself by more than 10%: {names or 'none'}"
    every = [each for each in every if each.is_steady]
    most = max(UNDECIDED * len(every) // OF, 1)
    undecided = [each for each in every if each.is_undecided]
    failed = [each for each in every if each.code in FAULTS or each.plain is None or each.code == NOT_EQUAL]
    far = [each for each in every if not each.is_near]
    clear = [each for each in undecided if each.is_clear]
    wrong = [each for each in every if each.is_wrong_way]
    for words, these, allowed in (
        ("Hotloop's ratio within 10% of the plain clock's: all", far, 0),
        (f"cannot tell: at most {most} of {len(every)}", undecided, most),
        (f"cannot tell where the plain clock differs by more than {CLEAR}: none", clear, 0),
        ("faster or slower the wrong way: none", wrong, 0),
        ("not equal, or no answer: none", failed, 0),
    ):
        names = f" ({'; '.join(each.pair for each in these)})" if these else ""
        yield f"- {'kept' if len(these) <= allowed else 'MISSED'}: {words}: {len(these)}{names}"


def summarize(arguments: argparse.Namespace) -> None:
    every = answers(arguments.summary or arguments.json)
    text = "\n".join([benchmark.table(HEADER, [row(each) for each in every]), "", *bars(every)])
    benchmark.publish("vectors", text, {"answers": every}, arguments)


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="pairs with one of these words in them")
    parser.add_argument("--json", type=Path, default=Path("vectors.jsonl"), help="where answers are kept")
    parser.add_argument("--again", action="store_true", help="ask once more for what is answered")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which nothing new is begun")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="print what a file says")
    arguments = parser.parse_args()
    pairs = [
        pair for pair in PAIRS if arguments.only is None or any(word in pair.name for word in arguments.only)
    ]
    if not arguments.summary:
        ask_all(pairs[::6] if arguments.quick else pairs, arguments)
    summarize(arguments)


if __name__ == "__main__":
    main()
