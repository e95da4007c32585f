"""Whether the fast one is the same as the slow one, and where not."""
