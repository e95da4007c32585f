"""Flags that make no sense are one line, at once."""

import signal
from pathlib import Path

import pytest
from support.nasty import Line, flag_lines, furnish, key_lines, sample

from hotloop.cli.main import main

SAMPLE = 40
"""Of each kind, in the suite; `./check hostile` tries all of them."""

FINE = (0, 1, 3, 4, 64)
"""Done, judged, or refused: never a fault, a mismatch or an interruption."""

PATIENCE_S = 30


@pytest.mark.parametrize(
    "words",
    [
        ["--rounds", "9" * 23],
        ["--iterations", "9" * 23],
        ["--warmup", "9" * 23],
        ["agents=\uff19"],
        ["density=\u0661"],
        ["--rounds", "inf"],
        ["--rounds", "nan"],
        ["--rounds", "1e400"],
    ],
)
def test_a_number_that_makes_no_sense_is_refused(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "grid/toy", *words]) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert err


def refuse_all(lines: list[Line], folder: Path, monkeypatch, capsys) -> None:
    """Try each in a folder of its own: one line or a result, in time, and never a fault."""
    furnish(folder)
    wrong = []
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    for number, line in enumerate(lines):
        here = folder / "some" / str(number) / "deep"
        here.mkdir(parents=True)
        monkeypatch.chdir(here)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
        try:
            code = main(list(line))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        err = capsys.readouterr().err
        if code not in FINE or "Traceback" in err or (code == 64 and not err.strip()):
            wrong.append((code, line[0], [word[:40] for word in line[-2:]], err[-200:]))
    signal.signal(signal.SIGALRM, before)
    assert not wrong


@pytest.mark.parametrize("lines", [flag_lines, key_lines])
def test_some_nasty_values_of_every_kind_are_refused(lines, tmp_path, monkeypatch, capsys):
    quick = (line for line in lines() if line[0] != "train")
    refuse_all(sample(quick, SAMPLE, seed=20), tmp_path, monkeypatch, capsys)


@pytest.mark.hostile
@pytest.mark.parametrize("part", range(40))
def test_every_nasty_value_of_every_flag_and_key_is_refused(part, tmp_path, monkeypatch, capsys):
    refuse_all([*flag_lines(), *key_lines()][part::40], tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize(
    "words",
    [
        ("tune", "grid/toy", "num_envs=1,2", "--confirm", "nan"),
        ("tune", "grid/toy", "num_envs=1,2", "--confirm", "inf"),
        ("tune", "grid/toy", "num_envs=1,2", "--write-floor", "../x"),
        ("soak", "grid/toy", "--steps", "9" * 23),
        ("scale", "grid/toy", "num_envs=1,2", "--steps", "9" * 23),
        ("soak", "grid/toy", "--minutes", "inf"),
    ],
)
def test_what_no_sweep_could_do_is_refused_before_anything_is_measured(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == 64
    assert words[-2] in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
