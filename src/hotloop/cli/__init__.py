"""The command line: one door, its flags and streams, and a file for each command."""
