"""Tables that somebody writes by hand, of rules and of a project, with a few things wrong in each."""

import random
import signal
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from support.mutations import damage, toml

from hotloop.cli.main import main

SOME, ALL, PARTS = 40, 1_000, 4
"""Of each kind, in the suite and in `./check hostile`."""

PATIENCE_S = 30

PROJECT = """
[suite.nightly]
items = [{ target = "grid/toy", keys = { agents = 4 }, do = "bench" }, { target = "grid/toy" }]

[budget.speed]
target = "grid/toy"
keys = { num_envs = 4 }
metric = "env_steps_per_s"
limit = 1
reason = "a test"
owner = "a tester"

[budget.change]
target = "grid/toy"
metric = "phase:observations"
max_change = "5%"
against = "main"
expires = 2099-01-31
enforce = false
"""

Fine = tuple[int, ...]


def tables() -> list[str]:
    """The rules that ship and have something in them."""
    folder = resources.files("hotloop.worlds.grid") / "tables"
    return [(folder / f"{name}.toml").read_text() for name in ("guard", "arena")]


def written(text: str, seed: int) -> str:
    """A table with one to three things wrong, or its text with a few characters that are."""
    chance = random.Random(seed)
    if chance.random() < 0.25:
        return spoiled(text, chance)
    table: dict[str, Any] = tomllib.loads(text)
    for _ in range(chance.randint(1, 3)):
        damage(table, chance)
    return toml(table)


def spoiled(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(text))
        text = (
            text[:place] + chance.choice(('"', "[", "]", "=", "\n", "\x00", "9", "{", "")) + text[place + 1 :]
        )
    return text


@contextmanager
def patience() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def check_all(
    seeds: range, texts: list[str], path: Path, line: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Write each and have it read: it is done or refused in one line, in time, and never a fault."""
    wrong, codes = [], []
    for seed in seeds:
        path.write_text(written(texts[seed % len(texts)], seed), encoding="utf-8", errors="replace")
        with patience():
            codes.append(main(line))
        err = capsys.readouterr().err
        refused = codes[-1] == 64
        if codes[-1] not in (0, 64) or "Traceback" in err or (refused and err.count("\n") != 1):
            wrong.append((seed, codes[-1], err[-300:]))
    assert not wrong
    assert codes.count(0) > len(seeds) / 20
    assert codes.count(64) > len(seeds) / 3


def check_rules(seeds: range, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    play = ["sim", "grid/toy", "rules=rules.toml", "episodes=1", "max_steps=8", "agents=4"]
    check_all(seeds, tables(), tmp_path / "rules.toml", play, capsys)


def check_projects(seeds: range, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_all(seeds, [PROJECT], tmp_path / "hotloop.toml", ["gate", "--list"], capsys)


CHECKS = {"rules": check_rules, "projects": check_projects}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_no_damaged_table_is_a_fault(
    check: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    check(range(SOME), tmp_path, capsys)


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_no_damaged_table_of_many_is_a_fault(
    check: Callable[..., None], part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    begin = SOME + part * ALL // PARTS
    check(range(begin, begin + ALL // PARTS), tmp_path, capsys)
