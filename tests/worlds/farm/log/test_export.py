"""Any table of a log as a Parquet file."""

from pathlib import Path

import pytest
from support.farm_log import play, rows_of

from hotloop.core.errors import InputError
from hotloop.worlds.farm.log.export import export, main
from hotloop.worlds.farm.log.rows import TABLES

parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "run.db"
    play(path, 20, num_envs=1, perception=False)
    return path


def test_every_table_is_the_same_as_parquet(log: Path, tmp_path: Path) -> None:
    files = export(log, folder=tmp_path)
    assert [file.stem for file in files] == [table.name for table in TABLES]
    for file in files:
        columns = parquet.read_table(file).to_pydict()
        assert list(zip(*columns.values(), strict=True)) == rows_of(log, file.stem)


def test_one_table_by_the_command_line(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(log), "agent_states", "--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [str(tmp_path / "agent_states.parquet")]
    assert main([str(log), "agent_states", "--output", str(tmp_path)]) == 64
    assert "never overwritten" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "words"),
    [("agent_state", "did you mean agent_states"), ("agents; DROP TABLE agents", "unknown")],
)
def test_a_table_that_is_not_there_is_refused(log: Path, tmp_path: Path, table: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        export(log, [table], tmp_path)


def test_what_is_no_log_is_not_exported(tmp_path: Path) -> None:
    (tmp_path / "some.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    with pytest.raises(InputError, match="is no log of a farm"):
        export(tmp_path / "some.db")
