"""Environments: batches of our worlds, and the only door to the native module."""
