"""The page: every record of a folder as one file that opens offline, a tab a question."""
