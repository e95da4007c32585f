import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from chart import draw_scaling, tick
from figures import main, newest, script_of

PAGE = "# Speed\n\nBefore.\n\n<!-- figures: scaling -->\nold\n<!-- end -->\n\nAfter.\n"
SIDE = {
    "agent_steps_per_s": {"median": 10e6, "min": 8e6, "max": 12.5e6, "cv": 0.03},
    "ns_per_agent_step": [80.0, 100.0, 125.0],
}


def result(folder: Path, benchmark: str, created: str, **changes: Any) -> None:
    """Leave a result as a benchmark does."""
    facts = {
        "benchmark": benchmark,
        "created": f"{created}T10:00:00",
        "quick": False,
        "text": f"| table of {created} |",
        "machine": {"cpu": "A < B", "cores": 2, "load": 0.1, "python": "3.12.0"},
        "code": {"commit": "0123456789abcdef", "dirty": False, "compiler": "GNU 12"},
        "sides": {"8": SIDE, "1000": SIDE},
    }
    folder = folder / "benchmarks/results"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{benchmark.replace('/', '-')}-{created}.json"
    path.write_text(json.dumps(facts | changes))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/speed.md").write_text(PAGE)
    (tmp_path / "README.md").write_text("<!-- figures: summary -->\n<!-- end -->\n")
    return tmp_path


def test_without_results_the_page_says_so_and_how_to_get_them(root: Path) -> None:
    main(root)
    page = (root / "docs/speed.md").read_text()
    assert "No figure has been measured yet" in page
    assert "benchmarks/scaling.py" in page
    assert page.startswith("# Speed\n\nBefore.")
    assert page.endswith("<!-- end -->\n\nAfter.\n")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("scaling", "scaling.py"),
        ("peers/grid_toy", "peers/grid_toy.py"),
        ("learning-guard", "learning.py guard"),
    ],
)
def test_a_result_names_the_command_that_measures_it(name: str, words: str) -> None:
    assert script_of(name) == words


def test_the_newest_result_is_shown_with_machine_commit_and_a_link(root: Path) -> None:
    result(root, "scaling", "2030-01-01")
    result(root, "scaling", "2030-02-01")
    main(root)
    page = (root / "docs/speed.md").read_text()
    assert "table of 2030-02-01" in page
    assert "old" not in page
    for fact in ("A < B", "2 cores", "0123456789ab", "(../benchmarks/results/scaling-2030-02-01.json)"):
        assert fact in page
    assert (root / "docs/images/scaling.svg").exists()


@pytest.mark.parametrize(
    "change", [{"quick": True}, {"code": {"commit": "0", "dirty": True, "compiler": "GNU"}}]
)
def test_a_quick_run_or_one_of_uncommitted_code_is_never_shown(root: Path, change: dict[str, Any]) -> None:
    result(root, "scaling", "2030-01-01")
    result(root, "scaling", "2030-02-01", **change)
    found = newest(root, "scaling")
    assert found is not None
    assert found.path.stem == "scaling-2030-01-01"


def test_a_second_run_changes_nothing(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result(root, "scaling", "2030-01-01")
    main(root)
    assert "wrote docs/speed.md" in capsys.readouterr().out
    main(root)
    assert capsys.readouterr().out == ""


def test_the_summary_has_a_row_a_contest_and_says_who_is_missing(root: Path) -> None:
    ratio = {"estimate": 50.0, "low": 48.0, "high": 52.0, "pairs": 12}
    both = {
        "sides": {"hotloop": SIDE, "mettagrid": {"agent_steps_per_s": {"median": 0.2e6}}},
        "ratios": {"hotloop / mettagrid": ratio},
    }
    cases = {"twenty": both, "alone": {"sides": {"hotloop": SIDE}, "ratios": {}}}
    result(root, "peers/grid_toy", "2030-01-01", cases=cases)
    main(root)
    rows = (root / "README.md").read_text().splitlines()
    assert "| twenty | 10.000 M | 8.000 M .. 12.500 M | 3.0% | 0.200 M | 50.0 [48.0, 52.0] |" in rows
    assert "| alone | 10.000 M | 8.000 M .. 12.500 M | 3.0% | missing | missing |" in rows


def test_a_chart_is_well_formed_and_has_a_mark_a_value(root: Path) -> None:
    result(root, "scaling", "2030-01-01")
    found = newest(root, "scaling")
    assert found is not None
    drawn = ET.fromstring(draw_scaling(found.facts))
    assert len(drawn.findall("{http://www.w3.org/2000/svg}circle")) == 2


@pytest.mark.parametrize(("rough", "round_"), [(31, 50), (0.7, 1), (10, 10), (101, 200)])
def test_ticks_are_round_numbers(rough: float, round_: float) -> None:
    assert tick(rough) == pytest.approx(round_)
