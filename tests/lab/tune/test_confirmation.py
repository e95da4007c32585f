"""A confirmation that cannot tell is made once more, for longer, and no further."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from support.records import BENCH

from hotloop.core.progress import Progress, silent
from hotloop.core.record import Record
from hotloop.core.record.comparison import ComparedSide, Comparison, Outcome, Ratio
from hotloop.core.settings import Target
from hotloop.lab.sweep.cells import Cell, CellResult
from hotloop.lab.sweep.tune import Deadline, confirm
from hotloop.options.sweeps import TuneOptions

PRESENT, CHOSEN = Target("grid/toy", {"num_envs": "1"}), Target("grid/toy", {"num_envs": "2"})


SIDE = ComparedSide(
    name="s", run_id=None, target=BENCH.target, code=BENCH.code, work=BENCH.work, path=BENCH.path
)

RATIO = Ratio(estimate=1.03, low=0.99, high=1.08, pairs=20)


def concluded(outcome: Outcome, *, partial: bool = False, told: bool = True) -> Record:
    found = Comparison(
        a=SIDE, b=SIDE, band=0.02, ratio=RATIO if told else None, outcome=outcome, why="over the edge"
    )
    return replace(BENCH, kind="compare", comparisons=(found,), partial=partial)


class Answers:
    """An executor that gives one record after another, and keeps what each might take."""

    def __init__(self, *records: Record) -> None:
        self.records, self.budgets = iter(records), list[int]()

    def run(self, cells: Sequence[Cell], progress: Progress) -> Iterator[CellResult]:
        [cell] = cells
        self.budgets.append(cell.asked["budget_ns"])
        yield CellResult(cell=cell, record=next(self.records))


UNTOLD = concluded("cannot tell")


@pytest.mark.parametrize(
    ("records", "budgets", "outcome"),
    [
        ((concluded("faster"),), [10], "faster"),
        ((concluded("same"),), [10], "same"),
        ((UNTOLD, concluded("faster")), [10, 20], "faster"),
        ((UNTOLD, UNTOLD), [10, 20], "cannot tell"),
        ((concluded("cannot tell", partial=True),), [10], "cannot tell"),
        ((concluded("cannot tell", told=False), concluded("faster")), [10, 20], "faster"),
    ],
)
def test_it_goes_on_until_it_can_tell_or_its_time_is_over(
    records: tuple[Record, ...], budgets: list[int], outcome: Outcome
) -> None:
    executor, said = Answers(*records), list[str]()
    found = confirm(PRESENT, CHOSEN, TuneOptions(target="", confirm=1e-8), executor, silent, said.append)
    assert found is not None
    assert [each.outcome for each in found.comparisons] == [outcome]
    assert executor.budgets == budgets
    assert len(said) == len(budgets) - 1


@pytest.mark.parametrize(
    ("left_s", "budgets"), [(100, [10, 20]), (30, [10, 15]), (16, [8]), (2, [2.5]), (-9, [2.5])]
)
def test_it_takes_no_more_than_is_left_twice_over(left_s: float, budgets: list[float]) -> None:
    executor = Answers(UNTOLD, UNTOLD)
    end = Deadline(left_s, lambda: 0)
    confirm(PRESENT, CHOSEN, TuneOptions(target="", confirm=10), executor, silent, [].append, end)
    assert executor.budgets == [round(each * 1e9) for each in budgets]


def test_why_it_is_made_once_more_is_said() -> None:
    said = list[str]()
    executor = Answers(UNTOLD, UNTOLD)
    confirm(PRESENT, CHOSEN, TuneOptions(target="", confirm=6), executor, silent, said.append)
    [line] = said
    assert line == "confirmation: 6 s could not tell (over the edge): once more, up to 12 s"


def test_the_same_settings_are_not_confirmed() -> None:
    assert confirm(PRESENT, PRESENT, TuneOptions(target=""), Answers(), silent, pytest.fail) is None
