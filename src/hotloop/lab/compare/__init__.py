"""Which of two is faster, and whether both do the same."""
