"""User code in a process of its own: its supervisor, and the line between the two."""
