from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hotloop.judge import sweep as choosing
from hotloop.lab.sweep import tune
from hotloop.lab.sweep.cells import Cell
from hotloop.options import sweeps as declared

Command = Callable[..., Any]

PRESENT = {"num_envs": "64"}


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tune, "TURN_NS", 1_000)
    monkeypatch.setattr(declared, "CONFIRM_S", 0.1)


def test_a_winner_is_told_with_its_line_and_its_floor_is_written(hotloop: Command) -> None:
    Path("hotloop.toml").write_text("# ours\n[suite.all]\nitems = [{ target = 'grid/toy' }]\n")
    words = ("grid/toy", "agents=2", "num_envs=1,16", "threads=1", "--write-floor", "toy")
    said = hotloop("tune", *words)
    assert said.code in (0, 4)
    assert "2 cells, about 10 s, at most 20 s" in said.err
    assert "hotloop bench grid/toy agents=2" in said.out
    written = Path("hotloop.toml").read_text()
    assert written.startswith("# ours\n")
    assert "[budget.toy]" in written or "no budget toy written" in said.err
    [record] = Path("artifacts/throughput").glob("*.json")
    assert record.with_suffix(".svg").exists()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("num_envs=4",), "tune needs an axis: a key with several values, such as agents=10,100,1000\n"),
        (("num_envs=4,8", "--confirm", "0"), "--confirm 0 does not fit: expected seconds, above 0"),
        (("num_envs=4,8", "--minutes", "0"), "--minutes 0 does not fit: expected minutes, above 0"),
        (("num_envs=4,8", "--learning-band", "100"), "--learning-band 100 does not fit: expected per cent"),
        (("wrong=4,8",), "unknown key"),
        (("num_envs=0,-1",), "none of the 2 combinations can be run"),
        (("train.num_steps=8,16", "--write-floor", "x"), "a gate measures no training"),
    ],
)
def test_bad_searches_are_usage_errors(hotloop: Command, words: tuple[str, ...], line: str) -> None:
    said = hotloop("tune", "grid/toy", *words)
    assert (said.code, said.out) == (64, "")
    assert line in said.err


def test_ctrl_c_says_where_the_cells_are_and_resume_goes_on_to_the_present_settings(
    hotloop: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("tune", "grid/toy", "agents=2", "num_envs=63,64", "--rounds", "1")
    ran, run = list[str](), Cell.run

    def stopping(cell: Cell, *given: Any) -> Any:
        ran.append(str(cell.target.keys["num_envs"]))
        if len(ran) == 2:
            raise KeyboardInterrupt
        return run(cell, *given)

    monkeypatch.setattr(Cell, "run", stopping)
    said = hotloop(*words)
    assert said.code == 130
    assert "interrupted: the cells that are done are in artifacts/sweeps/tune-grid-toy" in said.err
    monkeypatch.setattr(choosing, "winner", lambda found: next(each for each in found if each.at == PRESENT))
    said = hotloop(*words, "--resume")
    assert ran == [ran[0], ran[1], ran[1]]
    assert "the winner is the present settings: there is nothing to confirm" in said.out
