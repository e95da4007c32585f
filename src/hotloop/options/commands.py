"""Which commands there are, with their options."""

from importlib import import_module

from hotloop.options.option import Options

# Command to the module that has its options, and to that of the same name in cli/commands, which runs it.
HOMES = {
    "bench": "bench",
    "compare": "compare",
    "diagnose": "diagnose",
    "doctor": "misc",
    "gate": "gate",
    "guide": "misc",
    "mcp": "misc",
    "new": "misc",
    "profile": "profile",
    "report": "report",
    "scale": "sweeps",
    "sim": "sim",
    "soak": "sweeps",
    "top": "misc",
    "train": "train",
    "tune": "sweeps",
    "validate": "validate",
    "worlds": "misc",
}

# Commands that can be given a program, after the dashes.
PROGRAMS = ("bench", "compare", "diagnose", "profile", "soak", "tune")


def options_of(command: str, *, program: bool = False) -> type[Options]:
    """Return the options of a command, or those it has for a program."""
    module = import_module(f"hotloop.options.{HOMES[command]}")
    name = f"{command.capitalize()}{'Program' if program else ''}Options"
    found: type[Options] = getattr(module, name)
    return found
