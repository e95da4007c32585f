"""Prints what must be installed before the package itself can be built and used without build isolation."""

import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parent.parent / "pyproject.toml"

BUILD_TOOLS = ("cmake", "ninja")
"""What scikit-build-core would add to an isolated build."""


def requirements(kind: str) -> list[str]:
    """Return the requirements of a kind of set-up: "run" to use all of the package, "dev" to work on it."""
    settings = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))
    project = settings["project"]
    extras = ("pictures", "parquet", "envs", "profile", "train", *(("dev", "docs") if kind == "dev" else ()))
    chosen = [package for extra in extras for package in project["optional-dependencies"][extra]]
    return [*settings["build-system"]["requires"], *BUILD_TOOLS, *project["dependencies"], *chosen]


if __name__ == "__main__":
    print(*requirements(sys.argv[1]), sep="\n")
