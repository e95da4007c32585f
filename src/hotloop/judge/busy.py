"""Whether other work ran on the machine of a record."""

from collections.abc import Mapping
from typing import Any

BUSY_LOAD = 0.5  # Load for each core before the run from which the machine is called busy


def busy_load(machine: Mapping[str, Any]) -> float | None:
    """Return the load before the run where it was enough to call the machine busy; else None."""
    load: float | None = machine.get("load")
    cores = machine.get("usable_cores") or 1
    return load if load is not None and load > BUSY_LOAD * cores else None
