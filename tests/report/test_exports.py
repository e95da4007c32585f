import csv
import io
import json
import re
from dataclasses import replace

import pytest
from support.records import BENCH, bench_with

from hotloop.core.record import Record
from hotloop.report.formats import export_csv, export_github, export_openmetrics, export_pyperf
from hotloop.stats.summary import with_metrics

ODD = with_metrics(replace(BENCH, target=replace(BENCH.target, name='=cmd "x"\n\\y'), label="+1"))


def newest(record: Record) -> Record:
    return replace(record, created="2026-01-02T03:04:05+00:00", run_id="newest")


def test_csv_has_a_row_a_metric_and_no_formula() -> None:
    rows = list(csv.DictReader(io.StringIO(export_csv([BENCH, ODD]))))
    assert [row["metric"] for row in rows] == ["env_steps_per_s", "agent_steps_per_s"] * 2
    assert float(rows[0]["median"]) == 4.0e6
    assert (rows[0]["commit"], rows[0]["rounds"]) == ("0123abcd", "8")
    assert rows[2]["target"].startswith("'=cmd")
    assert rows[2]["label"] == "'+1"


SAMPLE = re.compile(r'hotloop_\w+\{(\w+="([^"\\\n]|\\["\\n])*",?)+\} [0-9.e+-]+ [0-9.]+')


def test_openmetrics_keeps_to_the_formats_rules() -> None:
    games = "contest.games_per_s"
    metrics, values = {games: BENCH.metrics["env_steps_per_s"]}, {games: BENCH.values["env_steps_per_s"]}
    contest = replace(BENCH, kind="sim", metrics=metrics, values=values)
    text = export_openmetrics([BENCH, newest(bench_with([5e6] * 8)), ODD, contest])
    lines = text.splitlines()
    assert "# TYPE hotloop_contest_games_per_s gauge" in lines
    assert lines[-1] == "# EOF"
    assert text.endswith("\n")
    samples = [line for line in lines if not line.startswith("#")]
    assert all(SAMPLE.fullmatch(line) for line in samples)
    families = [re.split(r"[{ ]", line)[0] for line in samples]
    assert families == sorted(families, key=families.index)  # a family's samples stand together
    assert len({line.rpartition("}")[0] for line in samples}) == len(samples)
    (median,) = (
        line for line in samples if "env_steps" in line and 'grid/toy"' in line and '"median"' in line
    )
    assert median.rpartition("} ")[2].split()[0] == "5000000.0"  # of the latest


def test_github_action_benchmark_gets_name_unit_and_value() -> None:
    (entry,) = json.loads(export_github([BENCH, newest(bench_with([5e6] * 8))]))
    assert (entry["name"], entry["unit"], entry["value"]) == ("grid/toy", "env-steps/s", 5e6)
    assert {type(entry[key]) for key in ("name", "unit", "range", "extra")} == {str}


def test_pyperf_itself_reads_its_file(tmp_path) -> None:
    module = pytest.importorskip("pyperf", reason="PYPERF IS NOT INSTALLED: its file is not read by it")
    path = tmp_path / "suite.json"
    path.write_text(export_pyperf([BENCH]))
    (benchmark,) = module.BenchmarkSuite.load(str(path)).get_benchmarks()
    assert (benchmark.get_name(), benchmark.get_unit()) == ("grid/toy", "second")
    assert benchmark.median() == pytest.approx(1 / 4.0e6)
    assert benchmark.get_nvalue() == 8


def test_what_is_partial_is_in_no_export() -> None:
    partial = [replace(BENCH, partial=True)]
    assert json.loads(export_github(partial)) == []
    assert export_openmetrics(partial) == "# EOF\n"
    assert export_csv(partial).count("\n") == 1
