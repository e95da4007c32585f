"""Commands as they are for a program after `--`: one file a command."""
