"""Programs as targets: whole runs of any command."""
