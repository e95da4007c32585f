"""A user's loop: its windows, its account of time, its record."""
