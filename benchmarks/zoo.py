"""Run the programs of tests/zoo through the command line, and check each answer against the table below.

    ./.venv/bin/python benchmarks/zoo.py [--only WORD ...] [--steady] [--busy] [--times N] [--json zoo.jsonl]

Every row runs in its own temporary copy of the folder, with libcore.so built in it. A row is right if the
exit code is one of those expected, the screen says all that it must, and the checks of the record hold.
`--steady` leaves out the rows whose answer depends on time. `--busy` runs all beside one process that never
rests. The load average is read before each row.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import benchmark

HERE = Path(__file__).resolve().parent
ZOO = HERE.parent / "tests" / "zoo"
HOTLOOP = Path(sys.executable).with_name("hotloop")
OUTPUT = "answers"
"""The folder of the records, in a row's copy of the zoo."""

FINE, UNSTABLE, DIFFERENT, SLOWER, CANNOT_TELL, REFUSED = 0, 1, 2, 3, 4, 64
TIMED_OUT = -1
NEAR = 1.10
"""How far a ratio may be from that of the plain clock."""
MORE_CPU = 1.10
"""Workers cannot save CPU time on the same work; this much is noise."""
CLOCK_S, LIMIT_S = 4.0, 240.0

ENV_1, ENV_7 = (rf"\benv {number}\b|\[{number}[,\]]" for number in (1, 7))
MODES = (r"NEXT_STEP|NextStep|next[ -]step", r"SAME_STEP|SameStep|same[ -]step")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a row's last command answered."""

    code: int
    screen: str
    record: dict[str, Any]
    """Empty where the command left none."""
    folder: Path

    @property
    def comparison(self) -> dict[str, Any]:
        return next(iter(self.record.get("comparisons") or ()), {})


Check = Callable[[Answer], str]
"""What is wrong with an answer; nothing if it is right."""


def is_measured(answer: Answer) -> str:
    """Every round that the command asked for is in a record that is not partial."""
    if not answer.record:
        return "no record was saved"
    if answer.record["partial"]:
        return "the record is partial"
    counted = len(answer.record["values"].get("env_steps_per_s", ()))
    return "" if counted == ROUNDS else f"{counted} of {ROUNDS} rounds are in the record"


def is_measured_or_refused(answer: Answer) -> str:
    return "" if answer.code == REFUSED else is_measured(answer)


def is_not_faster(answer: Answer) -> str:
    return "called faster" if answer.comparison.get("outcome") == "faster" else ""


def is_not_much_faster(answer: Answer) -> str:
    """The daemon ends without the clean-up of an interpreter, and beside that of its parent."""
    ratio = answer.comparison.get("ratio") or {}
    return "" if ratio.get("estimate", 1.0) <= NEAR else f"called {ratio['estimate']:.3f} times as fast"


def has_advice(answer: Answer) -> str:
    words = "nothing worth doing"
    return f"says {words}" if words in answer.screen else ""


def has_cpu_of_children(answer: Answer) -> str:
    """Workers do the same work, so that B never uses less CPU time than A."""
    cpu = answer.comparison.get("cpu")
    if cpu is None or cpu["estimate"] <= MORE_CPU:
        return ""
    return f"B, with workers, is {cpu['estimate']:.3f} times as fast for a CPU second"


def is_near_clock(answer: Answer) -> str:
    """The ratio is that of a plain clock beside it, or the verdict is cannot tell."""
    clock = [plain_ratio(answer.folder, "spinvec.py:Serial", "spinvec.py:Spin") for _ in range(2)]
    outcome, ratio = answer.comparison.get("outcome"), answer.comparison.get("ratio")
    said = f"{ratio['estimate']:.3f}" if ratio else "no ratio"
    words = f"{outcome}, {said}; a plain clock says {clock[0]:.3f} and {clock[1]:.3f}"
    if outcome == "cannot tell":
        return ""
    near = ratio and any(1 / NEAR <= ratio["estimate"] / plain <= NEAR for plain in clock)
    return "" if near else words


def plain_ratio(folder: Path, a: str, b: str) -> float:
    """Return how many times as long A takes as B, by vector_clock.py."""
    words = [
        sys.executable,
        "-c",
        "from vector_clock import main; main()",
        *map(str, (folder / a, folder / b)),
    ]
    done = subprocess.run(
        [*words, str(CLOCK_S)], cwd=HERE, capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    return median(json.loads(done.stdout)["ratios"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Commands, and what the last of them must answer."""

    name: str
    commands: tuple[str, ...]
    codes: tuple[int, ...]
    says: tuple[str, ...] = ()
    """Patterns; the screen or a notice of the record matches each."""
    checks: tuple[Check, ...] = ()
    folder: str = "."
    is_timed: bool = False
    """Whether the answer depends on how long something takes."""
    needs: tuple[str, ...] = ()
    """Packages without which the row is left out."""
    limit_s: float = LIMIT_S
    """After which a command is ended."""


ROUNDS = 3


def measured(target: str, iterations: int = 300, **more: Any) -> Row:
    """A program that only has to be measured, with nothing lost."""
    words = f"bench {target} --rounds {ROUNDS} --iterations {iterations} --warmup 0"
    row = {"codes": (FINE, UNSTABLE), "checks": (is_measured,)} | more
    return Row(name=f"{target.partition(':')[2]} is measured", commands=(words,), **row)


def unequal(
    name: str, a: str, b: str, steps: int, *says: str, codes: tuple[int, ...] = (DIFFERENT,)
) -> Iterator[Row]:
    """Two that are not equal, by compare and by validate."""
    for command in (f'compare "{a}" "{b}"', f'validate "{b}" {steps} --against "{a}"'):
        verb = command.split()[0]
        yield Row(name=f"{name}, {verb}", commands=(command,), codes=codes, says=says)


SINGLE, BATCH = "vec.py:V num_envs=1", "vec.py:V num_envs=32"
HEAVY, FIELD = "heavy.py:Heavy num_envs=4", "more.py:Field wrong=0"

ROWS: tuple[Row, ...] = (
    # Wall-clock time
    Row(
        name="serial against spinning",
        commands=("compare spinvec.py:Serial spinvec.py:Spin",),
        codes=(FINE, SLOWER, CANNOT_TELL),
        checks=(is_near_clock,),
        is_timed=True,
    ),
    Row(
        name="costly envs, sync against async",
        commands=(f'compare "{HEAVY} vector=sync" "{HEAVY} vector=async"',),
        codes=(FINE, SLOWER, CANNOT_TELL),
        checks=(has_cpu_of_children,),
        is_timed=True,
    ),
    Row(
        name="costly envs, sync against async, validate",
        commands=(f'validate "{HEAVY} vector=async" 600 --against "{HEAVY} vector=sync"',),
        codes=(FINE,),
    ),
    # Every env of a batch
    *unequal("31 envs never simulated", BATCH, f"{BATCH} cheat=1", 6400, ENV_1),
    *unequal("nothing simulated after 600 calls", BATCH, f"{BATCH} cheat=2", 64_000),
    *unequal("one env against a cheating batch", SINGLE, f"{BATCH} cheat=1", 6400, ENV_1),
    Row(
        name="one env against a cheating batch, compare --unlike",
        commands=(f'compare "{SINGLE}" "{BATCH} cheat=1" --unlike',),
        codes=(DIFFERENT,),
        says=(ENV_1,),
    ),
    Row(
        name="one env against an honest batch, validate",
        commands=(f'validate "{BATCH}" 6400 --against "{SINGLE}"',),
        codes=(FINE,),
    ),
    # A slow first step, and what is compared
    *unequal("a slow first step, and wrong at each 37th", "traps.py:Base", "traps.py:FCW", 2000),
    *unequal("one graph is wrong", "traps.py:DictObs", "traps.py:GraphWrong", 2000),
    Row(
        name="autoreset modes, compare",
        commands=("compare traps.py:nextstep traps.py:samestep",),
        codes=(DIFFERENT, CANNOT_TELL, REFUSED),
        says=MODES,
    ),
    Row(
        name="autoreset modes, validate",
        commands=("validate traps.py:samestep 600 --against traps.py:nextstep",),
        codes=(DIFFERENT, CANNOT_TELL, REFUSED),
        says=MODES,
    ),
    # Traps
    measured("traps.py:F64"),
    measured("traps.py:DictObs"),
    measured("traps.py:Forks"),
    measured("traps.py:MP"),
    measured("traps.py:Async"),
    measured("traps.py:Prints"),
    measured("traps.py:Json"),
    measured("traps.py:Chdir"),
    measured("traps.py:ChdirTmp"),
    measured("traps.py:Seeds"),
    measured("traps.py:Sig"),
    measured("traps.py:Alarm"),
    measured("traps.py:Numba", needs=("numba",)),
    measured("traps.py:Jax", needs=("jax",)),
    measured("traps.py:TorchObs", needs=("torch",)),
    measured("traps.py:Ragged"),
    measured("traps.py:Huge", 3),
    measured("traps.py:Slow2", 1),
    measured(
        "traps.py:ForkReturns",
        12,  # more steps would fork exponentially
        codes=(FINE, UNSTABLE, REFUSED),
        says=(r"\bfork|child process|returned from step",),
        checks=(is_measured_or_refused,),
    ),
    # Cheats that a judge in the same process must see
    Row(
        name="lazy observations",
        commands=("compare base.py:Honest cheats.py:LazyObs",),
        codes=(REFUSED,),
        says=("Lazy",),
    ),
    Row(
        name="one real env of eight",
        commands=('compare "cheats.py:real num_envs=8" "cheats.py:Fake num_envs=8"',),
        codes=(DIFFERENT,),
        says=(ENV_1,),
    ),
    Row(
        name="work in a process on the same core",
        commands=("compare base.py:Honest cheats.py:Yielder",),
        codes=(FINE, SLOWER, CANNOT_TELL),
        checks=(is_not_faster,),
        is_timed=True,
    ),
    Row(
        name="work after the step",
        commands=("compare cheats.py:Logs cheats.py:LogsLater",),
        codes=(FINE, SLOWER, CANNOT_TELL),
        checks=(is_not_faster,),
        is_timed=True,
    ),
    Row(
        name="A's file rewritten",
        commands=("compare base2.py:Honest cheats.py:Rewriter",),
        codes=(FINE, SLOWER, CANNOT_TELL),
        says=(r"base2\.py[^\n]*(chang|modif|rewrit)|(chang|modif|rewrit)[^\n]*base2\.py",),
        is_timed=True,
    ),
    Row(
        name="a hang that claims to work",
        commands=("bench cheats.py:Hang --rounds 3 --iterations 300 --step-timeout 3",),
        codes=(REFUSED,),
        says=("hung|no step|did not answer|stood still",),
        limit_s=90.0,
    ),
    # A server, and a C core
    measured(
        "aenv.py:make",
        10,
        folder="server",
        codes=(FINE, UNSTABLE, REFUSED),
        checks=(is_measured_or_refused,),
    ),
    measured("aenv.py:batch", 10, folder="server"),
    *(
        Row(
            name=f"a reward function blocks the event loop ({how})",
            commands=(f"profile -- python server.py {how} 6", "diagnose"),
            codes=(FINE,),
            says=(r"\bjudge\b",),
            checks=(has_advice,),
            folder="server",
            is_timed=True,
        )
        for how in ("sleep", "cpu")
    ),
    Row(
        name="a batch object, validate",
        commands=("validate mining.py:many 2000 --against mining.py:native",),
        codes=(FINE,),
        folder="owner_mining",
    ),
    Row(
        name="a batch object, compare",
        commands=("compare mining.py:native mining.py:many --unlike",),
        codes=(FINE, SLOWER, CANNOT_TELL),
        folder="owner_mining",
        is_timed=True,
    ),
    *(
        Row(
            name=f"{target}, tune {keys}",
            commands=(f"tune {target} {keys} --rounds 6 --confirm 2",),
            codes=(FINE, CANNOT_TELL),
            folder="owner_mining",
            is_timed=True,
            needs=("stable_baselines3",),
        )
        for target, keys in (
            ("mining.py:native", "num_envs=4 vector=sync,async"),
            ("mining.py:many", "num_envs=4,8"),
            ("sb3_many.py:vec", "num_envs=4,8"),
        )
    ),
    Row(
        name="mining.py:native, tune num_workers without a training",
        commands=("tune mining.py:native num_envs=4 num_workers=1,2 --rounds 6",),
        codes=(REFUSED,),
        says=("one worker for each env",),
        folder="owner_mining",
    ),
    *(
        Row(
            name=f"{target}, train",
            commands=(f"train {target} train.total_timesteps=2048 train.tensorboard=false run=zoo",),
            codes=(FINE,),
            folder="owner_mining",
            needs=("torch", "stable_baselines3"),
        )
        for target in ("mining.py:native", "mining.py:many", "sb3_many.py:vec")
    ),
    # Five programs more
    *unequal("env 7 is wrong after its third episode", FIELD, "more.py:Field wrong=3", 32_000, ENV_7),
    Row(
        name="env 7 is wrong after its eighth episode, compare",
        commands=(f'compare "{FIELD}" "more.py:Field wrong=8"',),
        codes=(DIFFERENT,),
        is_timed=True,
    ),
    Row(
        name="views of one buffer, compare",
        commands=(f'compare "{FIELD}" more.py:Views',),
        codes=(FINE, SLOWER, CANNOT_TELL),
        is_timed=True,
    ),
    Row(
        name="views of one buffer, validate",
        commands=(f'validate more.py:Views 8000 --against "{FIELD}"',),
        codes=(FINE,),
    ),
    Row(
        name="arrays that all batches share, validate",
        commands=(f'validate more.py:OneBuffer 8000 --against "{FIELD}"',),
        codes=(FINE,),
    ),
    *unequal(
        "a buffer that both sides share",
        "more.py:OneBuffer wrong=0",
        "more.py:OneBuffer wrong=2",
        32_000,
        codes=(DIFFERENT, REFUSED),
    ),
    Row(
        name="a thread works on after the return",
        commands=("compare more.py:Journal more.py:JournalLater",),
        codes=(FINE, SLOWER, CANNOT_TELL),
        checks=(is_not_faster,),
        is_timed=True,
    ),
    Row(
        name="levels on disk by seed, the second run",
        commands=('compare more.py:Level "more.py:Level cache=true"',) * 2,
        codes=(FINE, SLOWER, CANNOT_TELL),
        checks=(is_not_faster,),
        is_timed=True,
    ),
    Row(
        name="a daemon works on after the end",
        commands=('compare -- "python more.py here" "python more.py daemon"',),
        codes=(FINE, SLOWER, CANNOT_TELL),
        checks=(is_not_much_faster,),
        is_timed=True,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One row, run once."""

    name: str
    commands: tuple[str, ...]
    code: int
    problems: list[str]
    seconds: float
    load: float
    is_busy: bool
    run: int
    outcome: str = ""
    screen: str = field(default="", repr=False)


@contextmanager
def built_zoo() -> Iterator[Path]:
    """A copy of the zoo with its C core compiled."""
    with tempfile.TemporaryDirectory(prefix="zoo-") as folder:
        zoo = Path(folder, "zoo")
        shutil.copytree(ZOO, zoo, ignore=shutil.ignore_patterns("__pycache__"))
        words = ["gcc", "-O2", "-shared", "-fPIC", "core.c", "-o", "libcore.so", "-lm"]
        subprocess.run(words, cwd=zoo / "owner_mining", check=True)
        yield zoo


@contextmanager
def busy_neighbor(*, on: bool) -> Iterator[None]:
    """Keep one process beside that never rests."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if on else None
    try:
        yield
    finally:
        if other:
            other.kill()
            other.wait()


def answer(row: Row, zoo: Path) -> Answer:
    """Run a row's commands in a copy of its own."""
    folder = zoo / row.folder
    for command in row.commands:
        code, screen = run(command, folder, row.limit_s)
    records = sorted((folder / OUTPUT).rglob("*.json"), key=lambda path: path.stat().st_mtime)
    record = json.loads(records[-1].read_text("utf-8")) if records else {}
    texts = [notice["text"] for notice in record.get("notices", ())]
    return Answer(code=code, screen="\n".join([screen, *texts]), record=record, folder=folder)


def run(command: str, folder: Path, limit_s: float) -> tuple[int, str]:
    """Return the exit code and all that a hotloop command printed."""
    words = shlex.split(command)
    program = words.index("--") if "--" in words else len(words)
    if words[0] in ("bench", "compare", "validate"):
        words[program:program] = ["--output", OUTPUT]
    path = f"{HOTLOOP.parent}{os.pathsep}{os.environ['PATH']}"
    # As a user runs it: the tests' own variable would keep the command in one process with the program.
    mine = {name: value for name, value in os.environ.items() if name != "HOTLOOP_IN_PROCESS"}
    process = subprocess.Popen(
        [HOTLOOP, *words],
        cwd=folder,
        env={**mine, "COLUMNS": "300", "PATH": path},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        screen, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        screen, _ = process.communicate()
        return TIMED_OUT, screen
    return process.returncode, screen


def problems_of(row: Row, given: Answer) -> list[str]:
    """Name everything that is not as the table says."""
    if given.code == TIMED_OUT:
        return [f"did not end within {row.limit_s:.0f} s"]
    found = [] if given.code in row.codes else [f"exit {given.code}, not {words_of(row.codes)}"]
    found += [f"does not say {each}" for each in row.says if not re.search(each, given.screen)]
    found += ["shows a Traceback"] if "Traceback" in given.screen else []
    if given.code in row.codes:
        found += filter(None, (check(given) for check in row.checks))
    return found


def words_of(codes: Sequence[int]) -> str:
    return " or ".join(map(str, codes))


def run_row(row: Row, zoo: Path, *, is_busy: bool = False, number: int = 1) -> Result:
    """Run one row in a fresh copy of the built zoo."""
    load, begin = os.getloadavg()[0], perf_counter()
    with tempfile.TemporaryDirectory(prefix="zoo-row-") as folder:
        mine = Path(folder, "zoo")
        shutil.copytree(zoo, mine)
        given = answer(row, mine)
        problems = problems_of(row, given)
    return Result(
        name=row.name,
        commands=row.commands,
        code=given.code,
        problems=problems,
        seconds=round(perf_counter() - begin, 1),
        load=load,
        is_busy=is_busy,
        run=number,
        outcome=given.comparison.get("outcome", ""),
        screen=given.screen,
    )


def missing(row: Row) -> list[str]:
    return [package for package in row.needs if find_spec(package) is None]


def chosen_rows(arguments: argparse.Namespace) -> list[Row]:
    rows = [row for row in ROWS if not (arguments.steady and row.is_timed)]
    if arguments.only:
        rows = [row for row in rows if any(word in f"{row.name} {row.commands}" for word in arguments.only)]
    for row in rows:
        if missing(row):
            print(f"left out: {row.name}: needs {', '.join(missing(row))}")
    rows = [row for row in rows if not missing(row)]
    return rows[::10] if arguments.quick else rows


def cells(result: Result) -> list[str]:
    right = "right" if not result.problems else "WRONG"
    what = "; ".join(result.problems)
    return [
        result.name,
        right,
        str(result.code),
        result.outcome,
        f"{result.load:.2f}",
        f"{result.seconds:.0f}",
        what,
    ]


def main() -> None:
    parser = benchmark.parser(__doc__)
    parser.add_argument("--only", nargs="+", metavar="WORD", help="rows with one of these words in them")
    parser.add_argument("--steady", action="store_true", help="only rows whose answer depends on no time")
    parser.add_argument("--busy", action="store_true", help="beside one process that never rests")
    parser.add_argument("--times", type=int, default=1, help="how often every row is run (1)")
    parser.add_argument("--json", type=Path, help="a file that each answer is added to as it comes")
    arguments = parser.parse_args()
    results: list[Result] = []
    with built_zoo() as zoo, busy_neighbor(on=arguments.busy):
        for number in range(1, arguments.times + 1):
            for row in chosen_rows(arguments):
                results.append(run_row(row, zoo, is_busy=arguments.busy, number=number))
                print(" | ".join(cells(results[-1])), file=sys.stderr, flush=True)
                if arguments.json:
                    with arguments.json.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(asdict(results[-1])) + "\n")
    wrong = sum(bool(result.problems) for result in results)
    header = ["row", "answer", "exit", "outcome", "load", "seconds", "what is wrong"]
    beside = "beside one busy process" if arguments.busy else "with no neighbor of ours"
    text = f"{len(results) - wrong} of {len(results)} right, {beside}.\n\n"
    text += benchmark.table(header, [cells(result) for result in results])
    benchmark.publish("zoo", text, {"rows": results}, arguments)


if __name__ == "__main__":
    main()
