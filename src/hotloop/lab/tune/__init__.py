"""Tune: the search for the fastest settings by halving, its confirmation, and what they still learn."""
