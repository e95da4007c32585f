"""Flags that make no sense are one line, at once."""

import pytest

from hotloop.cli.main import main


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
