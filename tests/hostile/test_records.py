"""Records that lie: a command answers with a verdict, or with one line about the file."""

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.mutations import mutated, places_of
from support.records import BENCH, PROFILE
from support.shelves import budgeted, scaled, soaked, trained, tuned

from hotloop.cli.main import main
from hotloop.core.errors import InputError
from hotloop.core.record import FORMAT, HASH, Record, read, write
from hotloop.core.record.metadata import Work
from hotloop.core.record.profile import Finding, Table
from hotloop.judge.compare import compare_records
from hotloop.report.files import Entry, Shelf, draw_shelf

CALM = 200
ALL = 2_000
"""Mutations of the fast suite, and of `./check hostile`."""

FOUND = Finding(
    probe="cprofile",
    facts={"calls": 10},
    tables=(Table(title="Functions", columns=("function", "total_ns"), rows=(("f", 5), ("g", 2))),),
)

INTACT = (
    BENCH,
    PROFILE,
    replace(BENCH, findings=(FOUND,), label="with findings"),
    compare_records(BENCH, replace(BENCH, label="b"), band=0.02, unlike=False),
    *(each() for each in (scaled, tuned, soaked, budgeted, trained)),
)

PROGRAM = replace(
    budgeted(),
    target=replace(BENCH.target, name="true", variant={}),
    work=Work(runs=8),
    values={"runs_per_s": (9.0,) * 8},
    method=replace(BENCH.method, headline="runs_per_s"),
)
"""Of a gate with the budget of a program: it has no envs."""

BESIDE = {
    ".frames.json": {
        "format": FORMAT,
        "target": "grid/toy",
        "title": "t",
        "frames": [{"step": 1, "text": "x"}],
    },
    ".accepted.json": {"run_id": BENCH.run_id, "why": "x", "created": "2026-01-02"},
}
"""What lies beside records, and is read with them."""

FORMATS = ("json", "markdown", "csv", "openmetrics", "github", "pyperf", "html")

VERDICTS = (0, 1, 2, 3, 4, 64)


def plain(record: Record) -> dict[str, Any]:
    """What its file says, without the hash that would tell every change at once."""
    return {name: value for name, value in json.loads(record.to_json()).items() if name != HASH}


def attack(folder: Path, seed: int) -> str:
    """Write a damaged record beside an intact one; returns its name."""
    path = folder / f"{seed}.json"
    path.write_text(mutated(plain(INTACT[seed % len(INTACT)]), seed), encoding="utf-8")
    for suffix, said in BESIDE.items():
        (folder / f"{seed}{suffix}").write_text(mutated(said, seed))
    return str(path)


def check_answers(
    seeds: range, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, whole: bool
) -> dict[int, int]:
    """One command that reads records, or all, on every damaged one; returns how often it answered what."""
    good = tmp_path / "good.json"
    write(good, BENCH)
    told: dict[int, int] = {}
    for seed in seeds:
        folder = tmp_path / str(seed)
        folder.mkdir()
        bad = attack(folder, seed)
        write(folder / "good.json", BENCH)
        commands = (
            ["compare", str(good), bad],
            ["bench", "--report", str(folder)],
            ["profile", "--replay-slow", bad],
            ["report", str(folder), "--format", FORMATS[seed % len(FORMATS)], "-o", str(folder / "page")],
            ["diagnose", bad, "--quick"],
        )
        for words in commands if whole else commands[seed % 5 :][:1]:
            code = main(words)
            out, err = capsys.readouterr()
            assert code in VERDICTS, (seed, words, err)
            assert "\x1b" not in out + err, (seed, words)
            if code == 64:
                assert err.count("\n") == 1, (seed, words, err)
                assert len(err) < 1_000, (seed, words, err)
            told[code] = told.get(code, 0) + 1
    return told


def test_no_damaged_record_is_a_fault_of_ours(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    told = check_answers(range(CALM), tmp_path, capsys, whole=False)
    assert told[64] > CALM / 3


@pytest.mark.slow
@pytest.mark.hostile
def test_no_damaged_record_of_many_is_a_fault_of_ours(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_answers(range(ALL), tmp_path, capsys, whole=True)


def test_what_is_read_can_be_written_again():
    for seed in range(CALM):
        text = mutated(plain(INTACT[seed % len(INTACT)]), seed)
        try:
            record = Record.from_json(text)
        except InputError:
            continue
        assert Record.from_json(record.to_json()) == record


def test_a_folder_is_shown_without_its_damaged_records(tmp_path, capsys):
    write(tmp_path / "good.json", BENCH)
    (tmp_path / "bad.json").write_text(json.dumps(plain(BENCH) | {"machine": {}}))
    assert main(["bench", "--report", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert f"01-02 03:04 {BENCH.target.name}" in " ".join(out.split())
    assert "bad.json: not a Hotloop record: $.machine: lacks the field fingerprint" in " ".join(err.split())


def without_each_field(record: Record) -> Iterator[str]:
    """The texts of a record that lacks one field, each of all fields once."""
    for number in range(sum(1 for _ in places_of(plain(record)))):
        damaged = plain(record)
        holder, key = list(places_of(damaged))[number]
        if isinstance(holder, dict):
            del holder[key]
            yield json.dumps(damaged)


def test_a_folder_of_records_that_lack_a_field_is_shown_in_every_format(tmp_path, capsys):
    intact = [*INTACT, PROGRAM]
    texts = [text for record in intact for text in without_each_field(record)]
    odd = ["", "[]", json.dumps(plain(BENCH) | {"schema": 2})]
    texts += [*odd, json.dumps(plain(BENCH) | {"created": "soon"})]
    for number, text in enumerate(texts):
        (tmp_path / f"{number}.json").write_text(text)
    write(tmp_path / "good.json", replace(BENCH, label="intact"))
    for name in FORMATS:
        words = ["report", str(tmp_path), "--format", name, "-o", str(tmp_path / f"as.{name}")]
        assert main(words) == 0, name
        told = " ".join(capsys.readouterr().err.split())
        assert f"{len(texts) - 2}.json: it has schema 2" in told
        if name == "openmetrics":
            assert f"{len(texts) - 1}.json: cannot be shown: ValueError" in told
    assert main(["bench", "--report", str(tmp_path)]) == 0
    assert "intact" in capsys.readouterr().out


def test_a_fault_that_is_no_records_is_raised(tmp_path):
    shelf = Shelf(entries=(Entry(record=BENCH),))
    with pytest.raises(KeyError, match="assets"):
        draw_shelf(shelf, lambda shelf: {}["assets"])


def test_records_that_the_project_keeps_stay_readable():
    folder = Path(__file__).parents[2] / "benchmarks" / "results"
    kept = [path for path in folder.glob("compare-*.json") if "schema" in json.loads(path.read_text())]
    for path in kept:
        assert read(path).schema == 1
    assert kept


def test_what_could_be_read_for_ever_is_no_record(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "records"
    write(folder / "good.json", BENCH)
    os.mkfifo(folder / "pipe.json")
    with (folder / "huge.json").open("wb") as file:
        file.truncate(1 << 40)
    (folder / "endless.json").symlink_to("/dev/zero")
    assert main(["bench", "--report", str(folder)]) == 0
    err = " ".join(capsys.readouterr().err.split())
    assert "pipe.json is no file" in err
    assert "huge.json: 1048576 MiB are too many" in err
    assert "endless.json is no file" in err
    for words in (
        ["diagnose", str(folder / "pipe.json")],
        ["report", str(folder), "--read", "/dev/zero"],
        ["validate", "--replay", "/dev/zero"],
        ["sim", "--replay", "/dev/zero"],
    ):
        assert main(words) == 64
        assert "is no file" in capsys.readouterr().err
