"""The end of a run loses nothing."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from support.records import BENCH

from hotloop.cli.main import main
from hotloop.cli.runner import kept
from hotloop.core import files
from hotloop.core.errors import SetupError

SHORT = ("--rounds", "1", "--iterations", "100", "--warmup", "0")


def test_simultaneous_saves_all_find_a_name(tmp_path):
    with ThreadPoolExecutor(16) as crew:
        saved = list(crew.map(lambda n: files.save(tmp_path / "a.json", str(n)), range(120)))
    assert sorted(int(path.read_text()) for path in saved) == list(range(120))


def test_a_full_disk_does_not_keep_a_record_from_stdout(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "write_new", full)
    assert main(["bench", "grid/toy", *SHORT, "--json"]) == 70
    out, err = capsys.readouterr()
    assert json.loads(out)["kind"] == "bench"
    assert "not saved: cannot write" in err


def test_a_mismatch_stays_one_whatever_the_disk_does():
    def full(_: object) -> Path:
        raise SetupError("cannot write")

    assert kept(replace(BENCH, exit_code=2), full).exit_code == 2


def test_no_escape_code_reaches_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "grid/\x1b[31mtoy"]) == 64
    assert "\x1b" not in capsys.readouterr().err
