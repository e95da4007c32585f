"""The record of a run, and the files beside it."""

from hotloop.core.record.record import Record, read, write

__all__ = ["Record", "read", "write"]
