"""No word of a world outside its folder: the engine, the lab and the reports know none by heart."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.core import registry, settings
from hotloop.core.world import World
from hotloop.worlds.grid.features import KINDS, Feature
from hotloop.worlds.grid.rules import read_rules
from hotloop.worlds.prospector.numbers import COMMODITY_NAMES, KIND_NAMES

ROOT = Path(__file__).parents[2]
PACKAGE, NATIVE = ROOT / "src/hotloop", ROOT / "native"

EVERYBODYS = {
    # what every world has, or may have
    *("action", "actions", "agent", "agents", "observations", "rewards", "terminals", "truncations", "reset"),
    *("episode_length", "tokens", "rules", "shadow", "random", "kernels", "auto"),
    # learning's and the machine's
    *("clip", "clipped", "greedy", "encoder", "teacher", "scan", "avx2", "avx512", "event", "events"),
    *("timer", "wall", "window", "frozen", "map", "move", "group", "dt", "tag"),
    # who lives in a row, chance for players, and the kinds of spatial index, which any world may have
    *(
        "alive",
        "list",
        "memmap",
        "memmap_folder",
        "resources",
        "breeds",
        "died",
        "max_births",
        "serials",
        "luck",
        "index",
        "grid",
        "hash",
        "quadtree",
        "kdtree",
        "brute",
        "nearest",
        "queries",
        "rebuilds",
        "stale",
    ),
    # the seats of any game of two
    *("hero", "villain"),
    # how a run is written down, which any world may have
    *("log", "overwrite", "balanced", "performance", "memory", "thread", "caller", "disk", "stop", "go_on"),
    # sizes and machines
    *("width", "height", "radius", "nodes", "environment", "systems", "gather", "starved", "communicate"),
    *("cluster", "swap"),
    # plain English
    *(
        "encode",
        "first",
        "none",
        "masks",
        "passive",
        "search",
        "seat",
        "seat_rewards",
        "simple",
        "won",
        "began",
        "lazy",
        "truncation",
    ),
    *(
        "share",
        "unknown",
        "pass",
        "held",
        "failed",
        "lives",
        "people",
        "buy",
        "unheard",
        "energy",
        "strength",
    ),
    *(
        "births",
        "population",
        "changed",
        "claim",
        "completion",
        "invalid",
        "killed",
        "full",
        "leave",
        "mine",
        "refused",
        "still",
        "use",
        "uses",
    ),
}
"""Words of a world that are not its own: they mean something else where others use them."""

EXAMPLE = re.compile(r"hotloop [a-z]+ |\bmake\(|(parallel|aec)_env\(|'s original\b")
"""A line that shows how a command or a call is used names a world, and may use its words."""


def words_of(world: World) -> Iterator[str]:
    """What a world declares: parameters and their choices, phases, counters, players, infos, rivals."""
    for info in settings.describe(world.parameters):
        yield from (info.name, *map(str, info.choices or ()))
    for names in (world.phases, world.counters, world.players, world.channels, world.board, world.outcomes):
        yield from names
    for preset in world.presets.values():
        parameters = settings.apply(world.parameters, preset)
        yield from (array.name for array in world.layout(parameters).arrays)
    for name, rival in world.rivals.items():
        yield from (name, rival.parameter, rival.reference, rival.candidate)


def words_of_tables() -> Iterator[str]:
    """What stands in a world and what it deals in."""
    yield from (*KINDS, *(feature.name for feature in Feature), *COMMODITY_NAMES, *KIND_NAMES)
    for preset in registry.worlds()["grid"].presets:
        rules = read_rules(preset)
        yield from (*rules.kinds, *rules.resources)


def vocabulary() -> set[str]:
    declared = [word for world in registry.worlds().values() for word in words_of(world)]
    parts = (part.lower() for word in (*declared, *words_of_tables()) for part in word.split("."))
    return {part for part in parts if re.fullmatch(r"[a-z]\w+", part)} | {"hero"}


def sources() -> list[Path]:
    """All that belongs to no world."""
    python = [path for path in PACKAGE.rglob("*.py") if path.relative_to(PACKAGE).parts[0] != "worlds"]
    native = [path for path in NATIVE.rglob("*") if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".in")]
    return [*python, *(path for path in native if path.relative_to(NATIVE).parts[0] != "tests")]


def offenders(path: Path, own: set[str]) -> Iterator[str]:
    """The words of worlds in a file; names in upper case are the same words."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not EXAMPLE.search(line):
            yield from own & {word.lower() for word in re.findall(r"[A-Za-z_]\w+", line)}


@pytest.fixture(scope="module")
def found() -> set[tuple[str, str]]:
    own = vocabulary() - EVERYBODYS
    return {(str(path.relative_to(ROOT)), word) for path in sources() for word in offenders(path, own)}


def test_no_word_of_a_world_stands_outside_its_folder(found: set[tuple[str, str]]) -> None:
    assert sorted(found) == []


def test_everybodys_words_are_words_of_a_world() -> None:
    assert sorted(EVERYBODYS - vocabulary() - {"random"}) == []


@pytest.mark.parametrize("line", ['if name == "vibe":', "ORIGINAL = 1", "int fuel_used;", "# the max_steps"])
def test_a_word_is_found_in_code_and_in_comments(tmp_path: Path, line: str) -> None:
    file = tmp_path / "some.py"
    file.write_text(line)
    assert len(set(offenders(file, vocabulary() - EVERYBODYS))) == 1


def test_an_example_may_use_them(tmp_path: Path) -> None:
    file = tmp_path / "some.py"
    file.write_text('"hotloop profile grid/toy encoder=original"')
    assert list(offenders(file, vocabulary())) == []
