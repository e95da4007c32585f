"""Writes the stubs of the native modules, so that editors and type checkers know them.

    ./.venv/bin/python tools/stubs.py

They are made from the modules as they are built here, and are part of the package, so every wheel has them.
What differs from build to build, such as a compiler's name, is left out.
"""

import importlib
import re
import sys
from pathlib import Path
from subprocess import run

from nanobind.stubgen import StubGen

SOURCE = Path(__file__).parent.parent / "src"
MODULES = ("hotloop._native", "hotloop.train._kernels")
"""What nanobind made; hotloop.core._spans has a stub written by hand."""

PLAIN = {
    r"(: (?:str|int)) = .*": r"\1",
    r": tuple = .*": ": tuple[str, ...]",
    r"\n\s*__slotnames__: .*": "",
    r"-> tuple: ": "-> tuple[Any, ...]: ",
    r"\bdict\b(?=[,:] )(?!\()": "dict[str, Any]",
    r"-> list: ": "-> list[Any]: ",
    r"-> object: ": "-> Any: ",
    r"\bNDArray, ": "NDArray[Any], ",
    r"from typing import Annotated\n": "from typing import Annotated, Any\n",
}
"""What the generator leaves open, or takes from this build alone, and what stands instead.

Whether an object was ever copied is one such thing: copying leaves `__slotnames__` on its class."""


def stub(name: str) -> str:
    """Return the stub of a module."""
    generator = StubGen(importlib.import_module(name), quiet=True)
    generator.put(generator.module)
    text = str(generator.get())
    for pattern, plain in PLAIN.items():
        text = re.sub(pattern, plain, text)
    return formatted(f"# Written by tools/stubs.py from {name} as it was built.\n\n{text}")


def formatted(text: str) -> str:
    ruff = (sys.executable, "-m", "ruff")
    for command in (("check", "--fix", "--select", "I,UP,F401"), ("format",)):
        words = (*ruff, *command, "--quiet", "--stdin-filename", "stub.pyi", "-")
        text = run(words, input=text, capture_output=True, text=True, check=True).stdout
    return text


def path_of(name: str) -> Path:
    return SOURCE / f"{name.replace('.', '/')}.pyi"


if __name__ == "__main__":
    for module in MODULES:
        path_of(module).write_text(stub(module), encoding="utf-8")
