"""The C header for engines of anybody's: `hotloop/phases.h`, found by `hotloop.include_dir()`."""

from pathlib import Path


def include_dir() -> str:
    """The folder to give a compiler as `-I`, so that `#include <hotloop/phases.h>` is found."""
    return str(Path(__file__).parent)
