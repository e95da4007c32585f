"""What `tools/freeze.py` keeps of Hotloop and a test compares: all that both know of Hotloop's modules."""

import dataclasses
import inspect
import io
import json
import os
import re
import shutil
import sqlite3
import tempfile
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin

import anyio
from rich.console import Console

from frozen_runs import FROZEN, PROGRAMS, make_results, run
from hotloop import __all__ as exported
from hotloop.cli.main import main
from hotloop.core import project
from hotloop.core.errors import Code, ExitCode
from hotloop.core.record import Record
from hotloop.core.time_tree import Slice, Trace
from hotloop.judge.judge import RULES, judge
from hotloop.mcp import answers
from hotloop.mcp.server import ToolServer, tools
from hotloop.report import html, markdown, terminal
from hotloop.report.files import draw_speedscope, draw_trace, read_shelf
from hotloop.report.formats import EXPORTS
from hotloop.report.kinds.record import record_sections
from hotloop.report.page.page import draw_page
from hotloop.stats.summary import with_metrics

WIDTH = 100
"""Columns of a screen."""

RESULTS = FROZEN / "results"

DERIVED = ("metrics", "verdict", "exit_code")
"""What a judgement adds to a record, and may therefore be taken away before the next one."""

PUBLIC = (
    *(f"hotloop:{name}" for name in exported if name not in ("__version__", "spans", "spatial")),
    "hotloop:Marks.mark",
    "hotloop:Marks.start",
    "hotloop.core.record:read",
    *(f"hotloop.core.spans:{name}" for name in ("enable", "disable", "tree", "device_tree", "text")),
    "hotloop.envs.adapters.pettingzoo:parallel_env",
    *(f"hotloop.envs.spatial:Index{name}" for name in ("", ".move", ".nearby", ".nearest", ".range")),
    "hotloop.loops.run:AnyRun.count",
    "hotloop.loops.sb3:RunCallback",
    "hotloop.pytest_plugin:Bench",
    "hotloop.train.settings:TrainSettings",
    "hotloop.train.trainer:Trainer",
    "hotloop.train.trainer:Trainer.update",
    "hotloop.train.windows:Windows",
    "hotloop.train.windows:Windows.close",
    "hotloop.worlds.grid.features:feature_table",
    "hotloop.worlds.grid.rules:read_rules",
)
"""What the documentation calls."""

JSON_NAMES = {
    int: "integer",
    float: "number",
    str: "text",
    bool: "boolean",
    type(None): "null",
    Any: "anything",
}


# Records


def record_fields() -> str:
    """Return every field that a record can have, with its type, by its path in the JSON."""
    return lines_of(fields_of(Record, ""))


def fields_of(kind: Any, where: str) -> Iterator[str]:
    """Yield the paths below a declared type."""
    if dataclasses.is_dataclass(kind):
        optional = {each.name for each in dataclasses.fields(kind) if has_default(each)}
    elif typing.is_typeddict(kind):
        optional = set(kind.__optional_keys__)
    else:
        for below, step in parts_of(kind):
            yield from fields_of(below, where + step)
        return
    for name, hint in typing.get_type_hints(kind, include_extras=True).items():
        path = f"{where}.{name}" if where else name
        yield f"{path}: {words_for(hint)}{' (optional)' if name in optional else ''}"
        yield from fields_of(hint, path)


def has_default(each: "dataclasses.Field[Any]") -> bool:
    """Return whether a field may be left out of the JSON."""
    missing = dataclasses.MISSING
    return each.default is not missing or each.default_factory is not missing


def parts_of(kind: Any) -> Iterator[tuple[Any, str]]:
    """Yield the types within a type, each with what its path adds."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Annotated, NotRequired):
        yield parts[0], ""
    elif origin in (Union, types.UnionType):
        yield from ((each, "") for each in parts)
    elif origin in (list, tuple):
        yield from ((each, "[]") for each in parts if each is not Ellipsis)
    elif origin in (dict, Mapping):
        yield parts[1], ".*"


def words_for(kind: Any) -> str:  # noqa: PLR0911 - one a kind of type
    """Return what JSON calls a type, with the bounds that are checked."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return " ".join([words_for(parts[0]), *map(str, kind.__metadata__)])
    if origin is NotRequired:
        return words_for(parts[0])
    if origin in (Union, types.UnionType):
        return " or ".join(words_for(each) for each in parts)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, parts))
    if origin is tuple and Ellipsis not in parts:
        return f"[{', '.join(words_for(each) for each in parts)}]"
    if origin in (list, tuple):
        return f"list of {words_for(parts[0])}"
    if origin in (dict, Mapping):
        return f"object of {words_for(parts[1])}"
    return JSON_NAMES.get(kind, "object")


def stored_results() -> dict[str, str]:
    """Return the text of every stored result by its name."""
    return {path.stem: path.read_text("utf-8") for path in sorted(RESULTS.glob("*.json"))}


def read_record(text: str) -> Record:
    """Read a stored result as commands do."""
    return with_metrics(Record.from_json(text))


def judge_again(text: str) -> dict[str, Any]:
    """Return what is judged of a result, after what was judged of it before was taken away."""
    record = judge_text(text)
    codes = sorted({each.code for each in record.notices})
    verdict, code = record.verdict, int(record.exit_code)
    return {"kind": record.kind, "verdict": verdict, "exit_code": code, "notices": codes}


def judge_text(text: str) -> Record:
    """Read a result without what was judged of it, and judge it."""
    plain = {key: value for key, value in json.loads(text).items() if key not in (*DERIVED, "content_hash")}
    return judge(read_record(json.dumps(plain)))


def judged_kinds() -> set[str]:
    """Return every kind of record that there are rules for."""
    return set(RULES)


def draw_everywhere(text: str) -> tuple[str, str, str]:
    """Draw a result on the terminal, as Markdown and as HTML."""
    sections = record_sections(read_record(text))
    return draw_terminal(sections), markdown.draw(sections), html.draw(sections)


def draw_terminal(sections: Any) -> str:
    """Return the screen that a person sees, without colors."""
    console = Console(file=io.StringIO(), width=WIDTH, color_system=None)
    console.print(terminal.draw(sections))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def draw_report() -> str:
    """Return the page of all stored results; what cannot be drawn is an error."""
    shelf = read_shelf([RESULTS])
    if shelf.left_out:
        raise ValueError(f"left out: {', '.join(shelf.left_out)}")
    return draw_page(shelf, "stored results")


FRESH = (
    *("bench", "bench-phases", "bench-program", "compare-slower", "compare-differ", "profile"),
    *("validate", "validate-differ", "statistical", "scale", "tune", "soak", "gate-met", "train", "sim"),
    *("sim-games", "run"),
)
"""Stored results whose commands fill the same fields whenever they are run."""

UNSTEADY = re.compile(r"^(notices|findings|machine|resources|code|slow\.steps|slow\.resets|verdict|run_id)")
"""Fields that depend on the machine, its load and the checkout."""


def filled_fields(text: str) -> set[str]:
    """Return the paths that a result fills, by the type of what is there."""
    paths = paths_of(json.loads(text), "")
    return {re.sub(r" = .*", "", each) for each in paths if not UNSTEADY.match(each) and ": null" not in each}


def fresh_result(name: str) -> str:
    """Run the command of a stored result anew, and return its record."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        made = make_results(folder, [name])
        return next(path.read_text("utf-8") for _, _, path in made)


# Codes, flags and signatures


def exit_codes() -> str:
    """Return every exit code and its name."""
    return "".join(f"{code.value} {code.name.lower()}\n" for code in ExitCode)


def notice_codes() -> str:
    """Return the code of every notice."""
    return lines_of(code.value for code in Code)


def lines_of(lines: typing.Iterable[str]) -> str:
    """Return lines as a text, sorted and each once."""
    return "".join(f"{line}\n" for line in sorted(set(lines)))


def help_screens() -> dict[str, str]:
    """Return the help of every command by its name; that for programs has a name with dashes."""
    screens = {"": print_help(["--help"])}
    commands = re.findall(r"^  (\w+)  ", screens[""].partition("Commands:")[2], re.MULTILINE)
    for name in commands:
        screens[name] = print_help([name, "--help"])
        if f"{name} --help --" in " ".join(screens[name].split()):
            screens[f"{name} --"] = print_help([name, "--help", "--"])
    return screens


def print_help(words: Sequence[str]) -> str:
    """Return the screen of a help, at a fixed width."""
    out, before = io.StringIO(), os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        with redirect_stdout(out):
            main(words)
    finally:
        os.environ.pop("COLUMNS")
        os.environ.update({} if before is None else {"COLUMNS": before})
    return out.getvalue()


def flags() -> str:
    """Return the arguments and flags of every command as its help names them."""
    found: list[str] = []
    for name, screen in help_screens().items():
        table = screen[
            screen.find("\nArguments:") if "\nArguments:" in screen else screen.find("\nOptions:") :
        ]
        spelled = re.findall(r"^  ((?:-|[A-Z])\S*(?: \S+)*?)(?:  .*)?$", table, re.MULTILINE)
        found += (" ".join(["hotloop", *name.split(), each]) for each in spelled)
    return lines_of(found)


def signatures() -> str:
    """Return the parameters of everything public, with their defaults."""
    return lines_of(f"{name}{parameters_of(find(name))}" for name in PUBLIC)


def find(name: str) -> Any:
    """Return what `module:attribute` names."""
    module, _, attributes = name.partition(":")
    found: Any = import_module(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    return found


def parameters_of(found: Any) -> str:
    """Return the parameters of a call without their annotations."""
    try:
        signature = inspect.signature(found)
    except ValueError:  # of native code
        return "(...)"
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    text = str(signature.replace(parameters=bare, return_annotation=inspect.Signature.empty))
    text = re.sub(r"<[\w.]*?(\w+) object at \w+>", r"<\1>", text)
    return re.sub(r" at 0x[0-9a-f]+", "", text)


# MCP


def mcp_tools() -> str:
    """Return what every tool takes and answers, without words and without the names of classes."""
    found = {}
    for tool in tools(FROZEN):
        given, answered = tool["inputSchema"], tool.get("outputSchema", {})
        found[tool["name"]] = {"takes": bare_schema(given, given), "answers": bare_schema(answered, answered)}
    return json_of(found)


def bare_schema(schema: Any, root: Mapping[str, Any], inside: str = "") -> Any:
    """Return a JSON Schema with its references resolved, and without titles and descriptions."""
    if isinstance(schema, list):
        return [bare_schema(each, root) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return bare_schema(root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    words = () if inside == "properties" else ("title", "description", "$defs")
    return {key: bare_schema(value, root, key) for key, value in schema.items() if key not in words}


ANSWERS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "bench": ("bench", answers.bench_answer),
    "profile": ("profile", answers.profile_answer),
    "profile of a user's env": ("profile-user-env", answers.profile_answer),
    "compare": ("compare-slower", answers.compare_answer),
    "compare by phases": ("compare-phases", answers.compare_answer),
    "compare what differs": ("compare-differ", answers.compare_answer),
    "validate": ("validate", answers.validate_answer),
    "validate what differs": ("validate-differ", answers.validate_answer),
    "validate distributions": ("statistical-differ", answers.validate_answer),
}
"""What is answered, from which stored result."""


def mcp_answers() -> str:
    """Return the shape of every answer, drawn from stored results, and what decides in it."""
    texts = stored_results()
    found = {
        name: shape_of(answer(read_record(texts[result]), f"{result}.json").model_dump(mode="json"))
        for name, (result, answer) in ANSWERS.items()
    }
    server = ToolServer(FROZEN)
    for name in ("profile", "train", "run"):
        diagnosed = anyio.run(server.diagnose, f"results/{name}.json")
        found[f"diagnose {name}"] = shape_of(diagnosed.model_dump(mode="json"))
    found["report"] = shape_of(anyio.run(server.report, "results").model_dump(mode="json"))
    return json_of(found)


VALUES = ("verdict", "exit_code", "outcome", "kind", "equal")
"""What is kept of an answer beside its shape."""


def shape_of(value: Any) -> list[str]:
    """Return the path and the type of everything in some JSON, and the few values that decide."""
    return sorted(set(paths_of(value, "")))


def paths_of(value: Any, where: str) -> Iterator[str]:
    """Yield the paths of some JSON."""
    name = where.rpartition(".")[2]
    if isinstance(value, dict):
        for key, below in value.items():
            yield from paths_of(below, f"{where}.{key}" if where else key)
    elif isinstance(value, list):
        yield f"{where}: list"
        for below in value:
            yield from paths_of(below, f"{where}[]")
    elif name in VALUES and "[]" not in where:
        yield f"{where} = {json.dumps(value)}"
    else:
        yield f"{where}: {'number' if type(value) in (int, float) else JSON_NAMES[type(value)]}"


def json_of(value: Any) -> str:
    """Return a value as the text of a file."""
    return json.dumps(value, indent=1) + "\n"


# hotloop.toml

BUDGET_KEYS = (
    *("target", "keys", "metric", "limit", "max_change"),
    *("against", "reason", "owner", "expires", "enforce"),
)

ITEM_KEYS = ("target", "do", "against")


def project_file() -> str:
    """Return what is read from a hotloop.toml that has every key."""
    found = project.read(FROZEN / "programs" / project.NAME)
    budgets = {name: values_of(each, BUDGET_KEYS) for name, each in found.budgets.items()}
    suites = {
        name: [values_of(item, ITEM_KEYS) for item in each.items] for name, each in found.suites.items()
    }
    return json_of({"budget": budgets, "suite": suites, "expect": found.expect})


def values_of(read: object, keys: Sequence[str]) -> dict[str, Any]:
    """Return what was read of some keys; a target as it would be typed."""
    values = {key: getattr(read, key) for key in keys}
    plain = (str, int, float, dict, type(None))
    return {
        key: value if isinstance(value, plain) else getattr(value, "words", str(value))
        for key, value in values.items()
    }


# Exports

TRACE = Trace(
    tracks={0: "main", 7: "logger"},
    slices=(
        Slice("env.step", 1_000_000, 1_900_500, 0, "step", {"step": 3}),
        Slice("observations", 1_100_000, 1_500_000, 0, "phase", {}),
        Slice("env.step", 2_000_000, 2_700_000, 0, "step", {"step": 4}),
        Slice("write", 1_200_000, 2_100_000, 7, "span", {}),
    ),
    slow={1: 1_000_000},
    about={"target": "grid/toy", "run_id": "20250102-030405-0123abcd-grid-toy", "policy": "random"},
)


def export(name: str) -> Callable[[], str]:
    """Return what draws all stored results in another tool's format."""

    def draw() -> str:
        records = [read_record(text) for text in stored_results().values()]
        return EXPORTS[name](records)

    return draw


# Files that are read again

REPLAYS = {
    "tape": "sim --replay tape.npz --json",
    "bundle": "validate --replay difference.bundle --json",
    "checkpoint": "sim prospector/short player=run:tiny episodes=8 --json",
    "checkpoint of dqn": "sim gym:CartPole-v1 player=run:dqn episodes=4 --json",
    "resumed": "train prospector/short run=tiny --resume total_timesteps=2560 --json",
    "records": "compare bench-goal-missed.json bench-instructions.json --json",
    "diagnosis": "diagnose profile.json --quick --json",
}
"""Commands that read what an earlier version wrote, in a folder that has it."""

TIMED = re.compile(r"_per_s|_ns|cpu|share|_s$|contest.split|overhead|ready")
"""Values that no second run repeats."""


def replays() -> str:
    """Return what comes of the stored files when they are read again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_stored(folder)
        return json_of({name: answer_to(line, folder) for name, line in REPLAYS.items()})


def copy_stored(folder: Path) -> None:
    """Put the programs, the stored files and the stored results where a user would have them."""
    for each in (*PROGRAMS, FROZEN / "files", RESULTS):
        shutil.copytree(each, folder, dirs_exist_ok=True)
    (folder / "train_dir").mkdir()
    for name in ("tiny", "dqn"):
        shutil.move(folder / name, folder / "train_dir" / name)


def log_tables() -> str:
    """Return the tables of a log as SQLite describes them."""
    with tempfile.TemporaryDirectory() as name:
        run("sim farm steps=20 agents=5 log=run.db", Path(name))
        with closing(sqlite3.connect(Path(name) / "run.db")) as log:
            return lines_of(
                " ".join(sql.split()) for (sql,) in log.execute("SELECT sql FROM sqlite_master") if sql
            )


def answer_to(line: str, folder: Path) -> Any:
    """Run a command, and return its exit code and what a second run would say as well."""
    code, out = run(f"{line} 2>errors.txt", folder)
    try:
        plain = json.loads(out)
    except ValueError:
        return {"exit_code": code, "said": out + (folder / "errors.txt").read_text("utf-8")}
    return {"exit_code": code, **steady_part(plain)}


def steady_part(plain: Any) -> dict[str, Any]:
    """Return what a command answers whenever it is run: of a record work and values, else the shape."""
    if not isinstance(plain, dict) or "values" not in plain:
        return {"shape": shape_of(plain)}
    values = {name: rounded(each) for name, each in plain["values"].items() if not TIMED.search(name)}
    difference = (plain["validation"] or {}).get("difference")
    outcomes = [each["outcome"] for each in plain["comparisons"]]
    return {"work": plain["work"], "values": values, "difference": difference, "outcomes": outcomes}


def rounded(values: Sequence[float]) -> list[float]:
    """Return values to five digits: sums of a network may be in another order on another machine."""
    return [float(f"{each:.5g}") for each in values]


FACTS: Mapping[str, Callable[[], str]] = {
    "facts/record_fields.txt": record_fields,
    "facts/exit_codes.txt": exit_codes,
    "facts/notice_codes.txt": notice_codes,
    "facts/flags.txt": flags,
    "facts/signatures.txt": signatures,
    "facts/hotloop_toml.json": project_file,
    "facts/mcp_tools.json": mcp_tools,
    "facts/mcp_answers.json": mcp_answers,
    "exports/results.csv": export("csv"),
    "exports/results.openmetrics.txt": export("openmetrics"),
    "exports/results.pyperf.json": export("pyperf"),
    "exports/results.github.json": export("github"),
    "exports/trace.perfetto.json": lambda: draw_trace(TRACE),
    "exports/trace.speedscope.json": lambda: draw_speedscope(TRACE),
    "facts/log_tables.txt": log_tables,
    "facts/replays.json": replays,
}
"""Each file under tests/frozen that a test compares, and what it must hold."""


def screens() -> dict[str, str]:
    """Return every screen that is kept for review, by its file."""
    helps = {
        f"screens/help{name.replace(' ', '-') and '-' + name.replace(' ', '-')}.txt": screen
        for name, screen in help_screens().items()
    }
    texts = stored_results().items()
    return helps | {f"screens/{name}.txt": draw_everywhere(text)[0] for name, text in texts}
