"""The worlds: each a folder with its twin (the specification), its native rules and its registry entry."""

from importlib import import_module
from typing import Any


def load_member(module: str, name: str) -> Any:
    """Return what a module of a world has under a name; it is imported no earlier than now."""
    return getattr(import_module(f"hotloop.worlds.{module}"), name)
