"""A log's tables as Parquet files.

python -m hotloop.worlds.farm.log.export run.db [TABLE ...] --output FOLDER
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from hotloop.core.errors import HotloopError, InputError, MissingError, unknown
from hotloop.core.machine import install_line
from hotloop.worlds.farm.log.rows import TABLES, LogTable, open_log

ROWS_AT_ONCE = 100_000  # Rows held in memory; each such group is a row group of the file


def export(log: Path, tables: Sequence[str] = (), folder: Path | None = None) -> list[Path]:
    """Write tables of a log, all where none is named, as `FOLDER/<table>.parquet`; returns the files.

    The folder is the log's own where none is given. A file that is there is never overwritten.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise MissingError(f"Parquet needs pyarrow: {install_line('pyarrow')}") from None
    by_name = {table.name: table for table in TABLES}
    for name in tables:
        if name not in by_name:
            raise unknown("table", name, list(by_name), f"a log has {', '.join(by_name)}")
    chosen = [by_name[name] for name in tables] or list(TABLES)
    place = log.parent if folder is None else folder
    files = [place / f"{table.name}.parquet" for table in chosen]
    if not place.is_dir():
        raise InputError(f"there is no folder {place}: make it first")
    for file in files:
        if file.exists():
            raise InputError(f"{file} exists and is never overwritten: give another folder")
    with closing(open_log(log)) as connection:
        for table, file in zip(chosen, files, strict=True):
            write(connection, table, file, parquet, pa)
    return files


def write(connection: Any, table: LogTable, file: Path, parquet: Any, arrow: Any) -> None:
    """Copy a table group by group; a file that is not whole is removed."""
    kinds = {"INTEGER": arrow.int64(), "REAL": arrow.float64(), "TEXT": arrow.string()}
    schema = arrow.schema([(name, kinds[kind]) for name, kind in table.columns.items()])
    cursor = connection.execute(f"SELECT * FROM {table.name}")
    try:
        with parquet.ParquetWriter(file, schema) as writer:
            while rows := cursor.fetchmany(ROWS_AT_ONCE):
                columns = list(zip(*rows, strict=True))
                arrays = [
                    arrow.array(column, each.type) for column, each in zip(columns, schema, strict=True)
                ]
                writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Write tables of a farm's log as Parquet files.")
    parser.add_argument("log", type=Path, help="what log= wrote")
    parser.add_argument("tables", nargs="*", metavar="TABLE", help="all where none is named")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where to; beside the log by default")
    asked = parser.parse_args(words)
    try:
        files = export(asked.log, asked.tables, asked.output)
    except HotloopError as error:
        sys.stderr.write(f"error: {error}\n")
        return int(error.exit_code)
    for file in files:
        sys.stdout.write(f"{file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
