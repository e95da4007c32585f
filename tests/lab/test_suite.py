"""Suites: items in processes of their own, failures that cost no other, resumed, and one report."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.drawn import text
from support.records import BENCH

from hotloop.cli.main import main
from hotloop.core.errors import ExitCode, InputError
from hotloop.core.process.supervisor import ExitReport
from hotloop.core.project import DO, METRICS, parse
from hotloop.core.record import Ran, SuiteRan
from hotloop.core.record.experiments import STEP_NS, Sweep, SweepPoint
from hotloop.core.record.profile import WALL, Phase
from hotloop.core.settings import Target
from hotloop.judge.sweep import conclude
from hotloop.lab.measure.loop import Rounds
from hotloop.lab.sweep import experiments
from hotloop.lab.sweep.cells import Cell, CellCache, died, sweep
from hotloop.report import markdown
from hotloop.report.kinds.sweep import largest_part
from hotloop.report.kinds.sweep import suite as sections

FEW = Rounds(count=2, iterations=20, warmup=0)

MIXED = """
[suite.mixed]
items = [
  { target = "grid/toy", keys = { num_envs = 2 } },
  { target = "grid/nowhere" },
  { target = "faulty.py:dies" },
  { target = "prospector/short", keys = { num_envs = 2 } },
]
"""

FAULTY = """
import os, signal

def dies():
    os.kill(os.getpid(), signal.SIGSEGV)
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hotloop.toml").write_text(MIXED)
    (tmp_path / "faulty.py").write_text(FAULTY)
    return tmp_path


def test_a_project_has_its_own_suites_and_those_that_ship() -> None:
    assert len(experiments.find("mixed").suite.items) == 4
    assert experiments.find("quick").suite.items
    with pytest.raises(InputError, match=r"did you mean mixed\? there are mixed, quick, worlds, farm"):
        experiments.find("mixt")


def test_a_projects_own_suite_comes_before_one_that_ships(here: Path) -> None:
    (here / "hotloop.toml").write_text('[suite.quick]\nitems = [{ target = "mine.py:make" }]\n')
    assert experiments.find("quick").suite.items[0].target.name == "mine.py:make"
    assert experiments.find("quick").folder == here


def test_what_ships_is_whole_and_names_presets_that_exist() -> None:
    shipped = parse(experiments.SHIPPED.read_text("utf-8"), experiments.SHIPPED)
    assert set(shipped.suites) == {"quick", "worlds", "farm"}
    assert METRICS  # the same reader has the budgets
    for each in shipped.suites.values():
        for item in each.items:
            cell = experiments.cell_of(item, FEW)
            assert Cell.from_json(cell.to_json()) == cell
            for target in (item.target, item.against):
                if target is not None:
                    assert target.name.count("/") == 1


def test_every_thing_to_do_is_an_experiment() -> None:
    for do in DO:
        assert callable(getattr(experiments, do))


def test_a_malformed_suite_is_refused_with_line_and_key(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "hotloop.toml").write_text('[suite.a]\nitems = [\n  { target = "grid/toy", doo = "bench" },\n]\n')
    assert main(["bench", "--suite", "a"]) == ExitCode.USAGE
    assert "line 3: suite.a.items.0.doo" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--suite", "mixt"], "unknown suite 'mixt'"),
        (["grid/toy", "--suite", "quick"], "has targets of its own: leave out grid/toy"),
        (["--suite", "quick", "--profile"], "--profile is for one target, and --suite quick"),
        (["--suite", "quick", "--phases", "a.py:b"], "--phases is for one target, and --suite quick"),
        (["--suite", "quick", "--mode", "trainer"], "--mode is for one target, and --suite quick"),
        (["--resume"], "give --suite NAME too"),
        (["--suite", "quick", "--resume"], "there is nothing to resume"),
        (["--suite", "quick", "--output", "a.json"], "name a folder"),
    ],
)
def test_bad_words_are_one_line(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words]) == ExitCode.USAGE
    assert told in capsys.readouterr().err


@pytest.mark.slow
def test_a_failing_item_costs_no_other_one_and_the_report_has_all(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "--suite", "mixed", "--rounds", "2", "--iterations", "20", "--warmup", "0", "--json"]
    assert main(words) == ExitCode.USAGE
    told = json.loads(capsys.readouterr().out)
    codes = [item["code"] for item in told["items"]]
    assert codes[1:3] == [ExitCode.USAGE, ExitCode.USAGE]
    assert [item["record"] is None for item in told["items"]] == [False, True, True, False]
    assert "was ended by SIGSEGV in make" in told["items"][2]["refused"]
    (page,) = (here / "artifacts/throughput").glob("suite-mixed-*.md")
    assert "grid/nowhere" in page.read_text()
    assert json.loads(page.with_suffix(".json").read_text()) == told
    kept = list(here.glob("artifacts/sweeps/*/*.json"))
    assert len(kept) == 2
    assert main([*words, "--resume"]) == ExitCode.USAGE
    again = json.loads(capsys.readouterr().out)
    assert again["items"][0]["record"]["run_id"] == told["items"][0]["record"]["run_id"]


class Interrupted:
    """Runs the first cell, then somebody presses Ctrl-C."""

    def __init__(self, first: object) -> None:
        self.first = first

    def run(self, cells, progress):  # type: ignore[no-untyped-def]
        yield self.first
        raise KeyboardInterrupt


def test_after_ctrl_c_what_is_done_is_told_and_the_rest_is_left() -> None:
    found = experiments.find("mixed")
    cells = [experiments.cell_of(item, FEW) for item in found.suite.items]
    failed = died(cells[1], ExitReport(why="it was ended by SIGSEGV"), "boom")
    told = experiments.summarize_suite(
        found, cells, sweep(cells, Interrupted(failed), CellCache(Path("shelf")))
    )
    assert told.interrupted
    assert told.code == ExitCode.FAULT
    assert (len(told.items), told.asked) == (1, 4)
    page = markdown.draw(sections(told))
    assert "3 left: go on with --resume" in page
    assert "it was ended by SIGSEGV: boom" in page


def test_the_gravest_item_decides_what_the_shell_is_told() -> None:
    items = [Ran(do="bench", target="a", code=code) for code in (ExitCode.UNSTABLE, ExitCode.REGRESSION)]
    ran = SuiteRan(name="a", created="now", items=tuple(items), asked=2)
    assert ran.code == ExitCode.REGRESSION
    assert replace(ran, interrupted=True).code == ExitCode.INTERRUPTED


def test_a_profile_is_told_by_its_largest_part_that_has_no_parts() -> None:
    phases = [(WALL, 1.0), (f"{WALL}/step", 0.9), (f"{WALL}/step/a", 0.3), (f"{WALL}/step/b", 0.6)]
    rows = [Phase(path=path, calls=1, total_ns=1, mean_ns=1.0, share=share) for path, share in phases]
    assert largest_part(SimpleNamespace(phases=rows)) == f"{WALL}/step/b 60.0%"  # type: ignore[arg-type]


def test_what_a_part_takes_beside_its_own_parts_can_be_the_largest() -> None:
    phases = [(WALL, 1.0), (f"{WALL}/step", 0.9), (f"{WALL}/step/a", 0.1), (f"{WALL}/step/b", 0.1)]
    rows = [Phase(path=path, calls=1, total_ns=1, mean_ns=1.0, share=share) for path, share in phases]
    told = largest_part(SimpleNamespace(phases=rows))  # type: ignore[arg-type]
    assert told == f"{WALL}/step itself 70.0%"


def test_another_target_or_another_plan_is_another_cell() -> None:
    item = experiments.find("quick").suite.items[0]
    other = replace(item, target=Target("grid/toy", {"agents": 3}))
    ids = {
        experiments.cell_of(item, FEW).id,
        experiments.cell_of(other, FEW).id,
        experiments.cell_of(item, Rounds()).id,
    }
    assert len(ids) == 3


def test_a_suite_says_how_a_sweep_grows() -> None:
    points = tuple(
        SweepPoint(at={"n": str(n)}, values={STEP_NS: (5.0 * n, 5.1 * n, 5.2 * n)}, env_steps=1)
        for n in (10, 50, 100)
    )
    swept = conclude(Sweep(axes={"n": ("10", "50", "100")}, repeats=3, points=points))
    item = Ran(do="scale", target="my.py:make n=10,50,100", against=None, record=replace(BENCH, sweep=swept))
    told = SuiteRan(name="plan", created="", items=(item,), asked=1, interrupted=False)
    assert "an env-step grows as a + b n along n" in markdown.draw(sections(told))


def test_a_long_result_takes_no_room_from_the_target() -> None:
    phase = Phase(path="/".join([WALL, *"abcdefgh" * 10]), calls=1, total_ns=1, mean_ns=1.0, share=1.0)
    item = Ran(do="profile", target="my.py:make", against=None, record=replace(BENCH, phases=(phase,)))
    screen = text(sections(SuiteRan(name="plan", created="", items=(item,), asked=1)), width=80)
    assert "my.py:make" in screen
    assert "profile" in screen
