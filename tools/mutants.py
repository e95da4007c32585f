"""Plants small faults in the code that decides, and tells which of them the tests notice.

`python tools/mutants.py plan` draws 200 faults by a fixed seed and writes them to tests/frozen/mutants.json.
`python tools/mutants.py run PACKAGE OUT [--jobs N] [--seconds N] [--again]` plants each of them in a copy of
PACKAGE (an installed `hotloop`, native modules included), runs the tests of its area that run its function
until one fails, and writes what became of it to OUT. `--again` goes on with an OUT that was cut off;
`--like BEFORE` runs what was noticed before, each by the test that noticed it.
`python tools/mutants.py compare BEFORE AFTER` names the faults that were noticed before and are not now.

A fault is known by the statement it changes and the function around it, not by its file: it is planted again
wherever that statement stands after a move. A statement that was rewritten takes its faults with it.
"""

import argparse
import ast
import copy
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "hotloop"
STORED = ROOT / "tests" / "frozen" / "mutants.json"
SEED = 20261119

AREAS = {
    "stats": (40, ("stats",), ("stats", "judge")),
    "judge": (50, ("judge",), ("judge", "lab/diagnose", "lab/test_rules.py", "lab/test_diagnosed.py")),
    "measure": (35, ("lab/measure",), ("lab/measure", "lab/compare", "lab/test_bench.py")),
    "validate": (30, ("lab/validate",), ("lab/validate", "cli/commands/test_validate.py")),
    "codec": (15, ("core/record/codec.py",), ("core/record", "core")),
    "train": (30, ("train",), ("train", "lab/training")),
}
"""Of each area: how many faults, in which sources, and which tests must notice them."""

LEFT_OUT = ("train/device", "train/device/kernels.py", "train/ranks.py", "train/actors.py")
"""What runs on a GPU or in several processes alone."""

SLOW_TEST_S = 12.0
"""A test that takes longer is left out."""

MOST_TESTS = 150
"""Tests that one fault has to pass, the quickest that run its function."""

BASELINE_S = 150.0

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
EXCHANGED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault: the nth place of `statement` in `function` where a node of `kind` is changed."""

    area: str
    path: str
    """Where it stood when it was drawn, from src/hotloop."""
    function: str
    kind: str
    statement: str
    nth: int
    outcome: str = ""
    test: str = ""
    """The first test that failed."""


def header(statement: ast.stmt) -> str:
    """Return the text of a statement without the statements inside it."""
    if not hasattr(statement, "body"):
        return ast.unparse(statement)
    bare = copy.copy(statement)
    bare.body = [ast.Pass()]
    for name in ("orelse", "finalbody", "handlers", "cases"):
        if hasattr(bare, name):
            setattr(bare, name, [])
    return ast.unparse(bare) if not isinstance(bare, ast.Try | ast.Match) else ""


def own_nodes(statement: ast.stmt) -> Iterator[ast.AST]:
    """Yield the nodes of a statement that are not in a statement inside it, nor in an annotation or text."""
    todo: list[ast.AST] = [statement]
    while todo:
        node = todo.pop(0)
        yield node
        skipped = {getattr(node, "annotation", None), getattr(node, "returns", None)}
        todo += [
            child
            for child in ast.iter_child_nodes(node)
            if child not in skipped and not isinstance(child, ast.stmt | ast.JoinedStr | ast.ExceptHandler)
        ]


def kind_of(node: ast.AST) -> str | None:
    """Return what can be changed about a node: "operator", "constant", "not", or None."""
    match node:
        case ast.Compare(ops=[op]) | ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op):
            return "operator" if type(op) in EXCHANGED else None
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() | float()):
            return "constant"
        case ast.UnaryOp(op=ast.Not()):
            return "not"
    return None


def is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def places(tree: ast.Module) -> Iterator[tuple[str, str, str, int, ast.AST]]:
    """Yield (function, kind, statement, nth, node) for each place of a module that can be changed."""
    for function in ast.walk(tree):
        if not isinstance(function, FUNCTIONS):
            continue
        body = [statement for statement in function.body if not is_docstring(statement)]
        if len(body) > 1:
            yield function.name, "return", header(body[0]), 0, function
        todo = list(body)
        while todo:
            statement = todo.pop(0)
            if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
                continue
            for part in ("body", "orelse", "finalbody"):
                todo += getattr(statement, part, [])
            for handler in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                todo += handler.body
            text = header(statement)
            counts: dict[str, int] = {}
            for node in own_nodes(statement) if text and not isinstance(statement, ast.Raise) else ():
                if kind := kind_of(node):
                    yield function.name, kind, text, counts.get(kind, 0), node
                    counts[kind] = counts.get(kind, 0) + 1


def change(node: ast.AST, kind: str) -> None:
    """Change a node in place."""
    match kind, node:
        case "operator", ast.Compare():
            node.ops = [EXCHANGED[type(node.ops[0])]()]  # type: ignore[list-item]
        case "operator", ast.BinOp() | ast.AugAssign() | ast.BoolOp():
            node.op = EXCHANGED[type(node.op)]()  # type: ignore[assignment]
        case "constant", ast.Constant(value=int() | float() as value):
            node.value = value * 2 if isinstance(value, float) and value else value + 1
        case "not", ast.UnaryOp():
            node.op = ast.UAdd()  # replaced by its operand's truth below
            node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
        case "return", ast.FunctionDef() | ast.AsyncFunctionDef():
            first = next(i for i, statement in enumerate(node.body) if not is_docstring(statement))
            node.body.insert(first, ast.Return(ast.Constant(None)))


def sources(package: Path, folders: Sequence[str]) -> list[Path]:
    files = [path for folder in folders for path in sorted(package.glob(f"{folder}/**/*.py"))]
    files += [
        package / folder for folder in folders if folder.endswith(".py") and (package / folder).is_file()
    ]
    return [file for file in files if not str(file.relative_to(package)).startswith(LEFT_OUT)]


def draw() -> list[Mutant]:
    """Draw the faults of all areas, at most two of one function."""
    chance, drawn = random.Random(SEED), []
    for area, (count, folders, _) in AREAS.items():
        found = [
            Mutant(
                area=area,
                path=str(file.relative_to(PACKAGE)),
                function=name,
                kind=kind,
                statement=text,
                nth=nth,
            )
            for file in sources(PACKAGE, folders)
            for name, kind, text, nth, _ in places(ast.parse(file.read_text(encoding="utf-8")))
        ]
        chance.shuffle(found)
        taken: dict[tuple[str, str], int] = {}
        chosen: list[Mutant] = []
        for mutant in found:
            key = (mutant.path, mutant.function)
            if taken.get(key, 0) < 2 and len(chosen) < count:
                taken[key] = taken.get(key, 0) + 1
                chosen.append(mutant)
        drawn += chosen
    return drawn


def plant(mutant: Mutant, package: Path) -> Path | None:
    """Write a fault into a package and return the changed file, or None if its statement is gone."""
    matches = []
    for file in sorted(package.rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for name, kind, statement, nth, node in places(tree):
            if (kind, statement, nth) == (mutant.kind, mutant.statement, mutant.nth):
                is_there = str(file.relative_to(package)) == mutant.path
                matches.append((name == mutant.function, is_there, file, tree, node))
    same = [match for match in matches if match[0]]
    if not same and (mutant.kind == "return" or len(matches) != 1):
        return None
    _, _, file, tree, node = max(same or matches, key=lambda match: match[:2])
    change(node, mutant.kind)
    file.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")
    return file


def pytest(package: Path, words: Sequence[str], seconds: float, **variables: str) -> tuple[int, str]:
    """Run tests on the package in a folder; return the exit code (-1: out of time) and what was printed."""
    env = {
        **os.environ,
        **variables,
        "PYTHONPATH": os.pathsep.join([str(package.parent), str(ROOT / "tools")]),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *words]
    # A file, not a pipe: what a test leaves running may hold a pipe open for ever.
    with tempfile.TemporaryFile("w+") as printed:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            code = -1
        printed.seek(0)
        return code, printed.read()


def test_files(area: str) -> list[str]:
    folders = [ROOT / "tests" / name for name in AREAS[area][2]]
    files = [
        file
        for path in folders
        if path.exists()
        for file in ([path] if path.is_file() else sorted(path.rglob("test_*.py")))
    ]
    return list(dict.fromkeys(str(file.relative_to(ROOT)) for file in files))


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A test that passes without a fault: how long it takes, and which functions it runs."""

    test: str
    s: float
    functions: frozenset[str]


def baseline(package: Path, file: str) -> list[Traced]:
    """Run the tests of a file without any fault, and return those that pass and are quick."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        trace.touch()
        words = [file, "-p", "mutants_plugin", "-rfE", "--tb=no", f"--basetemp={folder}/tmp"]
        _, output = pytest(package, words, BASELINE_S, HOTLOOP_TRACED=str(package), HOTLOOP_TRACE=str(trace))
        entries = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    failed = set(re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE))
    return [
        Traced(test=each["test"], s=each["s"], functions=frozenset(each["functions"]))
        for each in entries
        if each["test"] not in failed and each["s"] <= SLOW_TEST_S
    ]


def outcome(mutant: Mutant, package: Path, tests: Sequence[Traced], seconds: float) -> Mutant:
    """Plant a fault in a copy of the package and run the tests that run its function.

    The quickest tests come first.
    """
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(shutil.copytree(package, Path(folder) / "hotloop"))
        file = plant(mutant, copied)
        if file is None:
            return replace(mutant, outcome="gone", test="")
        place = f"{file.relative_to(copied)} {mutant.function}"
        chosen = sorted((each for each in tests if place in each.functions), key=lambda each: each.s)
        chosen = chosen[:MOST_TESTS]
        if not chosen:
            return replace(mutant, outcome="not run", test="")
        names = [each.test for each in chosen]
        code, output = pytest(copied, ["-x", "--tb=no", "-rfE", f"--basetemp={folder}/tmp", *names], seconds)
    first = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
    match code:
        case 0:
            return replace(mutant, outcome="survived", test="")
        case -1:
            return replace(mutant, outcome="out of time", test="")
    return replace(mutant, outcome="killed", test=first[1] if first else f"exit {code}")


def moved(test: str) -> str:
    """Return where a test stands now that is known by where it stood."""
    file, _, name = test.partition("::")
    if (ROOT / file).is_file() and f"def {function_of(name)}(" in (ROOT / file).read_text(encoding="utf-8"):
        return test
    for other in sorted((ROOT / "tests").rglob("test_*.py")):
        if f"def {function_of(name)}(" in other.read_text(encoding="utf-8"):
            return f"{other.relative_to(ROOT)}::{name}"
    return ""


def function_of(name: str) -> str:
    return name.rpartition("::")[2].partition("[")[0]


def outcome_again(mutant: Mutant, package: Path, seconds: float) -> Mutant:
    """Plant a fault that a test noticed before and run that test alone."""
    test = moved(mutant.test)
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(shutil.copytree(package, Path(folder) / "hotloop"))
        if plant(mutant, copied) is None:
            return replace(mutant, outcome="gone", test="")
        code, _ = pytest(copied, ["-x", "--tb=no", f"--basetemp={folder}/tmp", test], seconds)
    return replace(mutant, outcome={0: "survived", 1: "killed"}.get(code, "test gone"), test=test)


def run_again(package: Path, out: Path, before: Path, jobs: int, seconds: float) -> None:
    """Run the faults that were noticed before, each by the test that noticed it."""
    mutants = load(before)

    def one(i: int) -> None:
        mutants[i] = outcome_again(mutants[i], package, seconds)
        print(i, mutants[i].outcome, mutants[i].function, mutants[i].kind, mutants[i].test, flush=True)
        save(mutants, out)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(one, (i for i, mutant in enumerate(mutants) if mutant.outcome == "killed")))


def load(path: Path) -> list[Mutant]:
    return [Mutant(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]


def save(mutants: Sequence[Mutant], path: Path) -> None:
    path.write_text(json.dumps([asdict(mutant) for mutant in mutants], indent=1) + "\n", encoding="utf-8")


def run(package: Path, out: Path, start: Path, jobs: int, seconds: float, *, again: bool) -> None:
    """Run all faults of a file and write their outcomes; the slow part first."""
    mutants = load(start)
    due = [i for i, mutant in enumerate(mutants) if not again or mutant.outcome in ("", "out of time")]
    files = sorted({file for i in due for file in test_files(mutants[i].area)})
    began = time.monotonic()
    with ThreadPoolExecutor(jobs) as pool:
        traced = dict(zip(files, pool.map(lambda file: baseline(package, file), files), strict=True))
        print(f"{len(files)} files of tests without a fault: {time.monotonic() - began:.0f} s", flush=True)
        print("without a test:", *(file for file, tests in traced.items() if not tests), flush=True)

        def one(i: int) -> None:
            tests = [test for file in test_files(mutants[i].area) for test in traced[file]]
            mutants[i] = outcome(mutants[i], package, tests, seconds)
            print(
                f"{i} {mutants[i].outcome} {mutants[i].function} {mutants[i].kind} {mutants[i].test}",
                flush=True,
            )
            save(mutants, out)

        list(pool.map(one, due))
    print({name: sum(mutant.outcome == name for mutant in mutants) for name in {m.outcome for m in mutants}})


def compare(before: Path, after: Path) -> int:
    """Print the faults that were killed before and are not killed after, and return how many there are."""
    lost = [
        new
        for old, new in zip(load(before), load(after), strict=True)
        if old.outcome == "killed" and new.outcome not in ("killed", "gone")
    ]
    for mutant in lost:
        print(
            f"{mutant.outcome}: {mutant.path} {mutant.function}: "
            f"{mutant.kind} {mutant.nth} of {mutant.statement}"
        )
    print(f"{len(lost)} of {len(load(before))} are no longer noticed")
    return len(lost)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("plan")
    running = commands.add_parser("run")
    running.add_argument("package", type=Path)
    running.add_argument("out", type=Path)
    running.add_argument("--jobs", type=int, default=os.cpu_count())
    running.add_argument("--seconds", type=float, default=120)
    running.add_argument("--again", action="store_true")
    running.add_argument("--like", type=Path)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    asked = parser.parse_args()
    match asked.command:
        case "plan":
            save(draw(), STORED)
        case "run":
            package = asked.package.resolve()
            if asked.like:
                run_again(package, asked.out, asked.like, asked.jobs, asked.seconds)
            else:
                start = asked.out if asked.again else STORED
                run(package, asked.out, start, asked.jobs, asked.seconds, again=asked.again)
        case "compare":
            return min(compare(asked.before, asked.after), 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
