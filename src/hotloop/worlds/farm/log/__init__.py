"""The farm's log: everything of a run in a SQLite database."""
