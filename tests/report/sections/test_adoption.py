from dataclasses import replace

from support.drawn import text

from hotloop.core.record.comparison import AdoptionChecklist, Configuration, Ratio
from hotloop.report.kinds.validate import adoption


def standing(step: int) -> AdoptionChecklist:
    ratio = Ratio(estimate=12.0, low=11.0, high=13.0, pairs=30)
    one = Configuration(
        target="grid/toy", keys={}, comparisons=70, mismatches=0, runs=2, difference=None, bundle=None
    )
    return AdoptionChecklist(
        candidate="new",
        reference="old",
        configurations=(one, replace(one, target="grid/guard", comparisons=30)),
        wanted=100,
        missing=(),
        outcome="faster",
        alone=ratio,
        whole=replace(ratio, estimate=9.0),
        part="the phase observations",
        is_default=True,
        step=step,
        why="so it is",
        command="do this",
    )


def test_a_rollout_has_what_is_done_what_is_next_and_what_to_run() -> None:
    shown = text(adoption(standing(3)))
    assert "together" in shown
    assert " 100 " in shown
    assert "12.000 [11.000, 13.000]" in shown
    assert "9.000 [" in shown
    marks = [line.split()[0] for line in shown.splitlines() if line.strip()[:4] in ("done", "next")]
    assert marks == ["done", "done", "next"]
    assert "run  do this" in shown


def test_a_reference_that_stays_is_kept() -> None:
    shown = text(adoption(standing(5)))
    assert "kept  4. remove the old path" in shown
    assert "next" not in shown
