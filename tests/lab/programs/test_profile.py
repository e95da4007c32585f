"""Profiles of programs: a small one that does a bit of everything, really run."""

import sys
from pathlib import Path

import pytest

from hotloop.core.errors import InputError
from hotloop.core.record import Record
from hotloop.lab.programs import profile as lab
from hotloop.lab.programs.launch import Launcher, Program
from hotloop.lab.programs.profile import (
    choose,
    environment,
    lines_finding,
    phases_of_spans,
    profile,
    read_stacks,
    without_imports,
)

SCRIPT = """
import hotloop

KEPT = []


def slow():
    return sum(number * number for number in range(400))


def main():
    for _ in range(600):
        with hotloop.span("update"):
            slow()
            KEPT.append(bytes(20_000))


main()
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[Record, Path]:
    folder = tmp_path_factory.mktemp("profiled")
    (folder / "script.py").write_text(SCRIPT)
    program = Program((sys.executable, str(folder / "script.py")))
    probes = choose(["line,threads", "cprofile", "memory"])
    return profile(program, probes, files=folder / "files"), folder / "files"


def table(record: Record, probe: str, number: int = 0) -> list[str]:
    (one,) = (each for each in record.findings if each.probe == probe)
    return [str(row[0]) for row in one.tables[number].rows]


def test_a_program_is_run_clean_and_watched_and_once_for_each_further_probe(
    found: tuple[Record, Path],
) -> None:
    record, _ = found
    assert (record.kind, record.target.impl, record.work.runs) == ("profile", "program", 4)
    assert record.values["wall_ns"][0] > 0
    assert record.values["watched.cpu_ns"][0] > 0
    assert {each.code for each in record.notices} <= {"sampled-inside"}  # a short program


def test_its_spans_are_rows_of_its_wall_time(found: tuple[Record, Path]) -> None:
    rows = {phase.path: phase for phase in found[0].phases}
    assert list(rows) == ["wall", "wall/update", "wall/everything else"]
    assert rows["wall/update"].calls == 600
    total = rows["wall/update"].total_ns + rows["wall/everything else"].total_ns
    assert total == rows["wall"].total_ns
    assert 0 < rows["wall/update"].cpu_ns <= rows["wall/update"].total_ns + 1_000_000
    assert rows["wall/everything else"].cpu_ns is None


def test_the_hot_function_and_its_line_are_found(found: tuple[Record, Path]) -> None:
    record, files = found
    names = table(record, "samples")
    assert any(name.startswith("slow.<genexpr> (") and "script.py:8)" in name for name in names)
    (looked,) = (each for each in record.findings if each.probe == "line")
    code = [row[3].strip() for each in looked.tables for row in each.rows]
    assert "return sum(number * number for number in range(400))" in code
    assert any(name.startswith("slow (") for name in table(record, "cprofile"))
    assert {file for each in record.findings for file in each.files} <= {
        path.name for path in files.iterdir()
    }


def test_memory_is_told_over_time_and_by_the_sites_that_hold_it(found: tuple[Record, Path]) -> None:
    record, _ = found
    assert len(table(record, "memory")) <= lab.MOST_SITES
    assert any("script.py" in site for site in table(record, "memory", 1))
    used = record.resources
    assert used is not None
    assert used.rss_mean_bytes is not None
    assert used.rss_peak_bytes is not None
    assert used.rss_mean_bytes <= used.rss_peak_bytes
    assert used.rss_over_time
    assert table(record, "threads")


def test_a_program_that_is_not_python_says_so_and_has_its_time() -> None:
    with Launcher() as launcher:
        assert launcher.run(Program(("true",))).wall_ns > 0
    record = profile(Program(("true",)), files=Path("/tmp"))
    assert [each.code for each in record.notices] == ["no-probe"]
    assert record.values["wall_ns"][0] > 0


@pytest.mark.parametrize(
    "code",
    [
        "import signal; signal.signal(signal.SIGALRM, lambda *_: print('rang')); signal.raise_signal(14)",
        "import os, sys; os.execv(sys.executable, ['py', '-S', '-c', 'sum(range(9**5)); print(\"rang\")'])",
        "import mine; mine.ring()",
    ],
    ids=["its own alarm", "another program", "its own sitecustomize"],
)
def test_a_program_does_the_same_whether_or_not_it_is_looked_at(tmp_path: Path, code: str) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "sitecustomize.py").write_text(
        "import sys, types; sys.modules['mine'] = types.ModuleType('mine')\n"
        "sys.modules['mine'].ring = lambda: print('rang')\n"
    )
    asked = environment(tmp_path, "samples")
    asked["PYTHONPATH"] += f":{other}"
    with Launcher() as launcher:
        run = launcher.run(Program((sys.executable, "-c", code)), asked)
    assert run.printed.strip() == "rang"


def test_a_probe_that_the_programs_python_does_not_have_is_an_obstacle(tmp_path: Path) -> None:
    (tmp_path / "7.memory.error").write_text("ModuleNotFoundError: No module named 'memray'")
    said = lab.memory_finding(tmp_path, tmp_path)
    assert "No module named 'memray'" in str(said)
    assert lab.cprofile_finding(tmp_path, tmp_path) == lab.NO_PYTHON


def test_stacks_end_where_modules_are_imported() -> None:
    frames = (("<module>", "a.py", 1), ("_find", "<frozen importlib._bootstrap>", 2), ("<module>", "b.py", 3))
    assert without_imports(frames) == (frames[0], lab.IMPORTING)
    assert without_imports(frames[:1]) == frames[:1]


def test_stacks_of_all_processes_are_added_up(tmp_path: Path) -> None:
    for pid in (1, 2):
        told = '{"samples": 3, "wall_ns": 9, "stacks": [[[["f", "a.py", 4]], 10, 5]]}'
        (tmp_path / f"{pid}.samples.json").write_text(told)
    seen, stack = read_stacks(tmp_path), (("f", "a.py", 4),)
    assert (seen.ns, seen.cpu_ns, seen.samples) == ({stack: 20}, {stack: 10}, 6)
    assert lines_finding({(("f", "nowhere.py", 4),): 20}).tables[0].rows == ((4, 20, 1.0, ""),)
    assert phases_of_spans(tmp_path, 100) == ()


def test_probes_of_programs_are_chosen_and_unknown_ones_refused() -> None:
    assert choose(()) == ("samples", "resources")
    assert choose(["line, memory"]) == ("samples", "resources", "line", "memory")
    assert "pyspy" in choose(["all"])
    with pytest.raises(InputError, match=r"unknown probe 'torch': .*a program has samples"):
        choose(["torch"])
