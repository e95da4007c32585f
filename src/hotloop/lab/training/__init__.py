"""Training runs: what they are told, their folder, their windows, their record."""
