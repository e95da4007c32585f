"""Exports: records in the formats of other tools, one file a format, each with `export(records) -> str`."""
