from dataclasses import replace
from io import StringIO

from rich.console import Console, RenderableType
from support.records import BENCH, MACHINE, bench_with

from hotloop.lab.versus import versus
from hotloop.report.comparisons import draw_comparisons


def lines(view: RenderableType) -> list[str]:
    console = Console(file=StringIO(), width=160, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(view)
    return [" ".join(line.split()) for line in captured.get().splitlines() if line.strip()]


def test_a_ratio_is_never_without_its_interval_nor_an_outcome_without_its_reason() -> None:
    slow = bench_with([2.0e6] * 8)
    drawn = lines(draw_comparisons([versus(replace(BENCH, label="before"), slow)]))
    assert drawn[0] == "baseline times as fast outcome why"
    assert drawn[-1].startswith("before 0.500 [0.470, 0.532] slower a step takes at least 87.9% longer")


def test_what_is_unlike_stands_beside_the_outcome() -> None:
    other = replace(bench_with([8.0e6] * 8), machine=MACHINE | {"fingerprint": "ba9876543210"})
    drawn = lines(draw_comparisons([versus(bench_with([4.0e6] * 8), other, unlike=True)]))
    said = " ".join(drawn)
    assert "faster, unlike" in said
    assert "unlike machine (fingerprint 0123456789ab against" in said


def test_without_an_interval_there_is_no_ratio() -> None:
    drawn = lines(draw_comparisons([versus(BENCH, bench_with([4.0e6] * 3))]))
    assert f"{BENCH.run_id} no interval cannot tell 3 rounds are too few" in drawn[-1]
