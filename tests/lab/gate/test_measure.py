from dataclasses import replace
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.gauges import ENV
from support.projects import Project
from support.records import BENCH

from hotloop.core.errors import ExitCode
from hotloop.core.project import Budget
from hotloop.core.record import Record
from hotloop.core.record.comparison import ComparedSide, Comparison, Outcome, Ratio
from hotloop.core.record.experiments import BudgetResult
from hotloop.lab.gate import measure
from hotloop.lab.gate.gate import BudgetRow, run
from hotloop.lab.gate.measure import Checkouts, CodePlace, GateContext, inside, printed
from hotloop.lab.programs.launch import Program
from hotloop.options.gate import GateOptions
from hotloop.stats.summary import with_metrics

SIDE = ComparedSide(
    name="x", run_id=None, target=BENCH.target, code=BENCH.code, work=BENCH.work, path=BENCH.path
)


def budget(metric: str, **more: Any) -> Budget:
    usual: dict[str, Any] = {"name": "b", "target": "env.py:make", "metric": metric}
    if "limit" not in more:
        usual |= {"max_change": 0.05, "against": "main"}
    return Budget(**usual | more)


def compared(ratio: Ratio | None, outcome: Outcome, **more: Any) -> Record:
    """A comparison in turns, as the lab would have measured it."""
    found = Comparison(a=SIDE, b=SIDE, band=0.0527, ratio=ratio, outcome=outcome, why="the lab's", **more)
    return with_metrics(replace(BENCH, values={"b.ns_per_env_step": (1000.0,) * 6}, comparisons=(found,)))


@pytest.fixture
def turns(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    """What the next comparisons in turns come to, the last for ever; the tree is one commit after main."""
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit(env=f"{ENV}#\n")
    coming: list[Record] = []
    side = SimpleNamespace(close=lambda: None, spec=SimpleNamespace(agents=2))
    monkeypatch.setattr(CodePlace, "checkout", lambda *_: None)
    monkeypatch.setattr(measure, "CommitContender", lambda _: side)
    monkeypatch.setattr(
        measure, "measure_comparison", lambda *_: coming.pop(0) if len(coming) > 1 else coming[0]
    )
    return coming


def gated(budget: Budget, /, **given: Any) -> tuple[BudgetRow, BudgetResult]:
    with Checkouts(Path.cwd(), say=lambda words: None) as places:
        how = GateContext(places=places, today=date(2026, 6, 1), options=GateOptions(**given))
        row = run([budget], how).rows[0]
    assert row.record is not None, row.error
    assert row.record.held is not None
    return row, row.record.held


def ratio(estimate: float, half: float = 0.01) -> Ratio:
    return Ratio(estimate=estimate, low=estimate - half, high=estimate + half, pairs=60)


def test_the_speed_of_two_commits_is_taken_from_their_turns(turns: list[Record]) -> None:
    turns.append(compared(ratio(1.0), "same"))
    row, held = gated(budget("agent_steps_per_s"))
    assert row.code is ExitCode.FINE
    assert held.value is not None
    assert held.value.value == pytest.approx(2e6)


def test_slower_twice_is_red_and_a_doubt_of_the_lab_is_heard(turns: list[Record]) -> None:
    turns += [compared(ratio(0.9), "slower")]
    assert gated(budget("env_steps_per_s"))[0].code is ExitCode.REGRESSION
    turns[:] = [compared(ratio(0.9), "cannot tell")]
    row, held = gated(budget("env_steps_per_s"))
    assert (row.code, held.why, held.runs) == (ExitCode.CANNOT_TELL, "the lab's", 5)


def test_an_interval_over_the_edge_of_faster_is_green(turns: list[Record]) -> None:
    turns += [compared(ratio(1.05, half=0.05), "cannot tell")]
    assert gated(budget("env_steps_per_s"))[0].code is ExitCode.FINE


def test_what_answers_differently_is_2_unless_that_is_meant(turns: list[Record]) -> None:
    turns += [compared(None, "cannot tell", difference="step 4: rewards differ")]
    row, held = gated(budget("env_steps_per_s"))
    assert (row.code, held.runs) == (ExitCode.MISMATCH, 1)
    turns[:] = [compared(ratio(1.0), "same")]
    assert gated(budget("env_steps_per_s"), unlike=True)[0].code is ExitCode.FINE


def test_a_program_is_held_to_what_it_prints(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "lacked_cpu", lambda *_: None)
    (project.root / "train.sh").write_text("echo sps=1,500 loss: 0.5\n")
    target = "-- sh train.sh"
    assert gated(budget("printed:sps", target=target, limit=1000))[0].code is ExitCode.FINE
    assert gated(budget("printed_less:loss", target=target, limit=0.4))[0].code is ExitCode.REGRESSION


def test_a_program_is_run_where_its_commit_lies(project: Project) -> None:
    project.git("checkout", "--quiet", "-b", "feature")
    project.commit(train="echo sps=1000")
    project.git("checkout", "--quiet", "-b", "later")
    project.commit(train="echo sps=800")
    slower = budget("printed:sps", target="-- sh train.py", against="feature")
    row, held = gated(slower, budget=0.2)
    assert (row.code, held.standing) == (ExitCode.REGRESSION, "missed")
    assert held.change is not None
    assert held.change.value == pytest.approx(-0.2)


def test_a_printed_name_is_found_whole_with_its_number() -> None:
    found = printed(budget("printed:sps", limit=1))
    assert found is not None
    text = "fps=3 xsps=4 sps: 1_200.5\nsps = 2e3"
    assert found.pattern.findall(text) == ["1_200.5", "2e3"]
    assert printed(budget("runs_per_s", limit=1)) is None


def test_a_program_keeps_its_words(tmp_path: Path) -> None:
    place: Any = SimpleNamespace(folder=tmp_path)
    assert inside(place, Program(("a b", "c"))).words[-2:] == ("a b", "c")


def test_a_program_that_is_interrupted_interrupts_the_gate(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure.programs, "bench", lambda *_, **__: replace(BENCH, partial=True))
    held = Budget(name="b", target="-- sleep 1", metric="runs_per_s", limit=1.0)
    with Checkouts(project.root, say=lambda _: None) as places, pytest.raises(KeyboardInterrupt):
        run([held], GateContext(places=places, today=date(2026, 1, 1)))
