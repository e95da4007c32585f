import errno
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from support.shelves import everything, fill

from hotloop.cli.main import main
from hotloop.core.clock import utc_now
from hotloop.core.errors import ExitCode


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return fill(tmp_path / "artifacts" / "throughput", everything())


def test_the_usual_folders_become_a_page_and_an_earlier_one_is_replaced(
    folder: Path, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = utc_now()
    monkeypatch.setattr("hotloop.report.page.page.utc_now", lambda: at_once)
    assert main(["report"]) == ExitCode.FINE
    first = Path("report.html").read_text()
    Path("report.html").write_text(f"{first}<!-- older -->")
    assert main(["report"]) == ExitCode.FINE
    assert capsys.readouterr().err.count("saved report.html") == 2
    assert Path("report.html").read_text() == first
    assert [path.name for path in Path().glob("*report*")] == ["report.html"]
    assert first.startswith("<!doctype html>")
    assert f"<title>Hotloop: {Path.cwd().name}</title>" in first


def test_a_file_that_is_no_page_of_ours_is_refused(folder: Path, capsys) -> None:
    Path("report.html").write_text("<!doctype html><p>mine</p>")
    Path("notes.txt").write_text("mine")
    assert main(["report"]) == ExitCode.USAGE
    assert "no page of hotloop report" in capsys.readouterr().err
    assert main(["report", "--format", "csv", "-o", "notes.txt"]) == ExitCode.USAGE
    assert Path("report.html").read_text() == "<!doctype html><p>mine</p>"
    assert Path("notes.txt").read_text() == "mine"


def test_a_page_that_a_full_disk_does_not_take_is_no_fault(folder: Path, capsys, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    assert main(["report"]) == ExitCode.FINE
    before = Path("report.html").read_text()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        assert main(["report"]) == ExitCode.USAGE
    assert "cannot write report.html: No space left on device" in capsys.readouterr().err
    assert Path("report.html").read_text() == before


@pytest.mark.parametrize("name", ["csv", "openmetrics", "github", "pyperf", "markdown", "json"])
def test_other_formats_go_to_stdout_or_to_a_file(folder: Path, capsys, name: str) -> None:
    assert main(["report", "--format", name]) == ExitCode.FINE
    printed = capsys.readouterr().out
    assert "grid/toy" in printed
    assert main(["report", str(folder), "--format", name, "-o", "out/x.txt"]) == ExitCode.FINE
    assert Path("out/x.txt").read_bytes().decode() == printed


@pytest.mark.parametrize("output", ["", ".", "artifacts"])
def test_a_folder_is_no_name_of_a_page(folder: Path, capsys, output: str) -> None:
    assert main(["report", "-o", output]) == ExitCode.USAGE
    assert "is a folder: name a file in it" in capsys.readouterr().err


def test_what_is_accepted_stays_beside_its_record_whatever_the_run_is_called(folder: Path, capsys) -> None:
    record = everything()[0]
    (folder / "forged.json").write_text(replace(record, run_id="../../evil").to_json())
    assert main(["report", "--accept", "../../evil", "--why", "x"]) == ExitCode.FINE
    assert not (folder.parent.parent / "evil.accepted.json").exists()
    assert len(list(folder.glob("*evil.accepted.json"))) == 1


def test_results_of_other_tools_join(folder: Path, tmp_path: Path, capsys) -> None:
    times = {"results": [{"command": "make all", "times": [1.0, 1.1, 0.9, 1.0, 1.0, 1.0]}]}
    (tmp_path / "hf.json").write_text(json.dumps(times))
    assert main(["report", "--read", "hf.json", "--format", "csv"]) == ExitCode.FINE
    assert "hyperfine:make all" in capsys.readouterr().out


def test_a_level_is_accepted_beside_its_record(folder: Path, capsys) -> None:
    assert main(["report", "--accept", "bench-0012", "--why", "a larger map"]) == ExitCode.FINE
    assert (folder / "bench-0012.accepted.json").exists()
    assert main(["report", "-o", "page.html"]) == ExitCode.FINE
    assert "a larger map" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "there is no folder nowhere"),
        (["--format", "pdf"], "expected one of html"),
        (["--accept", "bench-0001"], "--accept and --why belong together"),
        (["--accept", "bench-9999", "--why", "x"], "unknown run 'bench-9999'"),
        (["--read", "none.json"], "cannot read none.json"),
        (["empty"], "empty holds no record"),
        (["--serve", "--port", "99999"], "--port"),
    ],
)
def test_bad_input_is_one_line(folder: Path, capsys, words: list[str], said: str) -> None:
    Path("empty").mkdir()
    assert main(["report", *words]) == ExitCode.USAGE
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not Path("report.html").exists()


def test_a_folder_without_any_record_names_what_makes_one(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report"]) == ExitCode.USAGE
    assert "hotloop bench TARGET makes one" in capsys.readouterr().err


def test_budgets_of_the_project_join_and_a_file_of_them_that_does_not_fit_is_named(
    folder: Path, capsys
) -> None:
    Path("hotloop.toml").write_text(
        '[budget.toy-floor]\ntarget = "grid/toy"\nmetric = "env_steps_per_s"\nlimit = 490_000\n'
    )
    assert main(["report"]) == ExitCode.FINE
    assert "floor 490 k, toy-floor" in Path("report.html").read_text()
    Path("hotloop.toml").write_text("[budget.toy-floor]\nmetric = 3\n")
    assert main(["report"]) == ExitCode.FINE
    assert "hotloop.toml" in capsys.readouterr().err


def test_broken_records_still_give_a_page_that_lists_them(folder: Path, capsys) -> None:
    (folder / "cut.json").write_text("{")
    assert main(["report", "-o", "page.html"]) == ExitCode.FINE
    assert "left out" in capsys.readouterr().err
    assert "cut.json" in Path("page.html").read_text()
