"""What the pages say is so: links lead somewhere, names exist, tables agree, figures are measured."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.pages import ALL_PAGES, PAGES, ROOT, anchors, blocks, links, name_of, prose, spans

from figures import rewritten
from hotloop.cli.app import DASHES, commands
from hotloop.core.errors import Code, ExitCode
from hotloop.core.registry import worlds
from hotloop.core.settings import describe
from hotloop.core.world import World
from hotloop.envs.spec import BatchSettings
from hotloop.options.bench import QUICK, THOROUGH
from hotloop.options.option import PROGRAMS, ProcessOptions, options_of
from hotloop.options.option import describe as describe_options
from hotloop.worlds.grid.features import FEATURES, KINDS
from hotloop.worlds.grid.rules import Area, Change, Event, Recipe, Reward, Rules

every_page = pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
GRID = worlds()["grid"]

MEASURED = re.compile(
    r"\d[\d.,]* ?[kMG]?[ -](agent-|env-)?steps?/s|\d ?(ns|µs|us|ms)\b|\d[ -]?(x|times|fold) (as )?(fast|slow)"
    r"|\d ?% (fast|slow)|[kMGT]i?B\b"
)
"""What looks like a figure somebody measured."""
SETTINGS = {
    "20 µs": "native/engine/pool.cpp",
    "50 MB": "src/hotloop/report/files.py",
    "25 ms": "src/hotloop/lab/measure/loop.py",
    "20 ms": "src/hotloop/core/turn_clock.py",
}
"""Figures that are chosen, not measured, and where."""


def flags_of(command: str, *, program: bool = False) -> set[str]:
    kind = options_of(command, program=program)
    declared = (*describe_options(kind).values(), *describe_options(ProcessOptions).values())
    return {flag for each in declared for flag in each.flags} | {"--help"}


def script_flags() -> set[str]:
    """The flags of benchmarks and tools."""
    scripts = [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "tools").glob("*.py")]
    return {
        flag for script in scripts for flag in re.findall(r'"(--[a-z][\w-]*)"', script.read_text("utf-8"))
    }


def code_lines(page: Path) -> Iterator[str]:
    yield from spans(page)
    for block in blocks(page):
        if block.language == "bash":
            yield from block.commands


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@every_page
def test_every_command_and_flag_exists(page: Path) -> None:
    for line in code_lines(page):
        words = [
            word for word in shlex.split(line, comments=True) if "=" not in word or word.startswith("--")
        ]
        if len(words) < 2 or words[0] not in ("hotloop", "./hotloop") or words[1] == "--help":
            continue
        assert words[1] in commands(), line
        program = DASHES in words
        words = words[: words.index(DASHES)] if program else words
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given <= flags_of(words[1], program=program), line


@every_page
def test_every_flag_by_itself_belongs_to_something(page: Path) -> None:
    known = set.union(
        script_flags(), *map(flags_of, commands()), *(flags_of(each, program=True) for each in PROGRAMS)
    )
    alone = {span for span in spans(page) if re.fullmatch(r"--[a-z][\w-]*", span)}
    assert alone <= known


@every_page
def test_paths_in_the_text_exist(page: Path) -> None:
    """Those that begin at the root of the checkout and are not made by a run or an example."""
    roots = ("src/", "native/", "tests/", "tools/", "benchmarks/", "docs/")
    for span in spans(page):
        if span.startswith(roots) and not re.search(r"[<* ]|orchard", span):
            assert (ROOT / span).exists() or span == "benchmarks/results", span


@every_page
def test_figures_are_only_where_they_are_put_by_measurement(page: Path) -> None:
    text = prose(page)
    for setting, source in SETTINGS.items():
        assert (ROOT / source).exists()
        text = text.replace(setting, "")
    assert MEASURED.search(text) is None, MEASURED.search(text)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_figures_are_those_of_the_newest_results(page: Path) -> None:
    assert rewritten(ROOT, page) == page.read_text("utf-8"), "run ./.venv/bin/python tools/figures.py"


@every_page
def test_nothing_is_said_of_where_it_was_made(page: Path) -> None:
    assert not re.search(r"/(?:work|tmp|home|root)/", page.read_text("utf-8"))


def test_the_table_of_exit_codes_is_whole() -> None:
    rows = re.findall(r"^\| (\d+) \|", prose(ROOT / "docs/method.md"), re.MULTILINE)
    assert [int(row) for row in rows] == [int(code) for code in ExitCode]


def test_the_table_of_plans_is_that_of_the_code() -> None:
    rows = re.findall(
        r"^\| `--(\w+)` \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|",
        prose(ROOT / "docs/measuring.md"),
        re.MULTILINE,
    )
    plans = {plan: tuple(int(number.replace(",", "")) for number in numbers) for plan, *numbers in rows}
    assert plans == {"quick": QUICK, "thorough": THOROUGH}


def test_notices_that_are_named_exist() -> None:
    text = (ROOT / "docs/method.md").read_text("utf-8")
    table = text.partition("## Notices")[2].partition("## ")[0]
    named = [
        code
        for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
        for code in re.findall("`(.+?)`", row)
    ]
    assert named
    assert set(named) <= set(Code)


def test_the_table_of_features_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \| (\d+) \|$", prose(ROOT / "docs/grid.md"), re.MULTILINE)
    table = {(int(feature), info.name, int(info.normalisation)) for feature, info in FEATURES.items()}
    assert {(int(feature), name, int(by)) for feature, name, by in rows} == table


def test_tags_phases_counters_and_parameters_of_the_grid_are_all_named() -> None:
    page = ROOT / "docs/grid.md"
    text, named = prose(page), spans(page)
    assert all(f"{tag} {kind}" in " ".join(text.split()) for tag, kind in enumerate(KINDS))
    for name in (*GRID.phases, *GRID.counters, *(info.name for info in describe(GRID.parameters))):
        assert name in named, name
    variables = [info.env for info in (*describe(GRID.parameters), *describe(BatchSettings)) if info.env]
    assert all(variable in named for variable in variables)
    assert all(f"grid/{preset}" in named for preset in GRID.presets)


def test_the_example_table_has_every_key_there_is() -> None:
    (example,) = [block.text for block in blocks(ROOT / "docs/grid.md") if block.language == "toml"]
    for row in (Rules, Recipe, Event, Reward, Change, Area):
        for key in row.__dataclass_fields__:
            assert re.search(rf"\b{key}\b", example), f"{row.__name__}.{key}"


@pytest.mark.parametrize("world", worlds().values(), ids=lambda world: world.name)
def test_a_worlds_page_names_all_it_declares(world: World) -> None:
    named = spans(ROOT / "docs" / f"{world.name}.md")
    parameters = (info.name for info in describe(world.parameters))
    presets = (f"{world.name}/{preset}" for preset in world.presets)
    for name in (*world.phases, *world.counters, *world.players, *parameters, *presets):
        assert name in named, name
