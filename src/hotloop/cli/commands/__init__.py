"""One file a command, each with a function of its own name that returns an exit code."""
