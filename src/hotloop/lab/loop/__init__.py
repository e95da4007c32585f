"""A loop of somebody's own: its windows, its account of time, its record."""
