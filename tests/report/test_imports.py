"""Files that the real tools wrote: their hosts' names and paths are made neutral, nothing else."""

import json
from pathlib import Path

import pytest

from hotloop.core.errors import InputError
from hotloop.core.record import RUNS_PER_S, Record
from hotloop.report.formats import read_results

WRITTEN = Path(__file__).parent / "imported"


def found(tool: str) -> list[Record]:
    return read_results(WRITTEN / f"{tool}.json")


def test_pytest_benchmark_has_a_record_a_test_with_its_commit() -> None:
    small, large = found("pytest-benchmark")
    assert small.target.words == "pytest-benchmark:test_x.py::test_sum[10] n=10"
    assert len(small.values[RUNS_PER_S]) == 8
    raw = json.loads((WRITTEN / "pytest-benchmark.json").read_text())
    median_s = raw["benchmarks"][0]["stats"]["median"]
    assert small.metrics[RUNS_PER_S].median == pytest.approx(1 / median_s, rel=0.2)
    assert small.metrics[RUNS_PER_S].median > large.metrics[RUNS_PER_S].median
    assert small.code["project"]["commit"] == raw["commit_info"]["id"]
    assert small.run_id != large.run_id


def test_google_benchmark_has_repetitions_as_rounds_and_no_aggregates() -> None:
    records = found("google-benchmark")
    assert {record.target.name for record in records} == {
        f"google-benchmark:sums/{size}" for size in (10, 100, 1000)
    }
    assert {len(record.values[RUNS_PER_S]) for record in records} == {6}
    assert all(1e3 < record.metrics[RUNS_PER_S].median < 1e8 for record in records)


def test_hyperfine_has_a_record_a_command() -> None:
    nothing, sleeping = found("hyperfine")
    assert nothing.target.name == "hyperfine:true"
    assert len(nothing.values[RUNS_PER_S]) == 6
    assert sleeping.metrics[RUNS_PER_S].median < 500  # it sleeps 2 ms


def test_asv_has_a_record_a_choice_of_parameters_and_only_times() -> None:
    small, large = found("asv")
    assert (small.target.keys, large.target.keys) == ({"param0": "10"}, {"param0": "1000"})
    assert small.metrics[RUNS_PER_S].median > large.metrics[RUNS_PER_S].median
    assert small.machine["cpu"] == "AMD EPYC"


@pytest.mark.parametrize("tool", ["pytest-benchmark", "google-benchmark", "hyperfine", "asv"])
def test_what_is_read_is_a_record_like_any_other(tool: str) -> None:
    for record in found(tool):
        assert Record.from_json(record.to_json()).run_id == record.run_id


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "no results of a tool that is known"),
        ('{"results": [{"command": "x"}]}', "hyperfine writes other files"),
        ('{"results": [{"command": "x", "times": ["a"]}]}', "hyperfine writes other files"),
        ('{"machine_info": 1, "commit_info": {}, "benchmarks": []}', "pytest-benchmark writes other files"),
        ('{"context": {"date": "never"}, "benchmarks": [{"name": "x", "real_time": 1}]}', "google-benchmark"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_results(path)
    with pytest.raises(InputError, match="cannot read"):
        read_results(tmp_path / "none.json")
