from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
from support import sized_target
from support.clock import CLOCK

from hotloop.core.errors import InputError
from hotloop.core.machine import code, machine
from hotloop.core.record import Record
from hotloop.core.record.experiments import ELSE, PHASE, RUN_NS, STEP_NS, TIMED_NS
from hotloop.core.settings import Target
from hotloop.core.turn_clock import Turn, TurnClock
from hotloop.judge.sweep import share
from hotloop.lab.measure import record, sides
from hotloop.lab.sweep import scale as lab
from hotloop.lab.sweep.cells import Cell, CellCache
from hotloop.lab.sweep.scale import cells_of, forecast, read, scale
from hotloop.options.sweeps import ScaleOptions

MAKE = f"{Path(sized_target.__file__)}:make"
MACHINE, CODE = machine(), code(None)

SHORT = ScaleOptions(target="", repeats=1, steps=20)


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask once what this machine and this code are, and not for every cell."""
    monkeypatch.setattr(record, "machine", lambda: MACHINE)
    monkeypatch.setattr(record, "code", lambda *_, **__: CODE)
    monkeypatch.setattr(lab, "release_memory", lambda: None)


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the targets move the clock."""

    def took(play: Callable[[], int]) -> Turn:
        ns = play()
        return Turn(ns, cpu_ns=ns)

    monkeypatch.setattr(sides, "now_ns", CLOCK.now)
    monkeypatch.setattr(lab, "timed", took)
    monkeypatch.setattr(TurnClock, "time", lambda _, play: took(play))


def sized(*words: str, asked: ScaleOptions = SHORT) -> Record:
    return scale(read(Target.typed(MAKE, words)), asked)


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize(("law", "word"), [("n", "linear"), ("nn", "quadratic"), ("nlogn", "n log n")])
def test_the_law_of_somebodys_env_is_found(law: str, word: str) -> None:
    found = sized("n=10,50,100,500", f"law={law}")
    assert found.sweep is not None
    laws = {each.metric: each.law for each in found.sweep.growths}
    assert laws[STEP_NS] == word
    assert laws[f"{PHASE}rising"] == word
    assert laws[f"{PHASE}flat"] == "constant"
    assert found.exit_code == 0


@pytest.mark.usefixtures("still")
def test_where_a_phase_overtakes_another_is_said() -> None:
    swept = sized("n=10,40,60,500").sweep
    assert swept is not None
    [found] = swept.crossings
    assert (found.riser, found.fallen, found.low, found.high) == ("rising", "flat", 40, 60)


@pytest.mark.usefixtures("still")
def test_a_run_of_more_steps_takes_longer_from_its_reset_on() -> None:
    swept = sized("steps=10,20,40,80").sweep
    assert swept is not None
    assert [(each.metric, each.law) for each in swept.growths if each.metric == RUN_NS] == [
        (RUN_NS, "linear")
    ]


def test_the_same_sweep_twice_does_the_same_work() -> None:
    axes = read(Target.typed("grid/toy", ["agents=2,4", "num_envs=2"]))
    once, again = (scale(axes, SHORT) for _ in range(2))
    assert once.work == again.work
    assert once.work.env_steps == 2 * lab.ROUNDS * 20
    assert once.sweep is not None
    assert again.sweep is not None
    assert [each.env_steps for each in once.sweep.points] == [each.env_steps for each in again.sweep.points]


def test_every_repeat_has_every_place_in_an_order_of_its_own() -> None:
    axes = read(Target.typed("grid/toy", ["agents=1,2,3,4,5"]))
    cells = cells_of(axes, ScaleOptions(target="", repeats=2))
    first, second = ([cell.target.keys["agents"] for cell in cells[k : k + 5]] for k in (0, 5))
    assert sorted(first) == sorted(second) == ["1", "2", "3", "4", "5"]
    assert first != second
    assert cells == cells_of(axes, ScaleOptions(target="", repeats=2))


@pytest.mark.usefixtures("still")
def test_a_size_that_the_target_refuses_is_skipped_and_said() -> None:
    found = sized("n=10,50,20000")
    assert found.sweep is not None
    assert [each.at for each in found.sweep.refused] == [{"n": "20000"}]
    assert any(said.code == "skipped" and "too large" in said.text for said in found.notices)


@pytest.mark.usefixtures("still")
def test_where_every_place_is_refused_there_is_no_record() -> None:
    with pytest.raises(InputError, match=r"no place of n=20000,30000 can be measured: .*too large"):
        sized("n=20000,30000")


@pytest.mark.parametrize("name", ["grid/toy", MAKE])
def test_an_axis_that_the_target_does_not_have_is_refused_before_anything_runs(name: str) -> None:
    with pytest.raises(InputError, match="wrong"):
        forecast(read(Target.typed(name, ["wrong=1,2"])), SHORT)


@pytest.mark.usefixtures("still")
def test_ctrl_c_leaves_a_record_of_what_is_done_and_resume_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    axes = read(Target.typed(MAKE, ["n=10,50,100"]))
    ran, run = list[Cell](), Cell.run

    def stopping(cell: Cell, *given: object) -> Record:
        ran.append(cell)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return run(cell, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Cell, "run", stopping)
    stopped = scale(axes, SHORT, shelf=CellCache(tmp_path))
    assert (stopped.partial, stopped.exit_code) == (True, 130)
    assert stopped.sweep is not None
    assert len(stopped.sweep.points) == 2
    whole = scale(axes, SHORT, shelf=CellCache(tmp_path))
    assert not whole.partial
    assert len(ran) == 3 + 1


@pytest.mark.usefixtures("still")
def test_a_slow_call_makes_a_round_ten_times_shorter() -> None:
    quick, slow = (sized(f"n={n},{n + 1}", asked=replace(SHORT, steps=200)) for n in (10, 5_000))
    assert quick.work.env_steps == 2 * lab.ROUNDS * 200
    assert slow.work.env_steps == 2 * lab.ROUNDS * 20


ZOO = Path(__file__).parents[2] / "zoo"
NAMES = ("Environment.get_observation", "Spatial.nearby")


def test_functions_of_untouched_code_are_phases_and_a_call_of_two_is_counted_in_both() -> None:
    target = Target(f"{ZOO}/ecology.py:make", {"agents": "3,6,12"}, time=NAMES)
    record = scale(read(target), ScaleOptions(target="", repeats=1, steps=8))
    assert record.sweep is not None
    assert record.work.agent_steps / record.work.env_steps == pytest.approx(7)
    for point in record.sweep.points:
        whole, nearby, left = (median(point.values[f"{PHASE}{name}"]) for name in (*NAMES, ELSE))
        assert 0 < nearby < whole
        assert whole + left == pytest.approx(median(point.values[TIMED_NS]), rel=0.3)
        assert share(point, f"{PHASE}{NAMES[0]}") < 1


def test_a_function_that_no_place_calls_is_said() -> None:
    target = Target(f"{ZOO}/ecology.py:make", {"agents": "2,3"}, time=("Log.flush",))
    record = scale(read(target), ScaleOptions(target="", repeats=1, steps=2))
    assert [said.text for said in record.notices if said.code == "never-called"] == [
        "Log.flush was never called in this process"
    ]


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("words", [["n=10,100"], ["n=10,100", "law=nn"], ["n=500", "steps=10,20"]])
def test_a_forecast_counts_the_calls_that_a_sweep_makes(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    axes, asked = read(Target.typed(MAKE, words)), replace(SHORT, repeats=2)
    begin = CLOCK.now()
    scale(axes, asked)
    took = CLOCK.now() - begin
    monkeypatch.setattr(lab, "now_ns", CLOCK.now)
    monkeypatch.setattr(lab, "CELL_S", 0.0)
    assert forecast(axes, asked) * 1e9 == pytest.approx(took, rel=0.5)


def test_a_forecast_of_many_places_tries_a_few_of_them() -> None:
    places = read(Target.typed(MAKE, ["n=" + ",".join(map(str, range(1, 101)))])).places
    tried = lab.sample(places)
    assert len(tried) == lab.MOST_TRIED
    assert (tried[0], tried[-1]) == (places[0], places[-1])
    assert list(lab.sample(places[:3])) == list(places[:3])
