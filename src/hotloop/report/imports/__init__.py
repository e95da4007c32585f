"""Imports: results of other tools as records, one file a tool, each with `fits(data)` and `records(data)`."""
