"""Drawings of records, one file a format; nothing here runs anything."""
