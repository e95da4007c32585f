"""Probes: one file a way of looking inside a running program."""
